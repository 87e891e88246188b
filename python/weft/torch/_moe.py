# SPDX-License-Identifier: BSD-3-Clause
"""Dispatch and combine of a mixture of experts, as operators of torch.ops.weft with gradients.

    rows = dispatch(tokens)     gradient of tokens: combine of the rows' gradients
    tokens = combine(rows)      gradient of rows: dispatch of the tokens' gradients

The operators name their weft.MoE by a number, which can be compiled into a graph. Their results have room for the most
rows that may come. On the CPU, what is after the last row is zero, and its source -1; on a GPU it is not written.
"""
import itertools

import torch

from weft.torch import _kernels, _memory
from weft.torch._products import stream_of

_live = {}
_numbers = itertools.count(1)
_connected = set()  # the numbers of those whose GPUs are connected


def register(moe):
    """Returns the number of a weft.MoE."""
    number = next(_numbers)
    _live[number] = moe
    return number


def forget(number):
    _connected.discard(number)
    return _live.pop(number)


def _moe_of(number):
    if number not in _live:
        raise RuntimeError(f"weft.torch.moe: there is no MoE with the number {number}: it was destroyed")
    return _live[number]


def _stream(number, tensor):
    """Returns the current stream of a CUDA tensor's GPU, which must be this PE's, and None for the CPU. The first call
    connects the GPUs, which takes all ranks, outside of a graph."""
    if tensor.is_cuda and number not in _connected:
        _memory.registered(tensor.device)
        _kernels.connect(tensor.device)
        _connected.add(number)
    return stream_of(tensor.get_device()) if tensor.is_cuda else None


# --- Dispatch ------------------------------------------------------------------------------------


def _rows(x, weights, scales, moe):
    """Returns room for rows: their data, weights, scales, sources and offsets."""
    nrows = moe.rows_max
    return (x.new_empty((nrows, x.shape[1])),
            x.new_empty((0 if weights is None else nrows,), dtype=torch.float32),
            x.new_empty((0 if scales is None else nrows, 0 if scales is None else scales.shape[1]), dtype=torch.float32),
            x.new_empty((nrows,), dtype=torch.int32),
            x.new_empty((moe.experts_each + 1,), dtype=torch.int32))


def dispatch_shape(x, experts, weights, scales, number):
    return _rows(x, weights, scales, _moe_of(number))


def _plain(tensor):
    return None if tensor is None else tensor.detach().contiguous()


def dispatch(x, experts, weights, scales, number):
    moe = _moe_of(number)
    rows = data, row_weights, row_scales, sources, offsets = _rows(x, weights, scales, moe)
    moe.dispatch(_plain(x), _plain(experts), data, sources, offsets, weights=_plain(weights),
                 row_weights=None if weights is None else row_weights, scales=_plain(scales),
                 row_scales=None if scales is None else row_scales, stream=_stream(number, x))
    if not x.is_cuda:
        count = int(offsets[-1])
        for tensor in data.view(torch.uint8), row_weights, row_scales:
            tensor[count:].zero_()
        sources[count:].fill_(-1)
    return rows


def dispatch_setup(ctx, inputs, output):
    x, experts, weights, _, ctx.number = inputs
    _, _, _, sources, offsets = output
    ctx.has_weights = weights is not None
    ctx.save_for_backward(experts, sources, offsets)


def dispatch_backward(ctx, grad_data, grad_weights, *_):
    experts, sources, offsets = ctx.saved_tensors
    back = grad_weights if ctx.has_weights else None
    grad_x, grad_weights = torch.ops.weft.moe_combine(grad_data, None, back, experts, sources, offsets, ctx.number)
    return grad_x, None, grad_weights if ctx.has_weights else None, None, None


# --- Combine -------------------------------------------------------------------------------------


def combine_shape(data, factors, row_weights, experts, sources, offsets, number):
    _moe_of(number)
    return (data.new_empty((experts.shape[0], data.shape[1])),
            data.new_empty(experts.shape if row_weights is not None else (0,), dtype=torch.float32))


def combine(data, factors, row_weights, experts, sources, offsets, number):
    result = tokens, weights = combine_shape(data, factors, row_weights, experts, sources, offsets, number)
    _moe_of(number).combine(tokens, _plain(experts), _plain(data), sources, offsets, factors=_plain(factors),
                            weights=None if row_weights is None else weights, row_weights=_plain(row_weights),
                            stream=_stream(number, data))
    return result


def combine_setup(ctx, inputs, output):
    data, factors, row_weights, experts, sources, offsets, ctx.number = inputs
    ctx.nrows, ctx.has_factors, ctx.has_weights = data.shape[0], factors is not None, row_weights is not None
    ctx.save_for_backward(experts, *([data, factors] if ctx.has_factors else []))


def _cleared(rows, offsets):
    """Returns the rows with zeros after the last one, where a dispatch on a GPU has not written."""
    if not rows.is_cuda:
        return rows
    rest = torch.arange(rows.shape[0], device=rows.device) >= offsets[-1]
    return rows.masked_fill(rest.view(-1, *[1] * (rows.dim() - 1)), 0)


def combine_backward(ctx, grad_tokens, grad_weights):
    experts, *factored = ctx.saved_tensors
    back = grad_weights if ctx.has_weights else None
    rows, grad_row_weights, _, _, offsets = torch.ops.weft.moe_dispatch(grad_tokens, experts, back, None, ctx.number)
    grad_data, grad_factors = rows[:ctx.nrows], None
    grad_row_weights = _cleared(grad_row_weights, offsets) if ctx.has_weights else None
    if ctx.has_factors:
        data, factors = factored
        grad_factors = torch.zeros_like(factors)
        wide = torch.promote_types(data.dtype, torch.float32)
        grad_factors[:ctx.nrows] = _cleared((data.to(wide) * grad_data.to(wide)).sum(1), offsets)
        grad_data = (grad_data * factors[:ctx.nrows, None]).to(data.dtype)
    return _cleared(grad_data, offsets), grad_factors, grad_row_weights, None, None, None, None
