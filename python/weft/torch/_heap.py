# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric tensors that all ranks make together, with a signal pad behind each:

    | the tensor's bytes | zeros up to 64 | signal pad |

Memory comes back when all ranks have let go of it: their tensors are gone, with all views. What a
rank has enqueued on CUDA streams until then may still use it, so there it is kept until those
streams have come to their end.
"""
import itertools
import math
import weakref

import torch

import weft
from weft.torch._handle import contiguous_strides, pad_begin
from weft.torch._lanes import lane_of

devices = set()  # that have had tensors of this page: the same on all ranks
_numbers = itertools.count()
_regions = weakref.WeakValueDictionary()  # by the address of the storage
_streams = {}    # lanes that have been given work on symmetric memory, by their stream
_gone = []       # buffers without a storage
_kept = []       # (marks, buffers): until the marks have been passed


class Region:
    """The memory of one tensor. Collective: all ranks make the same."""

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
        """Its storage keeps the region, as all its views do."""
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
        """Where this rank, or its GPU, finds that of another."""
        return self.buffer.peer(rank).ptr + self.begin

    def bytes(self, rank):
        """Another rank's, as a tensor."""
        return torch.from_dlpack(self.buffer.peer(rank))[self.begin:]


def region_of(tensor):
    """None for memory that is not of this page."""
    return _regions.get(tensor.untyped_storage().data_ptr())


def place_of(tensor):
    """What is the same on all ranks for the same place."""
    region = region_of(tensor)
    begin = tensor.storage_offset() * tensor.element_size() - (region.begin if region else 0)
    return f"byte {begin} of " + (f"tensor {region.number}" if region else "other memory")


def _drop(region):
    """The storage is gone. May be called by any thread, at any time: no call of CUDA's here."""
    if region.device.type != "cpu":
        _gone.append(region.buffer)


# --- Streams -------------------------------------------------------------------------------------

def note(lane):
    """The lane is given work on symmetric memory."""
    if lane.stream is not None:
        _streams[lane.stream.device_index, lane.stream.cuda_stream] = lane


def noted(lane):
    """What the lane has to follow before others may know that all of it is done."""
    return [] if lane.stream is None else list(_streams.values())


def _collect():
    """Lets go of what no stream can be using any more."""
    _kept[:] = [(marks, buffers) for marks, buffers in _kept if not all(m.query() for m in marks)]
    gone = [_gone.pop() for _ in range(len(_gone))]
    if gone:
        lanes = [lane_of(torch.device("cuda", weft.device())), *_streams.values()]
        _kept.append(([lane.mark() for lane in lanes], gone))


def _allocate(nbytes, device):
    """Where there is no memory left, what was kept is waited for: on all ranks, because all of them
    fail together."""
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
