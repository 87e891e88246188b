# SPDX-License-Identifier: BSD-3-Clause
"""What belongs to a process or a group as a whole: workspaces, and the stream beside the current.

All users of a group share its workspace: they call in one order on all members, and meet at a
barrier before they write to it.
"""
import torch
import torch.distributed._symmetric_memory as torch_symm_mem
import torch.distributed.distributed_c10d as c10d

from weft.torch._groups import group_name as name_of
from weft.torch._groups import group_of
from weft.torch._memory import SymmetricMemory, registered

_workspaces = {}
_host_streams = {}


class HostStream(torch.cpu.Stream):
    """The calling thread, in the clothes of a stream."""

    def __init__(self, priority=0):
        super().__init__(priority)
        self.priority = priority

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def synchronize(self):
        return None


def is_symm_mem_enabled_for_group(group_name):
    """Whether there is a group of this name: none has to be enabled. Within _test_mode() what that says."""
    if torch_symm_mem._is_test_mode:
        return torch_symm_mem.is_symm_mem_enabled_for_group(group_name)
    try:
        return c10d._resolve_process_group(name_of(group_name)) is not None
    except (RuntimeError, ValueError):
        return False


def get_symm_mem_workspace(group_name, min_size, device=None):
    """The handle of the group's workspace on a device (default: CUDA's current, where there is
    CUDA), of min_size bytes or more. Collective over the group where it has to grow: handles of
    the smaller one stay good, their memory is another. RuntimeError where a CUDA graph is being
    captured and it has to grow."""
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    device, name = torch.device(device), name_of(group_name)
    if device.type == "cuda":
        registered(device)
        return torch_symm_mem.get_symm_mem_workspace(name, min_size)
    group = group_of(name)
    tensor = _workspaces.get(group)
    if tensor is None or tensor.numel() < min_size:
        tensor = SymmetricMemory.empty_strided_p2p((max(min_size, 1),), (1,), torch.uint8, device,
                                                   name)
        _workspaces[group] = tensor
    return SymmetricMemory.rendezvous(tensor, name)


def _get_backend_stream(priority=0):
    """One stream for each priority, made at its first use; without CUDA the calling thread."""
    if torch.cuda.is_available():
        return torch_symm_mem._get_backend_stream(priority)
    if priority not in _host_streams:
        _host_streams[priority] = HostStream(priority)
    return _host_streams[priority]
