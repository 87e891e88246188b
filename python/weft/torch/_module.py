# SPDX-License-Identifier: BSD-3-Clause
"""Functions of PyTorch's module that accept only certain backends by name, or support one GPU only. install() wraps
those that this version has, so that Weft's functions of the same names are called for Weft's memory; other backends
still get PyTorch's.
"""
import functools

import torch
import torch.distributed._symmetric_memory as torch_symm_mem
from torch._C._distributed_c10d import _SymmetricMemory

from weft.torch import _matrices, _peers, _workspace

_GPU = torch.device("cuda")
_OURS = (_peers.get, _peers.put_signal, _peers.wait_signal, _matrices.all_to_all_nd, _matrices.reduce_scatter_offset,
         _workspace.get_symm_mem_workspace, _workspace._get_backend_stream)


def _before(ours, theirs):
    """Selects by the device of the first argument, a tensor or a handle, or else by the backend for CUDA."""
    @functools.wraps(theirs)
    def call(*args, **named):
        first = args[0] if args else named.get("input", named.get("dst", named.get("src", named.get("hdl"))))
        is_ours = _SymmetricMemory.get_backend(getattr(first, "device", _GPU)) == "WEFT"
        return (ours if is_ours else theirs)(*args, **named)
    call.is_of_weft = True
    return call


def install():
    """Takes effect once: the wrapper stays, whichever backend is selected later."""
    for ours in _OURS:
        theirs = getattr(torch_symm_mem, ours.__name__, None)
        if theirs is not None and not hasattr(theirs, "is_of_weft"):
            setattr(torch_symm_mem, ours.__name__, _before(ours, theirs))
