# SPDX-License-Identifier: BSD-3-Clause
"""Collectives and products on lanes: puts go on beside the products that they hide behind.

Signals are 0 or 1. A call clears its own in a side lane, and then all ranks meet there: nobody puts
before every peer has come so far, which also says that it has done with what the call before left
in its symmetric tensors. So calls may follow one another at once, with the same signals, whatever
those hold at first; and a graph may be replayed.
"""
import contextlib

import torch

import weft

COPY_ENGINE_BYTES = 512 << 10
# What goes to one rank takes a few microseconds below this: less than hiding it costs.
HIDDEN_BYTES_MIN = 8 << 20
_MULTIPLIED = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def flat(tensor):
    return tensor.view(-1)


def raw(tensor):
    """Bytes: a type that all calls know."""
    return tensor.view(-1).view(torch.uint8)


def weft_multiplies(*matrices):
    """Whether Weft's own operators take them: a matter of their type, and of whole rows."""
    return all(matrix.dtype in _MULTIPLIED and matrix.dim() == 2 and matrix.stride(1) == 1 and
               matrix.stride(0) >= matrix.shape[1] for matrix in matrices)


def by_weft(product, *arguments, team):
    """False, on all ranks, where Weft has no library for products."""
    try:
        product(*arguments, team=team)
    except NotImplementedError:
        return False
    return True


def all_gather(world, lane, output, input):
    lane(weft.all_gather, raw(output), raw(input), team=world.team, stream=lane.stream)


def all_to_all(world, lane, output, sends, offsets):
    """sends[d] goes to rank d, from element offsets[d] of its output on. output: with room for the
    outputs of all ranks."""
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
    """Pieces of so many bytes go by a copy engine: the multiprocessors are for the products. Unless
    the program has chosen an engine."""
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
    """The lane of the puts: begun, and joined with the main lane on the way out."""

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
        """By the main lane, which may have gone further than the side lane has."""
        if self.met is not None:
            self.main.after(self.met)
            self.met = None
        self.main(weft.wait32, self.signals, 1, index=index, stream=self.main.stream)

    def __exit__(self, *_):
        self.main.after(self.lane.mark())


def all_gather_matmul(world, lane, a, b, c, gathered, signals, blocks):
    """gathered = the ranks' a, one behind the other; c = gathered @ b. blocks: (begin, end) rows of
    a, which go and are multiplied one by one. signals: one for each block of each rank."""
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
    """This rank's rows of the sum of the ranks' x1 @ x2. parts: room for the products of all ranks
    for this one. signals: one for each rank. Floats of 16 bits are summed in 32, and rounded once."""
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
    # One addition is rounded once as it is, and takes half the time.
    if len(parts) == 2:
        torch.add(parts[0], parts[1], out=output)
    else:
        torch.sum(parts, 0, dtype=parts.dtype, out=output)


def _mean(parts, output):
    """Averages of integers are integers: rounded towards zero, as NCCL does."""
    if parts.dtype.is_floating_point or parts.dtype.is_complex:
        torch.mean(parts, 0, out=output)
    else:
        _sum(parts, output)
        output.div_(len(parts), rounding_mode="trunc")
