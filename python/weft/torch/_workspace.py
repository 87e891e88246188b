# SPDX-License-Identifier: BSD-3-Clause
"""Objects of a process or group on each device: workspaces, and the backend's side stream. PyTorch's versions serve one
GPU only, so install() wraps them, and PyTorch's operators get those of the current device, too.

All users of a group share its workspace: all members use it in the same order, and synchronise at a barrier before they
write to it.
"""
import torch
import torch.distributed._symmetric_memory as torch_symm_mem
import torch.distributed.distributed_c10d as c10d

from weft.torch._groups import group_name as name_of
from weft.torch._groups import group_of
from weft.torch._lanes import lane_of
from weft.torch._memory import SymmetricMemory

_workspaces = {}  # tensors by group and device
_streams = {}


class HostStream(torch.cpu.Stream):
    """The calling thread, with the interface of a stream."""

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
    """Returns whether the group exists: groups need not be enabled. Within _test_mode(), PyTorch's answer."""
    if torch_symm_mem._is_test_mode:
        return torch_symm_mem.is_symm_mem_enabled_for_group(group_name)
    try:
        return c10d._resolve_process_group(name_of(group_name)) is not None
    except (RuntimeError, ValueError):
        return False


def _whole(device):
    """Returns the device with its index; by default CUDA's current device, if there is CUDA."""
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def get_symm_mem_workspace(group_name, min_size, device=None):
    """Returns the handle of the group's workspace on a device (default: CUDA's current device, if there is CUDA), of at
    least min_size bytes. Collective over the group if it must grow: handles of the smaller workspace stay valid, with
    their own memory. RuntimeError if it must grow while a CUDA graph is captured."""
    group, device = group_of(name_of(group_name)), _whole(device)
    tensor = _workspaces.get((group, device))
    if tensor is None or tensor.numel() < min_size:
        if lane_of(device).is_captured():
            raise RuntimeError(f"get_symm_mem_workspace: got a size of {min_size} bytes in a graph capture, expected "
                               f"at most {0 if tensor is None else tensor.numel()}, which there are on {device}: ask "
                               "for as many before the capture")
        tensor = SymmetricMemory.empty_strided_p2p((max(min_size, 1),), (1,), torch.uint8, device, group.name)
        _workspaces[group, device] = tensor
    return SymmetricMemory.rendezvous(tensor, group.name)


def _get_backend_stream(priority=0):
    """Returns a stream for each priority on the current device, made at the first use; without CUDA the calling thread.
    """
    key = _whole(None), priority
    if key not in _streams:
        _streams[key] = (torch.cuda.Stream if key[0].type == "cuda" else HostStream)(priority=priority)
    return _streams[key]
