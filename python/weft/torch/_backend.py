# SPDX-License-Identifier: BSD-3-Clause
"""Weft as a backend of PyTorch's symmetric memory: install()."""
import ctypes
import os
import threading

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch._C._distributed_c10d import _SymmetricMemory

import weft
from weft.torch import _job
from weft.torch import _shim as _shim_build

_NAME = "WEFT"
_GPU = torch.device("cuda")

fused_runs = {}   # on CPU tensors, by the operator's name
_lock = threading.RLock()
_shim = None      # the loaded library
_members = None   # the function that it calls; kept alive for it
patches = []      # functions that put Weft's in the place of PyTorch's: weft.torch fills the list


def _ranks_of(group_name):
    """The PEs of a group, by rank: as ranks of the world."""
    _job.join()
    if group_name is None:
        return []
    group = c10d._resolve_process_group(group_name)
    return dist.get_process_group_ranks(group)


# --- The registry -------------------------------------------------------------------------------------


def _register():
    global _shim, _members
    library = _shim_build.load()
    _members = _shim_build.members_callback(_ranks_of)
    extension = ctypes.CDLL(weft._core.__file__)  # in this process already: what it exports
    library.pyweft_torch_register(_members, extension.pyweft_session_guard, extension.pyweft_session_guard_limited,
                                  extension.pyweft_error_text, int(torch.version.cuda is not None))
    if os.environ.get("WEFT_TORCH_ALIAS") == "NVSHMEM":
        library.pyweft_torch_alias(b"NVSHMEM")
    _shim = library


def _select(force):
    if force and torch.version.cuda is not None:
        _shim.pyweft_torch_replace()
        return
    try:
        _SymmetricMemory.set_backend(_NAME)
    except RuntimeError as error:
        raise RuntimeError(
            f"weft.torch.install: PyTorch's symmetric memory has been used already, with {_of_gpu()}: install "
            "before its first use, or pass force=True; what has been made so far then remains what it is"
        ) from error


def _of_gpu():
    return _SymmetricMemory.get_backend(_GPU)


def install(force=False):
    """Makes Weft the backend of torch.distributed._symmetric_memory in this process, for CUDA tensors
    and for those of the CPU. Its empty, rendezvous and memory pools and torch.ops.symm_mem.* run on
    Weft's memory from then on; get_backend() says WEFT. May be called again.

    The backend is compiled when a PyTorch is met for the first time, which takes about 20 seconds
    and needs a C++ compiler; it is kept in $XDG_CACHE_HOME/weft, or else ~/.cache/weft. All ranks
    call it, but it waits for none of them.

    force: also if another backend has been used already.
    RuntimeError if one has, where there is no compiler or it fails, and where nothing can be kept.
    """
    with _lock:
        if _shim is None:
            _register()
        if not installed():
            _select(force)
            for patch in patches:
                patch()
        _job.begin_joining()


def installed():
    """Whether PyTorch's symmetric memory is Weft's in this process."""
    device = _GPU if torch.version.cuda is not None else torch.device("cpu")
    return _shim is not None and _SymmetricMemory.get_backend(device) == _NAME


def counters():
    """What Weft has done in this process, by name: fused operators that ran on CPU tensors, each by its
    own name, called as torch.ops.symm_mem.*, by a compiled graph or as weft.torch.*. After install()
    also what the backend has done: allocations and releases of memory; rendezvous that were answered
    together with the group's members (rendezvous), from what an earlier one left (rendezvous_kept),
    and with None (rendezvous_none); barriers, put_signals and wait_signals of handles."""
    counts, value = dict(fused_runs), ctypes.c_uint64()
    index = 0
    while _shim is not None:
        name = _shim.pyweft_torch_count(index, ctypes.byref(value))
        if name is None:
            break
        counts[name.decode()] = value.value
        index += 1
    return counts
