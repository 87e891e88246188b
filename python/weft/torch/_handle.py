# SPDX-License-Identifier: BSD-3-Clause
"""The handle of a rendezvous on CPU tensors if PyTorch's registry has no allocator for them.

It has the members of torch._C._distributed_c10d._SymmetricMemory. A block of memory is

    | buffer: the bytes of the tensor | zeros up to 64 | signal pad | zeros | facts |

The facts are the sizes of the buffer and of the pad, which must be the same on all members: the last 16 bytes. A handle
holds the members' shares of the block, not the allocation. So a handle keeps the memory alive, but the allocation,
which refers to its handles, can be collected.
"""
import ctypes
import math

import torch

import weft
from weft.torch._errors import TimedOutError

ALIGNMENT = 64
_Facts = ctypes.c_int64 * 2


def pad_begin(buffer_bytes):
    return -(-buffer_bytes // ALIGNMENT) * ALIGNMENT


def block_bytes(buffer_bytes, pad_bytes):
    return -(-(pad_begin(buffer_bytes) + pad_bytes) // 8) * 8 + ctypes.sizeof(_Facts)


def facts_at(block, nbytes):
    """Returns the facts of the block at this address, for reading and writing."""
    return _Facts.from_address(block + nbytes - ctypes.sizeof(_Facts))


def bytes_at(address, nbytes, owner):
    """Returns a uint8 tensor of the memory, which keeps `owner` alive."""
    if nbytes == 0:
        return torch.empty(0, dtype=torch.uint8, device="cpu")
    memory = (ctypes.c_char * nbytes).from_address(address)
    memory.owner = owner
    return torch.frombuffer(memory, dtype=torch.uint8)


def tensor_in(storage, sizes, stride, dtype, offset=0):
    """Returns a tensor, not a view of another tensor, in the storage; offset in elements."""
    return torch.empty(0, dtype=dtype, device="cpu").set_(storage, offset, sizes, stride)


def contiguous_strides(sizes):
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def check_type(call, dtype):
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"{call}: got dtype {dtype!r}, expected a torch.dtype")


def check_view(call, handle, rank, limit, sizes, dtype, offset):
    """Checks that the elements from `offset` on are within `limit` bytes of a member's memory."""
    if not 0 <= rank < handle.world_size:
        raise RuntimeError(f"SymmetricMemory::{call}: Invalid peer rank: rank must be in [0, "
                           f"{handle.world_size}) (got {rank})")
    check_type(call, dtype)
    wanted = (offset + math.prod(sizes)) * dtype.itemsize
    if offset < 0 or wanted > limit or any(size < 0 for size in sizes):
        raise RuntimeError(f"SymmetricMemory::{call}: the requested size ({wanted} bytes) exceeds "
                           f"the allocated size ({limit} bytes), or is negative: got sizes {list(sizes)} "
                           f"of {dtype} at offset {offset}")


def refuse_cft(call):
    raise RuntimeError(f"{call}: CFT handles are only available on the NCCL symmetric memory backend")


class Handle:
    """The members' access to each other's allocations; see weft.torch.rendezvous."""

    def __init__(self, group, share, buffer_bytes, pad_bytes):
        self.rank = group.rank
        self.world_size = group.size
        self.group_name = group.name
        self.device = torch.device("cpu")
        self.buffer_size = buffer_bytes
        self.offset = 0
        self.multicast_ptr = 0
        self.signal_pad_size = pad_bytes
        self._channels = pad_bytes // (4 * group.size)
        self._share = share
        self.buffer_ptrs = [share.ptr(member) for member in range(group.size)]
        self.signal_pad_ptrs = [p + pad_begin(buffer_bytes) for p in self.buffer_ptrs]
        self._buffer_array = torch.tensor(self.buffer_ptrs, dtype=torch.int64, device="cpu")
        self._pad_array = torch.tensor(self.signal_pad_ptrs, dtype=torch.int64, device="cpu")
        self._buffers = [None] * group.size
        self._pads = [None] * group.size

    @property
    def buffer_ptrs_dev(self):
        """Returns the address of an array of buffer_ptrs, for kernels."""
        return self._buffer_array.data_ptr()

    @property
    def signal_pad_ptrs_dev(self):
        """Returns the address of an array of signal_pad_ptrs, for kernels."""
        return self._pad_array.data_ptr()

    def get_buffer(self, rank, sizes, dtype, storage_offset=0):
        """Returns a contiguous tensor in rank's memory, storage_offset elements of dtype after its beginning."""
        check_view("get_buffer", self, rank, self.buffer_size, sizes, dtype, storage_offset)
        if self._buffers[rank] is None:
            base = bytes_at(self.buffer_ptrs[rank], self.buffer_size, self._share)
            self._buffers[rank] = base.untyped_storage()
        return _view(self._buffers[rank], sizes, dtype, storage_offset)

    def get_remote_tensor(self, peer, sizes, dtype):
        """Returns the peer's tensor of these sizes, at the offset of this rank's tensor in its allocation."""
        check_type("get_remote_tensor", dtype)
        return self.get_buffer(peer, sizes, dtype, self.offset // dtype.itemsize)

    def get_signal_pad(self, rank, sizes=(), dtype=None, storage_offset=0):
        """Returns rank's signal pad as a tensor of uint32 by default; without sizes, the whole pad."""
        dtype = dtype or torch.uint32
        check_type("get_signal_pad", dtype)
        sizes = tuple(sizes) or (self.signal_pad_size // dtype.itemsize,)
        check_view("get_signal_pad", self, rank, self.signal_pad_size, sizes, dtype, storage_offset)
        if self._pads[rank] is None:
            base = bytes_at(self.signal_pad_ptrs[rank], self.signal_pad_size, self._share)
            self._pads[rank] = base.untyped_storage()
        return _view(self._pads[rank], sizes, dtype, storage_offset)

    def barrier(self, channel=0, timeout_ms=0):
        """Blocks until all members have called it; everything they wrote before is visible then."""
        self._check_channel(channel)
        self._on_pads(weft.pad_barrier, channel, timeout_ms=timeout_ms)

    def put_signal(self, dst_rank, channel=0, timeout_ms=0):
        """Waits until this rank's word in the pad of dst_rank is free, and sets it."""
        self._check_rank("dst_rank", dst_rank)
        self._check_channel(channel)
        self._on_pads(weft.pad_put, dst_rank, channel, timeout_ms=timeout_ms)

    def wait_signal(self, src_rank, channel=0, timeout_ms=0):
        """Waits for the word of src_rank in this rank's pad, and clears it. After timeout_ms (0: never) raises an
        exception that is both RuntimeError and TimeoutError."""
        self._check_rank("src_rank", src_rank)
        self._check_channel(channel)
        self._on_pads(weft.pad_wait, src_rank, channel, timeout_ms=timeout_ms)

    def _on_pads(self, call, *args, **options):
        try:
            call(self.signal_pad_ptrs_dev, self.rank, self.world_size, *args, **options)
        except TimeoutError as error:
            raise TimedOutError(str(error)) from None

    def get_peer_cft_handle(self, peer):
        """Raises RuntimeError: CFT handles exist for NCCL only."""
        refuse_cft("get_peer_cft_handle")

    def get_multimem_cft_handle(self):
        """Raises RuntimeError: CFT handles exist for NCCL only."""
        refuse_cft("get_multimem_cft_handle")

    def boxed(self):
        """Raises NotImplementedError: torch.ops takes handles of PyTorch's class, which install() provides."""
        raise NotImplementedError("boxed(): this handle is Python's own; call weft.torch.install() "
                                  "before the first rendezvous for handles of PyTorch's class")

    def _check_rank(self, name, rank):
        if not 0 <= rank < self.world_size:
            raise RuntimeError(f"{name} must be in [0, {self.world_size}) (got {rank})")

    def _check_channel(self, channel):
        calls, channels = "barrier(), put_signal() and wait_signal()", self._channels
        if channel < 0:
            raise RuntimeError(f"channel for {calls} must be greater than or equal to 0 "
                               f"(got {channel})")
        if channel >= channels:
            raise RuntimeError(f"The maximum supported channel for {calls} is {channels - 1} "
                               f"(got {channel}), with a pad of {self.signal_pad_size} bytes")

    def __repr__(self):
        return (f"<weft.torch.SymmetricMemory rank={self.rank} world_size={self.world_size} "
                f"buffer_size={self.buffer_size} device=cpu>")


def _view(storage, sizes, dtype, offset):
    return tensor_in(storage, tuple(sizes), contiguous_strides(sizes), dtype, offset)
