# SPDX-License-Identifier: BSD-3-Clause
"""Collectives and products on lanes. Floats are multiplied by Weft's operators, which overlap their communication; for
other types the product and the collective follow each other.
"""
import torch

import weft
from weft.torch._collectives import factor, has_rows
from weft.torch._products import MULTIPLIED


def raw(tensor):
    """Returns the tensor as bytes, a type that all calls support."""
    return tensor.view(-1).view(torch.uint8)


def _by_weft(world, lane, product, *arguments):
    """Calls one of Weft's products. Returns False, on all ranks, for other types, and on the CPU if there is no library
    for products, which the call finds out before it communicates."""
    if arguments[0].dtype not in MULTIPLIED:
        return False
    try:
        lane(product, *arguments, team=world.team, stream=lane.stream)
    except NotImplementedError:
        if not lane.at_once:
            raise
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


def all_gather_matmul(world, lane, a, b, c, gathered):
    """Computes gathered = the ranks' a, concatenated, and c = gathered @ b; a does not overlap the results."""
    product = c if has_rows(c) else c.new_empty(c.shape)
    if not _by_weft(world, lane, weft.all_gather_matmul, product, factor(a), factor(b), gathered):
        all_gather(world, lane, gathered, a.contiguous())
        lane(torch.mm, gathered, b, out=product)
    if product is not c:
        lane(c.copy_, product)


def matmul_reduce_scatter(world, lane, x1, x2, parts, average):
    """Returns this rank's rows of the sum of the ranks' x1 @ x2. parts: room for the products of all ranks for this
    rank. Floats of 16 bits are summed in 32 bits and rounded once."""
    rows, n = x1.shape[0] // world.size, x2.shape[1]
    output = x1.new_empty((rows, n))
    if not _by_weft(world, lane, weft.matmul_reduce_scatter, output, factor(x1), factor(x2),
                    "avg" if average else "sum"):
        product = x1.new_empty((x1.shape[0], n))
        lane(torch.mm, x1, x2, out=product)
        lane(weft.all_to_all, raw(parts), raw(product), team=world.team, stream=lane.stream)
        lane(_mean if average else _sum, parts.view(world.size, rows, n), output)
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
