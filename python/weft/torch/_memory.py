# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric tensors: allocation and rendezvous.

If PyTorch's registry has an allocator for a kind of device (after weft.torch.install(), which CUDA tensors call
automatically), PyTorch's own functions are used. Otherwise, that is on the CPU of a machine without a C++ compiler, an
allocation is a block of Weft, found by the address of its storage, and handles are SymmetricMemory.
"""
import contextlib
import math
import operator
import weakref
from collections.abc import Sequence

import torch
import torch.distributed._symmetric_memory as torch_symm_mem
from torch._C._distributed_c10d import _SymmetricMemory

import weft
from weft.torch import _backend
from weft.torch._errors import OutOfMemoryError
from weft.torch._groups import CHECKED, group_name, group_of, join
from weft.torch._handle import Handle, block_bytes, bytes_at, check_type, facts_at, tensor_in


class _Allocation:
    """A block and its handles by group. Lives as long as a tensor of its storage."""

    def __init__(self, nbytes, group):
        self.nbytes = nbytes
        self.pad_bytes = _SymmetricMemory.signal_pad_size
        self.group = group
        self.block = weft.Block("host", block_bytes(nbytes, self.pad_bytes))
        self.handles = {}
        facts_at(self.block.ptr, self.block.nbytes)[:] = nbytes, self.pad_bytes

    def handle(self, group):
        """Returns the group's handle. The first call for a group is collective over it."""
        if group not in self.handles:
            share = self._attach(group)
            self.handles[group] = SymmetricMemory(group, share, self.nbytes, self.pad_bytes)
        return self.handles[group]

    def _attach(self, group):
        """Shares the block with the group. Blocks of one size may have different parts: all members compare all facts,
        so an error is raised on all of them."""
        where = f'rendezvous in group "{group.name}"'
        if CHECKED:
            _find_other_calls(where, group)
        try:
            share = self.block.share(list(group.pes), tag=group.tag)
        except ValueError as error:  # RuntimeError, as in PyTorch's registry
            raise RuntimeError(f"{where}: {error}") from None
        for rank in range(group.size):
            nbytes, pad_bytes = facts_at(share.ptr(rank), share.nbytes)
            if (nbytes, pad_bytes) != (self.nbytes, self.pad_bytes):
                raise RuntimeError(
                    f"{where}: rank {rank} has {nbytes} bytes and a signal pad of {pad_bytes}, and rank "
                    f"{group.rank} has {self.nbytes} and {self.pad_bytes}: use tensors of the same size")
        return share


_allocations = weakref.WeakValueDictionary()
_persistent = {}


def registered(device):
    """Returns whether PyTorch's registry allocates for this kind of device, through Weft."""
    if device.type == "cuda" and not _backend.installed():
        _backend.install()
    return _SymmetricMemory.get_backend(device) is not None


def _find_other_calls(where, group):
    """Detects members that make another collective call on the group's team. Sharing a block would not detect them,
    because it uses no team."""
    try:
        weft.barrier(group.team)
    except RuntimeError as error:
        raise RuntimeError(f"{where}: {error}") from None


def _bytes_of(size, stride, dtype):
    """Returns the bytes of the elements, as PyTorch's empty_strided_p2p allocates them. PyTorch does not check that
    strides stay within them, and sizes that overflow end the process, because at::TensorMaker computes them in a
    noexcept function."""
    torch.empty_strided(size, stride, dtype=dtype, device="meta")
    elements = math.prod(size)
    reach = elements and 1 + sum((n - 1) * step for n, step in zip(size, stride))
    if reach > elements or any(step < 0 for step in stride):
        raise RuntimeError(f"empty_strided_p2p: got strides {list(stride)}, expected strides without "
                           f"gaps between the {elements} elements of {list(size)}")
    return elements * dtype.itemsize


def _allocate(nbytes, group):
    join()
    try:
        allocation = _Allocation(nbytes, group)
    except MemoryError as error:
        raise OutOfMemoryError(str(error)) from None
    _allocations[allocation.block.ptr] = allocation
    return allocation


def _storage(allocation):
    """Returns a storage that keeps the allocation alive; even an empty one has the block's address."""
    whole = bytes_at(allocation.block.ptr, max(allocation.nbytes, 1), allocation)
    return whole.untyped_storage()


