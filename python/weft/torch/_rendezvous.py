# SPDX-License-Identifier: BSD-3-Clause
"""Handles of the symmetric tensors of _heap.py, with the members of torch.distributed's handles."""
import math

import torch
from torch._C._distributed_c10d import _SymmetricMemory

import weft
from weft.torch import _heap
from weft.torch._check import check_tensor
from weft.torch._handle import Handle, check_view
from weft.torch._lanes import lane_of
from weft.torch._world import world


def signal_pad_size():
    return _SymmetricMemory.signal_pad_size


def set_signal_pad_size(size):
    if type(size) is not int or size < 0:
        raise ValueError(f"set_signal_pad_size: got {size!r}, expected a number of bytes")
    _SymmetricMemory.signal_pad_size = size


class _Share:
    """The addresses of the members' memory, which lives as long as the handle."""

    def __init__(self, region, pes):
        self.region, self.pes = region, pes

    def ptr(self, member):
        return self.region.ptr(self.pes[member])


class DeviceHandle(Handle):
    """A handle on GPU memory; its calls are in the order of the current stream."""

    def __init__(self, group, share, buffer_bytes, pad_bytes):
        super().__init__(group, share, buffer_bytes, pad_bytes)
        self.device = share.region.device
        self._buffer_array = self._buffer_array.to(self.device)
        self._pad_array = self._pad_array.to(self.device)

    def get_buffer(self, rank, sizes, dtype, storage_offset=0):
        return self._view("get_buffer", rank, 0, self.buffer_size, sizes, dtype, storage_offset)

    def get_signal_pad(self, rank, sizes=(), dtype=None, storage_offset=0):
        dtype = dtype or torch.uint32
        sizes = tuple(sizes) or (self.signal_pad_size // dtype.itemsize,)
        return self._view("get_signal_pad", rank, self._share.region.pad_begin,
                          self.signal_pad_size, sizes, dtype, storage_offset)

    def barrier(self, channel=0, timeout_ms=0):
        self._check_channel(channel)
        self._on_pads(weft.pad_barrier, channel, timeout_ms=timeout_ms, stream=self._stream())

    def put_signal(self, dst_rank, channel=0, timeout_ms=0):
        self._check_rank("dst_rank", dst_rank)
        self._check_channel(channel)
        self._on_pads(weft.pad_put, dst_rank, channel, timeout_ms=timeout_ms, stream=self._stream())

    def wait_signal(self, src_rank, channel=0, timeout_ms=0):
        self._check_rank("src_rank", src_rank)
        self._check_channel(channel)
        self._on_pads(weft.pad_wait, src_rank, channel, timeout_ms=timeout_ms, stream=self._stream())

    def _on_pads(self, *args, **options):
        """Makes the device current, because the default stream is that of the current device."""
        with torch.cuda.device(self.device):
            super()._on_pads(*args, **options)

    def _stream(self):
        lane = lane_of(self.device)
        _heap.note(lane)
        return lane.stream

    def _view(self, call, rank, begin, limit, sizes, dtype, offset):
        check_view(call, self, rank, limit, sizes, dtype, offset)
        end = (offset + math.prod(sizes)) * dtype.itemsize
        part = self._share.region.bytes(self._share.pes[rank])[begin:begin + end]
        return part[offset * dtype.itemsize:].view(dtype).view(tuple(sizes))


def _members(group):
    from weft.torch._groups import group_of
    return group_of(group)


def handle_of(tensor, group):
    """Returns the handle, the same one for all tensors of one storage."""
    region = _heap.region_of(check_tensor("rendezvous", "tensor", tensor))
    if region is None:
        raise ValueError("rendezvous: got a tensor in other memory, expected one of empty()")
    members = world() if group is None else _members(group)
    key = members.name, tuple(members.pes)
    if key not in region.handles:
        kind = Handle if region.device.type == "cpu" else DeviceHandle
        region.handles[key] = kind(members, _Share(region, members.pes), region.nbytes,
                                   region.pad_bytes)
    return region.handles[key]
