# SPDX-License-Identifier: BSD-3-Clause
"""The handle of a rendezvous on CPU tensors, where PyTorch's registry has no allocator for them.

Same members as torch._C._distributed_c10d._SymmetricMemory. A block of memory is

    | buffer: as many bytes as the tensor asked for | zeros up to 64 | signal pad | zeros | facts |

Facts are the bytes of the buffer and those of the pad, which members have to agree on: the last 16.
A handle holds the members' shares of it, never the allocation itself: it keeps the memory alive,
and the allocation, which remembers its handles, can go.
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
    """Those of the block at this address, to read and to write."""
    return _Facts.from_address(block + nbytes - ctypes.sizeof(_Facts))


def bytes_at(address, nbytes, owner):
    """A uint8 tensor of that memory, which keeps `owner` alive."""
    if nbytes == 0:
        return torch.empty(0, dtype=torch.uint8, device="cpu")
    memory = (ctypes.c_char * nbytes).from_address(address)
    memory.owner = owner
    return torch.frombuffer(memory, dtype=torch.uint8)


def tensor_in(storage, sizes, stride, dtype, offset=0):
    """A tensor, not a view of one, in this storage; offset in elements."""
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
    """Elements from `offset` on lie within `limit` bytes of a member's."""
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
    """What the members of a group have of each other's allocations; see weft.torch.rendezvous."""

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
        """The address of an array of buffer_ptrs, for kernels."""
        return self._buffer_array.data_ptr()

    @property
    def signal_pad_ptrs_dev(self):
        """The address of an array of signal_pad_ptrs, for kernels."""
        return self._pad_array.data_ptr()

    def get_buffer(self, rank, sizes, dtype, storage_offset=0):
        """Rank's memory from its beginning on, storage_offset in elements of dtype; contiguous."""
        check_view("get_buffer", self, rank, self.buffer_size, sizes, dtype, storage_offset)
        if self._buffers[rank] is None:
            base = bytes_at(self.buffer_ptrs[rank], self.buffer_size, self._share)
            self._buffers[rank] = base.untyped_storage()
        return _view(self._buffers[rank], sizes, dtype, storage_offset)

    def get_remote_tensor(self, peer, sizes, dtype):
        """Peer's tensor of these sizes, where this rank's tensor begins in its allocation."""
        check_type("get_remote_tensor", dtype)
        return self.get_buffer(peer, sizes, dtype, self.offset // dtype.itemsize)

    def get_signal_pad(self, rank, sizes=(), dtype=None, storage_offset=0):
        """Rank's pad, of uint32 unless told; all of it where no sizes are given."""
        dtype = dtype or torch.uint32
        check_type("get_signal_pad", dtype)
        sizes = tuple(sizes) or (self.signal_pad_size // dtype.itemsize,)
        check_view("get_signal_pad", self, rank, self.signal_pad_size, sizes, dtype, storage_offset)
        if self._pads[rank] is None:
            base = bytes_at(self.signal_pad_ptrs[rank], self.signal_pad_size, self._share)
            self._pads[rank] = base.untyped_storage()
        return _view(self._pads[rank], sizes, dtype, storage_offset)

    def barrier(self, channel=0, timeout_ms=0):
        """Returns when all members have come; sees what they wrote before."""
        self._check_channel(channel)
        self._on_pads(weft.pad_barrier, channel, timeout_ms=timeout_ms)

    def put_signal(self, dst_rank, channel=0, timeout_ms=0):
        """Sets my word in the pad of dst_rank, as soon as it has taken the one before."""
        self._check_rank("dst_rank", dst_rank)
        self._check_channel(channel)
        self._on_pads(weft.pad_put, dst_rank, channel, timeout_ms=timeout_ms)

    def wait_signal(self, src_rank, channel=0, timeout_ms=0):
        """Waits for the word of src_rank in my pad and takes it. For timeout_ms, if it is not 0: what
        is raised then is a RuntimeError, and a TimeoutError."""
        self._check_rank("src_rank", src_rank)
        self._check_channel(channel)
        self._on_pads(weft.pad_wait, src_rank, channel, timeout_ms=timeout_ms)

    def _on_pads(self, call, *args, **options):
        try:
            call(self.signal_pad_ptrs_dev, self.rank, self.world_size, *args, **options)
        except TimeoutError as error:
            raise TimedOutError(str(error)) from None

    def get_peer_cft_handle(self, peer):
        """Raises RuntimeError: these are coordinates of NCCL's."""
        refuse_cft("get_peer_cft_handle")

    def get_multimem_cft_handle(self):
        """Raises RuntimeError: these are coordinates of NCCL's."""
        refuse_cft("get_multimem_cft_handle")

    def boxed(self):
        """The handle for torch.ops: of PyTorch's class alone, which handles are after install()."""
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