def _persistent_storage(nbytes, group, alloc_id):
    """Returns a storage of the memory with that id, which is never freed; there is one storage of it at a time."""
    if alloc_id not in _persistent:
        _persistent[alloc_id] = [_allocate(nbytes, group), None]
    allocation, last = _persistent[alloc_id]
    if last is not None and last() is not None:
        raise RuntimeError(f"empty_strided_p2p: can not allocate with alloc_id == {alloc_id} because "
                           "a previous allocation with the same alloc_id is still active")
    if allocation.nbytes != nbytes:
        raise RuntimeError(f"empty_strided_p2p: got a size of {nbytes} bytes, expected "
                           f"{allocation.nbytes}, which alloc_id == {alloc_id} had before")
    lease = _Lease(allocation)
    _persistent[alloc_id][1] = weakref.ref(lease)
    return bytes_at(allocation.block.ptr, max(nbytes, 1), lease).untyped_storage()


class _Lease:
    """Lives as long as a storage of a persistent allocation."""

    def __init__(self, allocation):
        self.allocation = allocation


class _SignalPadSize(type):
    """Makes signal_pad_size a settable attribute of the class, as in PyTorch."""

    @property
    def signal_pad_size(cls):
        return _SymmetricMemory.signal_pad_size

    @signal_pad_size.setter
    def signal_pad_size(cls, nbytes):
        _SymmetricMemory.signal_pad_size = nbytes


class SymmetricMemory(Handle, metaclass=_SignalPadSize):
    """torch._C._distributed_c10d._SymmetricMemory for any device: its static functions, and the class of handles if
    PyTorch's registry has no allocator for the device."""

    @staticmethod
    def empty_strided_p2p(size, stride, dtype, device, group_name=None, alloc_id=None):
        """Makes a symmetric tensor of these sizes and strides. Local. group_name: the default for rendezvous().
        alloc_id: the same id always returns the same memory; RuntimeError while a tensor of it lives."""
        device = torch.device(device)
        check_type("empty_strided_p2p", dtype)
        nbytes = _bytes_of(size, stride, dtype)
        if registered(device):
            return _SymmetricMemory.empty_strided_p2p(size, stride, dtype, device, group_name,
                                                      alloc_id)
        if device.type != "cpu":
            raise RuntimeError(f"SymmetricMemory does not support device type {device.type}; "
                               "expected cpu or cuda")
        if alloc_id is None:
            storage = _storage(_allocate(nbytes, group_name))
        else:
            storage = _persistent_storage(nbytes, group_name, alloc_id)
        return tensor_in(storage, tuple(size), tuple(stride), dtype)

    @staticmethod
    def rendezvous(tensor, group_name=None):
        """Does the same as weft.torch.rendezvous(); group_name: by default that of the allocation."""
        allocation = _allocations.get(tensor.untyped_storage().data_ptr())
        if allocation is None:
            return _SymmetricMemory.rendezvous(tensor, group_name) if registered(tensor.device) \
                else None
        name = group_name or allocation.group
        if not name:
            raise RuntimeError("rendezvous: expected the name of a group here or at the allocation, "
                               "got neither")
        return allocation.handle(group_of(name))

    @staticmethod
    def is_symm_mem_tensor(tensor):
        """Calls weft.torch.is_symm_mem_tensor()."""
        return is_symm_mem_tensor(tensor)

    @staticmethod
    def has_multicast_support(device_type, device_idx):
        """Returns False: Weft does not use NVLink multicast."""
        return False

    @staticmethod
    def set_backend(name):
        """Calls weft.torch.set_backend()."""
        set_backend(name)

    @staticmethod
    def get_backend(device):
        """Calls weft.torch.get_backend()."""
        return get_backend(device)

    @staticmethod
    def get_mempool_allocator(device):
        """Calls weft.torch.get_mempool_allocator()."""
        return get_mempool_allocator(device)

    @staticmethod
    def set_group_info(group_name, rank, world_size, store):
        """Calls PyTorch's function, which describes a group that torch.distributed has not made. Weft does not need
        it."""
        _SymmetricMemory.set_group_info(group_name, rank, world_size, store)

    @staticmethod
    def stream_write_value32(input, offset, val):
        """Calls torch.ops.symm_mem.stream_write_value32_()."""
        return torch.ops.symm_mem.stream_write_value32_(input, offset, val)

    @staticmethod
    def memset32(input, offset, val, count=1):
        """Calls torch.ops.symm_mem.memset32_()."""
        return torch.ops.symm_mem.memset32_(input, offset, val, count)


