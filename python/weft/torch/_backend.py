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

fused_runs = {}   # counts runs of Weft's fused operators by name
_lock = threading.RLock()
_loaded = None    # the C++ shim
_shim = None      # the same, once it is registered
_members = None   # a callback of the shim, which must stay alive
patches = []      # replace functions of PyTorch; weft.torch fills the list


def _ranks_of(group_name):
    """Returns the PEs of a group in order of rank; they are ranks of the world."""
    _job.join()
    if group_name is None:
        return []
    group = c10d._resolve_process_group(group_name)
    return dist.get_process_group_ranks(group)


# --- The registry -------------------------------------------------------------------------------------


def shim():
    """Returns the C++ shim, compiled first if necessary. It registers nothing by itself."""
    global _loaded
    with _lock:
        if _loaded is None:
            loaded = _shim_build.load()
            extension = ctypes.CDLL(weft._core.__file__)  # loaded already; for its exported functions
            loaded.pyweft_torch_open(extension.pyweft_session_guard, extension.pyweft_session_guard_limited,
                                     extension.pyweft_error_text)
            _loaded = loaded
        return _loaded


def _register():
    global _shim, _members
    loaded = shim()
    _members = _shim_build.members_callback(_ranks_of)
    loaded.pyweft_torch_register(_members, int(torch.version.cuda is not None))
    if os.environ.get("WEFT_TORCH_ALIAS") == "NVSHMEM":
        loaded.pyweft_torch_alias(b"NVSHMEM")
    _shim = loaded


def _select(force):
    if force and torch.version.cuda is not None:
        _shim.pyweft_torch_replace()
        return
    try:
        _SymmetricMemory.set_backend(_NAME)
    except RuntimeError as error:
        raise RuntimeError(
            f"weft.torch.install: PyTorch's symmetric memory has been used already, with {_of_gpu()}: install "
            "before its first use, or pass force=True, which leaves existing tensors with their backend"
        ) from error


def _of_gpu():
    return _SymmetricMemory.get_backend(_GPU)


def install(force=False):
    """Makes Weft the backend of torch.distributed._symmetric_memory in this process, for CUDA and CPU tensors.
    PyTorch's empty, rendezvous, memory pools and torch.ops.symm_mem.* use Weft's memory from then on, and get_backend()
    returns WEFT. Calling it again is allowed.

    The first call with a version of PyTorch compiles the backend, which takes about 20 seconds and needs a C++
    compiler. The result is kept in $XDG_CACHE_HOME/weft, or ~/.cache/weft. All ranks must call it, but it waits for
    none of them.

    force: even if another backend has been used already. RuntimeError if one has been used, if there is no compiler or
    it fails, and if the result cannot be stored.
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
    """Returns whether Weft provides PyTorch's symmetric memory in this process."""
    device = _GPU if torch.version.cuda is not None else torch.device("cpu")
    return _shim is not None and _SymmetricMemory.get_backend(device) == _NAME


def counters():
    """Returns a dict of counts of Weft's work in this process. Weft's fused operators are counted by name,
    whether called as torch.ops.symm_mem.*, by a compiled graph or as weft.torch.*. After install() the backend is
    counted, too: allocations and releases of memory; rendezvous answered together with the group's members
    (rendezvous), from an earlier rendezvous (rendezvous_kept), and with None (rendezvous_none); barriers, put_signals
    and wait_signals of handles."""
    counts, value = dict(fused_runs), ctypes.c_uint64()
    index = 0
    while _shim is not None:
        name = _shim.pyweft_torch_count(index, ctypes.byref(value))
        if name is None:
            break
        counts[name.decode()] = value.value
        index += 1
    return counts
