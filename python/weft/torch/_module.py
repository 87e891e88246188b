# SPDX-License-Identifier: BSD-3-Clause
"""Functions of PyTorch's module that know the backends by name, and refuse any other, or know one GPU alone.
install() puts Weft's of the same names before those that this version has; other backends get PyTorch's as
ever."""
import functools

import torch
import torch.distributed._symmetric_memory as torch_symm_mem
from torch._C._distributed_c10d import _SymmetricMemory

from weft.torch import _matrices, _peers, _workspace

_GPU = torch.device("cuda")
_OURS = (_peers.get, _peers.put_signal, _peers.wait_signal, _matrices.all_to_all_nd, _matrices.reduce_scatter_offset,
         _workspace.get_symm_mem_workspace, _workspace._get_backend_stream)


def _before(ours, theirs):
    """It decides by the device of the first argument, a tensor or a handle; where that has none, by GPUs."""
    @functools.wraps(theirs)
    def call(*args, **named):
        first = args[0] if args else named.get("input", named.get("dst", named.get("src", named.get("hdl"))))
        is_ours = _SymmetricMemory.get_backend(getattr(first, "device", _GPU)) == "WEFT"
        return (ours if is_ours else theirs)(*args, **named)
    call.is_of_weft = True
    return call


def install():
    """Once is enough: what stands before PyTorch's function stays there, whichever backend is chosen."""
    for ours in _OURS:
        theirs = getattr(torch_symm_mem, ours.__name__, None)
        if theirs is not None and not hasattr(theirs, "is_of_weft"):
            setattr(torch_symm_mem, ours.__name__, _before(ours, theirs))
