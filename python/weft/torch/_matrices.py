# SPDX-License-Identifier: BSD-3-Clause
"""Blocks of symmetric matrices, copied or summed in place, on any device. Each rank reads its blocks from its peers'
matrices, between two barriers of their handle, in the order of the stream.

    all_to_all_nd           blocks of equal size, one for each rank, along either dimension
    reduce_scatter_offset   blocks of any size, each summed by the rank that gets it
"""
import itertools

import torch

from weft.torch._check import check_contiguous, check_dtype, check_symmetric
from weft.torch._errors import ArgumentError
from weft.torch._groups import by_either_name
from weft.torch._groups import group_name as name_of
from weft.torch._operators import without_gradient
from weft.torch._peers import at_peer

_HALVES = (torch.bfloat16, torch.float16)
_SUMMED = (torch.float32, torch.float64, *_HALVES, torch.int32, torch.int64)


def _check(right, call, complaint):
    if not right:
        raise ArgumentError(f"{call}: {complaint}")


def _check_rows(call, input):
    _check(input.stride(-1) == 1 or input.shape[-1] <= 1, call,
           f"got input with strides {input.stride()}, expected rows to be contiguous")


# --- Equal blocks ------------------------------------------------------------------------------------

def _cut(call, input, dim, parts):
    """Returns the input with `dim` divided into that many parts, unless it is divided already."""
    if input.dim() == 2:
        _check(input.shape[dim] % parts == 0, call,
               f"got {input.shape[dim]} in dimension {dim} of input, expected a multiple of the {parts} members")
        return input.unflatten(dim, (parts, input.shape[dim] // parts))
    _check(input.dim() == 3 and input.shape[dim] == parts, call,
           f"got input of {list(input.shape)}, expected two dimensions, or three with the {parts} members as "
           f"dimension {dim}")
    return input


@by_either_name
@without_gradient
def all_to_all_nd(input, out, scatter_dim, gather_dim, *, group):
    """Sends block r along scatter_dim of the ranks' symmetric inputs to rank r, which concatenates the blocks along
    gather_dim of `out`. (scatter_dim, gather_dim) is (1, 0) or (0, 1).

    input: of two dimensions, or of three with the members as dimension scatter_dim; rows are contiguous. out:
    contiguous, of three dimensions with the members as dimension gather_dim, or with that dimension and the next one
    flattened. Any dtype. Otherwise raises an exception that is both ValueError and RuntimeError."""
    call = "all_to_all_nd"
    _check((scatter_dim, gather_dim) in ((1, 0), (0, 1)), call,
           f"got scatter_dim {scatter_dim} and gather_dim {gather_dim}, expected 1 and 0, or 0 and 1")
    handle = check_symmetric(call, "input", input, name_of(group))
    _check_rows(call, input)
    check_contiguous(call, "out", out)
    blocks = _cut(call, input, scatter_dim, handle.world_size)
    sizes = list(blocks.select(scatter_dim, 0).shape)
    sizes.insert(gather_dim, handle.world_size)
    flat = torch.empty(sizes, device="meta").flatten(gather_dim, gather_dim + 1).shape
    _check(out.dtype == input.dtype and out.device == input.device and list(out.shape) in (sizes, list(flat)), call,
           f"got out of {list(out.shape)} {out.dtype} on {out.device}, expected {sizes} or {list(flat)} "
           f"{input.dtype} on {input.device}")
    gathered = out.view(sizes)
    handle.barrier()
    for step in range(handle.world_size):
        peer = (handle.rank + step) % handle.world_size
        theirs = _cut(call, at_peer(handle, input, peer), scatter_dim, handle.world_size)
        gathered.select(gather_dim, peer).copy_(theirs.select(scatter_dim, handle.rank))
    handle.barrier()


# --- Blocks that are summed --------------------------------------------------------------------------

def _ends(call, input, dim, offsets, members):
    """Returns where the blocks end along dim."""
    length = input.shape[dim]
    if offsets is None:
        _check(length % members == 0, call, f"got {length} in dimension {dim} of input and no offsets, expected a "
                                            f"multiple of the {members} members")
        offsets = range(length // members, length + 1, length // members) if length else [0] * members
    ends = list(offsets)
    _check(all(begin <= end <= length for begin, end in zip([0, *ends], ends)), call,
           f"got offsets {ends}, expected numbers that do not fall, from 0 to {length}")
    return ends


def _check_outs(call, input, dim, out, owned):
    _check(len(out) == len(owned), call, f"got {len(out)} tensors in out, expected {len(owned)}, one for each block "
                                         "of this rank")
    for each, (begin, end) in zip(out, owned):
        check_contiguous(call, "out", each)
        sizes = list(input.shape)
        sizes[dim] = end - begin
        _check(list(each.shape) == sizes and each.dtype == input.dtype, call,
               f"got {list(each.shape)} {each.dtype} in out, expected {sizes} {input.dtype}")


@by_either_name
@without_gradient
def reduce_scatter_offset(input, out, group, *, dim, offsets=None, dst_ranks=None, red_op="sum"):
    """Sums blocks of the ranks' symmetric matrices; each sum goes to one rank.

    Block i reaches from offsets[i - 1] (0 for the first) to offsets[i] along dim, 0 or 1, and its sum goes to rank
    dst_ranks[i]. By default there is one block for each rank, all equal, and block i goes to rank i % members. out: a
    contiguous tensor for each block that this rank gets, in order. Rows of input are contiguous. 16-bit types are added
    in 32 bits and rounded once, in order of rank. For invalid arguments raises an exception that is both ValueError and
    RuntimeError."""
    call = "reduce_scatter_offset"
    _check(input.dim() == 2, call, f"got input of {list(input.shape)}, expected two dimensions")
    _check(dim in (0, 1), call, f"got dim {dim}, expected 0 or 1")
    _check(red_op == "sum", call, f"got red_op {red_op!r}, expected 'sum'")
    check_dtype(call, "input", input, _SUMMED)
    _check_rows(call, input)
    handle = check_symmetric(call, "input", input, name_of(group))
    ends = _ends(call, input, dim, offsets, handle.world_size)
    ranks = [i % handle.world_size for i in range(len(ends))] if dst_ranks is None else list(dst_ranks)
    _check(len(ranks) == len(ends) and all(0 <= rank < handle.world_size for rank in ranks), call,
           f"got dst_ranks {ranks}, expected {len(ends)}, each in [0, {handle.world_size})")
    owned = [block for block, rank in zip(itertools.pairwise([0, *ends]), ranks) if rank == handle.rank]
    _check_outs(call, input, dim, out, owned)
    handle.barrier()
    for each, (begin, end) in zip(out, owned):
        _sum_into(each, [at_peer(handle, input, peer).narrow(dim, begin, end - begin)
                         for peer in range(handle.world_size)])
    handle.barrier()


def _sum_into(out, parts):
    wide = torch.float32 if out.dtype in _HALVES else out.dtype
    total = parts[0].to(wide, copy=True)
    for part in parts[1:]:
        total += part
    out.copy_(total)
