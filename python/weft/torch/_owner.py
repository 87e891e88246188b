# SPDX-License-Identifier: BSD-3-Clause
"""Owners of symmetric tensors: each part of a program can have its own owner, and close it."""
import math
import os
import weakref

import torch
import torch.distributed as dist

import weft
from weft.torch import _heap
from weft.torch._call import sequence
from weft.torch._check import check_tensor
from weft.torch._handle import check_type
from weft.torch._lanes import lane_of
from weft.torch._rendezvous import signal_pad_size
from weft.torch._world import world

_HEAP_SIZE = "SYMMETRIC_MEMORY_HEAP_SIZE"
ALIGNMENT_MAX = 4096
_BYTES_MAX = 1 << 62


class _Lifetime:
    """State from the first owner until the last one is closed."""

    owners = 0
    heap_bytes = None


def _wanted_heap_bytes():
    text = os.environ.get(_HEAP_SIZE)
    if text is None:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"got {_HEAP_SIZE} {text!r}, expected a positive number of bytes")
    return int(text)


def _check_group(group):
    if group is None:
        return
    if not dist.is_initialized():
        raise RuntimeError("acquire_symmetric_memory: got a group, expected None, for "
                           "torch.distributed has not been initialised")
    ranks = dist.get_process_group_ranks(group)
    if ranks != list(range(dist.get_world_size())):
        raise ValueError(f"acquire_symmetric_memory: got a group of ranks {ranks}, expected the whole "
                         "distributed world in its order")


def _default_device():
    if not torch.cuda.is_available():
        return torch.device("cpu")
    if torch.cuda.is_initialized():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cuda", weft.device())


def _check_device(device):
    device = torch.device(device)
    if device.type == "cpu":
        return torch.device("cpu")
    if device.type != "cuda":
        raise ValueError(f"empty: got device {device}, expected cpu or cuda")
    mine = torch.device("cuda", weft.device())
    if device.index not in (None, mine.index):
        raise ValueError(f"empty: got device {device}, expected {mine}, this rank's GPU")
    return mine


def _check_shape(shape, dtype):
    sizes = [shape] if isinstance(shape, int) else list(sequence("empty", "shape", shape))
    if not sizes or not all(type(size) is int and size > 0 for size in sizes):
        raise ValueError(f"empty: got shape {shape!r}, expected positive whole numbers")
    check_type("empty", dtype)
    if math.prod(sizes) * dtype.itemsize > _BYTES_MAX:
        raise ValueError(f"empty: got shape {shape!r} of {dtype}, expected {_BYTES_MAX} bytes at most")
    return sizes


class Owner:
    """Allocates and frees symmetric tensors; all ranks make the same calls. A tensor that is garbage-collected is
    freed."""

    def __init__(self, group=None):
        _check_group(group)
        wanted = _wanted_heap_bytes()
        self._world = world()
        self._regions = weakref.WeakSet()
        self._closed = False
        self._reserve(wanted)
        _Lifetime.owners += 1

    @staticmethod
    def _reserve(wanted):
        """Allocates a heap of the requested size at once; without a request the heap grows as needed."""
        active = _Lifetime.heap_bytes
        if _Lifetime.owners and active is not None and (wanted or 0) > active:
            raise RuntimeError(f"acquire_symmetric_memory: the active heap of {active} bytes is "
                               f"smaller than the requested {wanted}, of {_HEAP_SIZE}")
        if not _Lifetime.owners:
            _Lifetime.heap_bytes = wanted
            if wanted is not None:
                space = "device" if torch.cuda.is_available() else "host"
                weft.empty(wanted, "uint8", space=space).free()

    @property
    def closed(self):
        return self._closed

    def empty(self, shape, dtype, device=None):
        """Makes a symmetric tensor; see SymmetricMemoryHandler.empty."""
        return self.aligned_empty(shape, dtype, 1, device)

    def aligned_empty(self, shape, dtype, alignment, device=None):
        """Makes a symmetric tensor whose address is a multiple of `alignment`, a power of two up to 4096."""
        self._check_open()
        sizes = _check_shape(shape, dtype)
        if type(alignment) is not int or not 0 < alignment <= ALIGNMENT_MAX or \
                alignment & (alignment - 1):
            raise ValueError(f"aligned_empty: got alignment {alignment!r}, expected a power of two up "
                             f"to {ALIGNMENT_MAX}")
        device = _default_device() if device is None else _check_device(device)
        region = _heap.Region(sizes, dtype, signal_pad_size(), device, alignment)
        self._regions.add(region)
        return region.tensor()

    def free(self, tensor):
        """Frees a tensor, or the tensor that it is a view of; neither has elements afterwards. ValueError if the tensor
        is not this owner's."""
        self._check_open()
        check_tensor("free", "tensor", tensor)
        region = _heap.region_of(tensor)
        if region is None or region not in self._regions:
            raise ValueError("free: got a tensor that this owner has not made, or has freed")
        self._regions.discard(region)
        region.let_go()
        tensor.set_()

    def barrier(self):
        """See SymmetricMemoryHandler.barrier."""
        self._check_open()
        self._meet()

    def _meet(self):
        lanes = [lane_of(device) for device in _heap.devices or [_default_device()]]
        captured = any(lane.is_captured() for lane in lanes)
        for lane in lanes:
            if lane.at_once and captured:
                continue
            for other in _heap.noted(lane):
                lane.follows(other)
            self._world.enter(lane)
            self._world.barrier(lane)

    def close(self):
        """Frees all of this owner's tensors, after the ranks have met. Collective; a second call does nothing. Closing
        the last owner frees what the owners share."""
        if self._closed:
            return
        self._closed = True
        try:
            self._meet()
            for device in _heap.devices:
                if device.type == "cuda":
                    torch.cuda.synchronize(device)
        finally:
            for region in list(self._regions):
                region.let_go()
            _Lifetime.owners -= 1
            if not _Lifetime.owners:
                self._world.close()

    def _check_open(self):
        if self._closed:
            raise RuntimeError("got a call of a closed owner of symmetric memory, expected one before "
                               "close()")
