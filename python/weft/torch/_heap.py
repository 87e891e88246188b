# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric tensors that all ranks allocate together, each followed by a signal pad:

    | the tensor's bytes | zeros up to 64 | signal pad |

Memory is freed when the tensors and their views are gone on all ranks. Work that a rank enqueued on CUDA streams before
may still use the memory, so that rank keeps it until those streams have passed that point.
"""
import itertools
import math
import weakref

import torch

import weft
from weft.torch._handle import contiguous_strides, pad_begin
from weft.torch._lanes import lane_of

devices = set()  # of tensors made here: the same on all ranks
_numbers = itertools.count()
_regions = weakref.WeakValueDictionary()  # by the storage's address
_streams = {}    # lanes with work on symmetric memory, by stream
_gone = []       # buffers whose storage is gone
_kept = []       # (marks, buffers): kept until the marks have been passed


class Region:
    """The memory of one tensor. Made collectively: all ranks make the same."""

    def __init__(self, sizes, dtype, pad_bytes, device, alignment=1):
        self.sizes, self.dtype, self.device = tuple(sizes), dtype, device
        self.nbytes, self.pad_bytes = math.prod(sizes) * dtype.itemsize, pad_bytes
        self.pad_begin = pad_begin(self.nbytes)
        self.buffer = _allocate(self.pad_begin + pad_bytes + alignment - 1, device)
        self.begin = -self.buffer.ptr % alignment
        self._tensor = None
        self.handles = {}
        self.number = next(_numbers)
        devices.add(device)

    def tensor(self):
        """Makes the tensor. Its storage keeps the region alive, and so do all its views."""
        storage = torch.from_dlpack(self.buffer).untyped_storage()
        made = torch.empty(0, dtype=self.dtype, device=self.device)
        made.set_(storage, self.begin // self.dtype.itemsize, self.sizes,
                  tuple(contiguous_strides(self.sizes)))
        _regions[storage.data_ptr()] = self
        weakref.finalize(storage, _drop, self)
        self._tensor = weakref.ref(made)
        return made

    def let_go(self):
        made = self._tensor()
        if made is not None:
            made.set_()

    def ptr(self, rank):
        """Returns the address of another rank's memory for this rank or its GPU."""
        return self.buffer.peer(rank).ptr + self.begin

    def bytes(self, rank):
        """Returns another rank's memory as a tensor."""
        return torch.from_dlpack(self.buffer.peer(rank))[self.begin:]


def region_of(tensor):
    """Returns the tensor's region, or None for other memory."""
    return _regions.get(tensor.untyped_storage().data_ptr())


def place_of(tensor):
    """Returns a text that is the same on all ranks for the same place."""
    region = region_of(tensor)
    begin = tensor.storage_offset() * tensor.element_size() - (region.begin if region else 0)
    return f"byte {begin} of " + (f"tensor {region.number}" if region else "other memory")


def _drop(region):
    """Called when the storage is gone, by any thread, at any time, so it must not call CUDA."""
    if region.device.type != "cpu":
        _gone.append(region.buffer)


# --- Streams -------------------------------------------------------------------------------------

def note(lane):
    """Records that the lane has work on symmetric memory."""
    if lane.stream is not None:
        _streams[lane.stream.device_index, lane.stream.cuda_stream] = lane


def noted(lane):
    """Returns the lanes that this lane must follow before it can say that all work is done."""
    return [] if lane.stream is None else list(_streams.values())


def _collect():
    """Frees buffers that no stream can be using any more."""
    _kept[:] = [(marks, buffers) for marks, buffers in _kept if not all(m.query() for m in marks)]
    gone = [_gone.pop() for _ in range(len(_gone))]
    if gone:
        lanes = [lane_of(torch.device("cuda", weft.device())), *_streams.values()]
        _kept.append(([lane.mark() for lane in lanes], gone))


def _allocate(nbytes, device):
    """Allocates memory. If there is none left, waits for the kept memory and tries again, on all ranks, because the
    allocation fails on all of them."""
    if device.type == "cpu":
        return weft.zeros(nbytes, "uint8", space="host")
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("empty: got a call while a graph is captured, expected one before")
    _collect()
    try:
        return weft.zeros(nbytes, "uint8", space="device")
    except MemoryError:
        torch.cuda.synchronize(device)
        _gone.clear()
        _kept.clear()
        return weft.zeros(nbytes, "uint8", space="device")
