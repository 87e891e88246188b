# SPDX-License-Identifier: BSD-3-Clause
"""torch.ops.weft.* on CUDA tensors: small tensors by Weft's kernels (_kernels.py), other tensors by PyTorch's operators
on Weft's memory, or by copies from the peers where PyTorch has no operator.
"""
import torch

from weft.torch import _kernels, _memory
from weft.torch._check import check_dim, check_divisible, check_reduce_op
from weft.torch._collectives import fold
from weft.torch._exchange import split_sizes
from weft.torch._groups import group_of
from weft.torch._exchange_cuda import exchange, exchange_sizes

CUDA = torch.device("cuda")
TWO_SHOTS_FROM_BYTES = 1 << 18

_reductions = {
    "sum": lambda parts: parts.sum(0, dtype=parts.dtype),
    "avg": lambda parts: parts.mean(0),
    "max": lambda parts: parts.amax(0),
    "min": lambda parts: parts.amin(0),
    "prod": lambda parts: parts.prod(0, dtype=parts.dtype),
}


def _wait(tensor):
    return torch.ops._c10d_functional.wait_tensor(tensor)


def gather_rows(rows, group_name):
    """Returns the members' rows: (members, *rows.shape)."""
    _memory.registered(CUDA)
    group, rows = group_of(group_name), rows.contiguous()
    if rows.numel() == 0:
        return rows.new_empty((group.size, *rows.shape))
    gathered = _kernels.all_gather(rows, group)
    if gathered is None:
        gathered = _wait(torch.ops.symm_mem._low_contention_all_gather(rows.view(1, -1), group_name))
    return gathered.view(group.size, *rows.shape)


def all_gather(input, gather_dim, group_name):
    dim = check_dim("all_gather", "gather_dim", gather_dim, input)
    return gather_rows(input.detach().movedim(dim, 0), group_name).flatten(0, 1).movedim(0, dim)


def reduce_scatter(input, reduce_op, scatter_dim, group_name):
    call, group = "reduce_scatter", group_of(group_name)
    dim = check_dim(call, "scatter_dim", scatter_dim, input)
    check_divisible(call, input, dim, group.size)
    check_reduce_op(call, reduce_op)
    return _scatter_parts(fold(input.detach(), dim, group.size), reduce_op, group)


def _scatter_parts(parts, reduce_op, group):
    _memory.registered(CUDA)
    if parts.numel() == 0:
        return parts.new_empty(parts.shape[1:])
    if reduce_op not in ("sum", "avg") or not parts.is_floating_point():
        return _reductions[reduce_op](gather_rows(parts, group.name)[:, group.rank])
    flat = parts.contiguous().view(group.size, -1)
    reduced = _kernels.reduce_scatter(flat, reduce_op, group)
    if reduced is None:
        reduced = _wait(torch.ops.symm_mem._low_contention_reduce_scatter(flat, reduce_op, group.name))
    return reduced.view(parts.shape[1:])


def all_reduce(input, reduce_op, group_name):
    """Small tensors take one shot. All algorithms add in one order, so every member gets the same bits."""
    check_reduce_op("all_reduce", reduce_op)
    group, source = group_of(group_name), input.detach().contiguous()
    _memory.registered(CUDA)
    reduced = _kernels.all_reduce(source, reduce_op, group)
    if reduced is not None:
        return reduced
    small = source.numel() * source.element_size() < TWO_SHOTS_FROM_BYTES
    if small or source.numel() % group.size:
        return _reductions[reduce_op](gather_rows(source, group_name))
    part = _scatter_parts(source.view(group.size, -1), reduce_op, group)
    return gather_rows(part, group_name).view(source.shape)


def all_to_all(input, output_splits, input_splits, group_name):
    group, source = group_of(group_name), input.detach().contiguous()
    sent, taken = split_sizes(source, output_splits, input_splits, group.size)
    table = exchange_sizes(lambda sizes: gather_rows(sizes, group_name), sent, taken, source.device)
    alike = all(rows == sent[0] for pair in table for part in pair for rows in part)
    exchanged = _kernels.all_to_all(source, group) if alike else None
    if exchanged is not None:
        return exchanged
    dest = source.new_empty((sum(taken), *source.shape[1:]))
    exchange(table, group, dest, taken, source, sent)
    return dest


def with_memory(function):
    """Returns the function with Weft's memory in PyTorch's registry."""
    def call(*args, **kwargs):
        _memory.registered(CUDA)
        return function(*args, **kwargs)
    return call


def forward(name):
    """Returns PyTorch's operator of that name, which _nvshmem.py replaces where Weft multiplies."""
    return with_memory(lambda *args, **kwargs: getattr(torch.ops.symm_mem, name)(*args, **kwargs))
