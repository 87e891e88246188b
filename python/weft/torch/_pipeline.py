# SPDX-License-Identifier: BSD-3-Clause
"""Collectives and products on lanes; puts overlap the products.

Signals are 0 or 1. A call clears its signals in a side lane, and then all ranks synchronise there. So no rank puts
before every peer is ready, and has finished with the data that the previous call left in its symmetric tensors. Calls
may therefore follow each other directly with the same signals, whatever their initial values, and a graph may be
replayed.
"""
import contextlib

import torch

import weft
from weft.torch._collectives import REDUCED as MULTIPLIED
from weft.torch._collectives import has_rows

COPY_ENGINE_BYTES = 512 << 10
# Below this size the transfer to one rank takes a few microseconds, less than overlapping costs.
HIDDEN_BYTES_MIN = 8 << 20


def flat(tensor):
    return tensor.view(-1)


def raw(tensor):
    """Returns the tensor as bytes, a type that all calls support."""
    return tensor.view(-1).view(torch.uint8)


def weft_multiplies(*factors, results=()):
    """Returns whether Weft's own operators accept the matrices: their types, and contiguous rows or, for factors,
    columns."""
    return (all(matrix.dtype in MULTIPLIED and matrix.dim() == 2 for matrix in (*factors, *results)) and
            all(has_rows(factor) or has_rows(factor.t()) for factor in factors) and all(map(has_rows, results)))


def by_weft(product, *arguments, team):
    """Calls one of Weft's products. Returns False, on all ranks, if Weft has no library for products."""
    try:
        product(*arguments, team=team)
    except NotImplementedError:
        return False
    return True


def all_gather(world, lane, output, input):
    lane(weft.all_gather, raw(output), raw(input), team=world.team, stream=lane.stream)


def all_to_all(world, lane, output, sends, offsets):
    """Sends sends[d] to rank d, to element offsets[d] of its output and beyond. output: with room for the largest of
    all ranks' outputs."""
    world.barrier(lane)
    for distance in range(world.size):
        peer = (world.rank + distance) % world.size
        lane(weft.put_slice, output, sends[peer], sends[peer].numel(), peer, offsets[peer], 0,
             stream=lane.stream)
    world.barrier(lane)


def all_gather_then_matmul(world, lane, a, b, c, gathered):
    all_gather(world, lane, gathered, a)
    lane(torch.mm, gathered, b, out=c)


def matmul_then_reduce_scatter(world, lane, x1, x2, parts, average):
    product = x1.new_empty((x1.shape[0], x2.shape[1]))
    lane(torch.mm, x1, x2, out=product)
    lane(weft.all_to_all, raw(parts), raw(product), team=world.team, stream=lane.stream)
    return _reduced(lane, parts.view(world.size, -1, x2.shape[1]), average)


@contextlib.contextmanager
def engine_beside_products(lane, nbytes):
    """Selects a copy engine for pieces of that many bytes, to leave the multiprocessors to the products, unless the
    program has selected an engine."""
    if lane.stream is None or nbytes < COPY_ENGINE_BYTES:
        yield
        return
    before = weft.set_engine("copy")
    if before != "auto":
        weft.set_engine(before)
    try:
        yield
    finally:
        weft.set_engine(before)


class _Side:
    """The side lane for the puts: starts after the main lane's current end, and is joined with it on exit."""

    def __init__(self, world, lane, signals):
        self.world, self.main, self.lane, self.signals = world, lane, lane.beside(), signals

    def __enter__(self):
        self.lane.after(self.main.mark())
        self.lane(self.signals.zero_)
        self.world.barrier(self.lane)
        self.met = self.lane.mark()
        return self

    def put(self, dest, begin, source, source_begin, nelems, peer, index):
        self.lane(weft.put_slice_signal, dest, source, nelems, peer, begin, source_begin,
                  self.signals, 1, index=index, stream=self.lane.stream)

    def wait(self, index):
        """Makes the main lane wait, first for the ranks to have synchronised in the side lane."""
        if self.met is not None:
            self.main.after(self.met)
            self.met = None
        self.main(weft.wait32, self.signals, 1, index=index, stream=self.main.stream)

    def __exit__(self, *_):
        self.main.after(self.lane.mark())


def all_gather_matmul(world, lane, a, b, c, gathered, signals, blocks):
    """Computes gathered = the ranks' a, concatenated, and c = gathered @ b. blocks: (begin, end) rows of a, which are
    sent and multiplied one by one. signals: one for each block of each rank."""
    (m, k), rank, size, each = a.shape, world.rank, world.size, len(blocks)
    own = gathered[rank * m:(rank + 1) * m]
    with _Side(world, lane, signals[:size * each]) as side:
        with engine_beside_products(lane, a.nbytes // max(1, each)):
            for distance in range(1, size):
                for i, (begin, end) in enumerate(blocks):
                    side.put(flat(gathered), (rank * m + begin) * k, flat(a), begin * k,
                             (end - begin) * k, (rank + distance) % size, rank * each + i)
        if own.data_ptr() != a.data_ptr():
            side.lane(own.copy_, a)
        lane(torch.mm, a, b, out=c[rank * m:(rank + 1) * m])
        for distance in range(1, size):
            source = (rank - distance) % size
            for i, (begin, end) in enumerate(blocks):
                side.wait(source * each + i)
                rows = slice(source * m + begin, source * m + end)
                lane(torch.mm, gathered[rows], b, out=c[rows])


def matmul_reduce_scatter(world, lane, x1, x2, parts, signals, average):
    """Returns this rank's rows of the sum of the ranks' x1 @ x2. parts: room for the products of all ranks for this
    rank. signals: one for each rank. Floats of 16 bits are summed in 32 bits and rounded once."""
    rank, size = world.rank, world.size
    rows, n = x1.shape[0] // size, x2.shape[1]
    parts = parts.view(size, rows, n)
    products = x1.new_empty((size - 1, rows, n))

    def multiply(peer, out):
        lane(torch.mm, x1[peer * rows:(peer + 1) * rows], x2, out=out)

    with _Side(world, lane, signals[:size]) as side:
        for distance, product in enumerate(products, 1):
            peer = (rank + distance) % size
            multiply(peer, product)
            side.lane.after(lane.mark())
            with engine_beside_products(lane, product.nbytes):
                side.put(flat(parts), rank * rows * n, flat(product), 0, rows * n, peer, rank)
        multiply(rank, parts[rank])
        for distance in range(1, size):
            side.wait((rank - distance) % size)
    return _reduced(lane, parts, average)


def _reduced(lane, parts, average):
    output = parts.new_empty(parts.shape[1:])
    lane(_mean if average else _sum, parts, output)
    return output


def _sum(parts, output):
    # A single addition is rounded once anyway, and takes half the time.
    if len(parts) == 2:
        torch.add(parts[0], parts[1], out=output)
    else:
        torch.sum(parts, 0, dtype=parts.dtype, out=output)


def _mean(parts, output):
    """Averages of integers are integers, rounded towards zero as in NCCL."""
    if parts.dtype.is_floating_point or parts.dtype.is_complex:
        torch.mean(parts, 0, out=output)
    else:
        _sum(parts, output)
        output.div_(len(parts), rounding_mode="trunc")