def _current(device):
    """PyTorch makes and enters a GPU's pool on the current device only."""
    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()


def empty(*size, dtype=None, device=None):
    """Makes a symmetric tensor like torch.empty(): contiguous and uninitialised. Local: ranks may make different
    numbers of tensors. size: numbers, or one sequence of them; dtype and device default to PyTorch's. The memory is
    freed when no tensor, handle or view on any thread uses it any more. RuntimeError for invalid sizes, and if the
    memory is not available."""
    size = tuple(size[0]) if len(size) == 1 and isinstance(size[0], Sequence) else size
    size = tuple(operator.index(extent) for extent in size)
    dtype = torch.get_default_dtype() if dtype is None else dtype
    check_type("empty", dtype)
    like = torch.empty(size, dtype=dtype, device="meta")  # raises for invalid sizes
    device = torch.get_default_device() if device is None else torch.device(device)
    if registered(device):
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", torch.cuda.current_device())
        with _current(device):
            return torch_symm_mem.empty(size, dtype=dtype, device=device)
    return SymmetricMemory.empty_strided_p2p(size, like.stride(), dtype, device)


def rendezvous(tensor, group):
    """Returns the handle through which the members of a group access each other's `tensor`; all have the same size.
    Collective over the group, and blocks until all have called; later calls with a tensor of the same storage return
    the same handle immediately. Returns None immediately for memory that is not symmetric. TypeError if group is no
    name, ProcessGroup or DeviceMesh of one dimension."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"rendezvous: got tensor of type {type(tensor).__name__}, expected a torch.Tensor")
    return SymmetricMemory.rendezvous(tensor, group_name(group))


def is_symm_mem_tensor(tensor):
    """Returns whether rendezvous() would accept this tensor. Local."""
    return weft.initialized() and weft.block_of(tensor.untyped_storage().data_ptr()) is not None


def set_backend(name):
    """Selects the allocator of CUDA tensors by name; Weft's is called WEFT."""
    if not isinstance(name, str):
        raise TypeError(f"set_backend: got {name!r}, expected a name")
    if name != "WEFT":
        raise RuntimeError(f"set_backend: got {name!r}, expected 'WEFT'; other backends are "
                           "torch.distributed._symmetric_memory's")
    if torch.cuda.is_available():
        _backend.install()


def get_backend(device):
    """Returns "WEFT", or None for a kind of device without symmetric memory."""
    device = torch.device(device)
    if device.type == "cpu":
        return "WEFT"
    return _SymmetricMemory.get_backend(device)


def set_signal_pad_size(size):
    """Sets the signal pad size in bytes of later allocations, the same on all ranks: 4 * members for each channel."""
    if operator.index(size) < 0:  # PyTorch's own setter does not accept it
        raise TypeError(f"set_signal_pad_size: expected a number of bytes, not negative, got {size!r}")
    _SymmetricMemory.signal_pad_size = size


def get_signal_pad_size():
    """Returns the signal pad size in bytes of later allocations."""
    return _SymmetricMemory.signal_pad_size


def get_mempool_allocator(device):
    """Returns the allocator with which torch.cuda.MemPool allocates symmetric memory."""
    device = torch.device(device)
    if device.type != "cuda":
        raise RuntimeError("get_mempool_allocator: PyTorch has memory pools for cuda only, got "
                           f"{device}")
    registered(device)
    return torch_symm_mem.get_mempool_allocator(device)


def get_mem_pool(device):
    """Returns a torch.cuda.MemPool: memory allocated within torch.cuda.use_mem_pool(pool) is symmetric."""
    get_mempool_allocator(device)
    with _current(torch.device(device)):
        return torch_symm_mem.get_mem_pool(torch.device(device))
