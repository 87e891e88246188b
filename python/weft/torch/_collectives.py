# SPDX-License-Identifier: BSD-3-Clause
"""Collectives on CPU tensors by Weft's operators: gathers, scatters, reductions.

Weft's operators divide the first dimension among the members, so the dimension in question is moved to the front, and
back in the result. A tensor with this layout is not copied. Arguments are checked before anything is sent.
"""
import torch

import weft
from weft.torch._check import (check_contiguous, check_dim, check_divisible, check_dtype,
                               check_reduce_op, check_same, check_symmetric)
from weft.torch._groups import group_of
from weft.torch._products import MULTIPLIED

REDUCED = MULTIPLIED


def plain(tensor):
    """Returns the tensor for Weft: contiguous, and detached from autograd."""
    return tensor.detach().contiguous()


def has_rows(matrix):
    """Returns whether Weft's products accept the layout: contiguous rows that do not overlap."""
    return matrix.stride(1) == 1 and matrix.stride(0) >= matrix.shape[1]


def has_columns(matrix):
    return matrix.stride(0) == 1 and matrix.stride(1) >= matrix.shape[0]


def factor(matrix):
    """Returns a factor for Weft's products: as it is if its rows or its columns are contiguous, otherwise a contiguous
    copy."""
    return matrix if matrix.is_contiguous() or has_rows(matrix) or has_columns(matrix) else plain(matrix)


def fold(tensor, dim, parts):
    """Returns the tensor with `dim` divided into equal parts, the parts in front: (parts, *sizes)."""
    return tensor.unflatten(dim, (parts, tensor.shape[dim] // parts)).movedim(dim, 0)


def all_gather(input, gather_dim, group_name):
    group = group_of(group_name)
    dim = check_dim("all_gather", "gather_dim", gather_dim, input)
    shard = plain(input.movedim(dim, 0))
    gathered = shard.new_empty((shard.shape[0] * group.size, *shard.shape[1:]))
    weft.all_gather(gathered, shard, team=group.team)
    return gathered.movedim(0, dim)


def reduce_scatter(input, reduce_op, scatter_dim, group_name):
    group = group_of(group_name)
    dim = check_dim("reduce_scatter", "scatter_dim", scatter_dim, input)
    check_divisible("reduce_scatter", input, dim, group.size)
    check_reduce_op("reduce_scatter", reduce_op)
    parts = plain(fold(input, dim, group.size))
    reduced = parts.new_empty(parts.shape[1:])
    weft.reduce_scatter(reduced, parts, op=reduce_op, team=group.team)
    return reduced


def all_reduce(input, reduce_op, group_name):
    group = group_of(group_name)
    check_reduce_op("all_reduce", reduce_op)
    source = plain(input)
    reduced = source.new_empty(source.shape)
    weft.all_reduce(reduced, source, op=reduce_op, team=group.team)
    return reduced


# --- On symmetric tensors, as torch.ops.symm_mem has them ---------------------------------------


def _sum(call, input, reduce_op, group_name, output):
    """Writes the sum of the members' inputs to output."""
    if reduce_op != "sum":
        raise RuntimeError(f"{call}: got reduce_op {reduce_op!r}, expected 'sum'")
    check_contiguous(call, "input", input)
    check_contiguous(call, "output", output)
    check_dtype(call, "input", input, REDUCED)
    check_same(call, "output", output, input)
    weft.all_reduce(output.detach(), input.detach(), op="sum", team=group_of(group_name).team)
    return output


def one_shot_all_reduce(input, reduce_op, group_name):
    return one_shot_all_reduce_out(input, reduce_op, group_name, torch.empty_like(input))


def one_shot_all_reduce_out(input, reduce_op, group_name, out):
    check_symmetric("one_shot_all_reduce", "input", input, group_name)
    return _sum("one_shot_all_reduce", input, reduce_op, group_name, out)


def one_shot_all_reduce_copy(symm_buffer, local_input, reduce_op, group_name):
    out = torch.empty_like(local_input)
    return one_shot_all_reduce_copy_out(symm_buffer, local_input, reduce_op, group_name, out)


def one_shot_all_reduce_copy_out(symm_buffer, local_input, reduce_op, group_name, out):
    """Copies local_input into symm_buffer, which may be larger, and reduces that."""
    call = "one_shot_all_reduce_copy"
    check_symmetric(call, "symm_buffer", symm_buffer, group_name)
    if local_input.numel() > symm_buffer.numel():
        raise RuntimeError(f"{call}: got {local_input.numel()} elements, expected at most the "
                           f"{symm_buffer.numel()} of symm_buffer")
    check_contiguous(call, "local_input", local_input)
    through = symm_buffer.flatten()[:local_input.numel()].view_as(local_input)
    through.copy_(local_input)
    return _sum(call, through, reduce_op, group_name, out)


def two_shot_all_reduce_(input, reduce_op, group_name):
    check_symmetric("two_shot_all_reduce_", "input", input, group_name)
    return _sum("two_shot_all_reduce_", input, reduce_op, group_name, input)


def two_shot_all_reduce_out(input, reduce_op, group_name, output):
    check_symmetric("two_shot_all_reduce_out", "input", input, group_name)
    return _sum("two_shot_all_reduce_out", input, reduce_op, group_name, output)


def reduce_scatter_out(input, group_name, split_last_dim, output):
    """Sums parts of a 1-D tensor, or of each row along the last dimension."""
    call, group = "reduce_scatter_out", group_of(group_name)
    check_symmetric(call, "input", input, group_name)
    check_contiguous(call, "input", input)
    check_contiguous(call, "output", output)
    if not split_last_dim and input.dim() != 1:
        raise RuntimeError(f"{call}: got an input of {input.dim()} dimensions, expected one, or "
                           "split_last_dim=True")
    check_dtype(call, "input", input, REDUCED)
    check_divisible(call, input, input.dim() - 1, group.size, RuntimeError)
    expected = [*input.shape[:-1], input.shape[-1] // group.size]
    if list(output.shape) != expected or output.dtype != input.dtype:
        raise RuntimeError(f"{call}: got an output of {list(output.shape)} {output.dtype}, "
                           f"expected {expected} {input.dtype}")
    parts = plain(fold(input, input.dim() - 1, group.size))
    weft.reduce_scatter(output.detach(), parts, op="sum", team=group.team)
    return output


def low_contention_all_gather(tensor, group_name):
    return all_gather(tensor, 0, group_name)


def low_contention_reduce_scatter(tensor, reduce_op, group_name):
    if reduce_op not in ("sum", "avg"):
        raise ValueError(f"reduce_op ({reduce_op}) is not supported; expected sum or avg")
    return reduce_scatter(tensor, reduce_op, 0, group_name)
