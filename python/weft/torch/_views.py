# SPDX-License-Identifier: BSD-3-Clause
"""Methods of PyTorch's handle class on Weft's memory: get_buffer, get_signal_pad, get_remote_tensor, and those that
only newer versions have.

PyTorch's C++ methods cannot be overridden by a backend. They do not check ranks, offsets and sizes, and a view dangles
after its tensor and its handle are gone. So install() wraps them: the arguments are checked, and the storage of a view
keeps the handle alive, and so the memory. Handles of other backends are not affected.
"""
import torch
from torch._C._distributed_c10d import _SymmetricMemory

from weft.torch._handle import Handle, check_view
from weft.torch._memory import is_symm_mem_tensor

_theirs = {name: getattr(_SymmetricMemory, name)
           for name in ("get_buffer", "get_signal_pad", "get_remote_tensor")}


def _is_ours(handle):
    return _SymmetricMemory.get_backend(handle.device) == "WEFT"


def _keeps(view, handle):
    view.untyped_storage().handle = handle
    return view


def get_buffer(self, rank, sizes, dtype, storage_offset=0):
    if not _is_ours(self):
        return _theirs["get_buffer"](self, rank, sizes, dtype, storage_offset)
    check_view("get_buffer", self, rank, self.buffer_size, sizes, dtype, storage_offset)
    return _keeps(_theirs["get_buffer"](self, rank, sizes, dtype, storage_offset), self)


def get_signal_pad(self, rank, sizes=(), dtype=None, storage_offset=0):
    if not _is_ours(self):
        return _theirs["get_signal_pad"](self, rank, sizes, dtype, storage_offset)
    of_words = dtype or torch.uint32
    limit = _SymmetricMemory.signal_pad_size  # the current setting, as in PyTorch: the handle does not know its own
    check_view("get_signal_pad", self, rank, limit, sizes or (limit // of_words.itemsize,), of_words, storage_offset)
    return _keeps(_theirs["get_signal_pad"](self, rank, sizes, dtype, storage_offset), self)


def get_remote_tensor(self, peer, sizes, dtype):
    if not _is_ours(self):
        return _theirs["get_remote_tensor"](self, peer, sizes, dtype)
    room = self.buffer_size - self.offset
    check_view("get_remote_tensor", self, peer, room, sizes, dtype, 0)
    return _keeps(_theirs["get_remote_tensor"](self, peer, sizes, dtype), self)


_NEWER = {"get_peer_cft_handle": Handle.get_peer_cft_handle,
          "get_multimem_cft_handle": Handle.get_multimem_cft_handle,
          "is_symm_mem_tensor": staticmethod(is_symm_mem_tensor)}


def install():
    for name, ours in _NEWER.items():
        if not hasattr(_SymmetricMemory, name):
            setattr(_SymmetricMemory, name, ours)
    for ours in (get_buffer, get_signal_pad, get_remote_tensor):
        ours.__doc__ = _theirs[ours.__name__].__doc__
        setattr(_SymmetricMemory, ours.__name__, ours)
