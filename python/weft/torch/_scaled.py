# SPDX-License-Identifier: BSD-3-Clause
"""The fused products of 8-bit floats. A and B have scales, for the whole matrix or for each row of A and column of B,
and the result has a dtype of its own.

A_scale of a gather is one number, or has the leading sizes of A's shard and 1 ("row-wise sharded", gathered with A), or
those of the whole A ("row-wise replicated"). bias, result_scale and out_dtype have the meaning that torch._scaled_mm
gives them: a result of 8 bits is divided by result_scale on the CPU, and multiplied by it on a GPU (as PyTorch documents
it; 2.11 itself leaves it out there). Sums are computed in 32 bits and rounded once.
"""
import torch

import weft
from weft.torch import _products
from weft.torch._check import check_divisible, check_reduce_op
from weft.torch._collectives import factor, fold, plain
from weft.torch._versions import dtypes_of
from weft.torch._fused import is_matrix, rows_of, unrow
from weft.torch._groups import group_of

NARROW = (torch.float8_e4m3fn, torch.float8_e5m2)


def fused_all_gather_scaled_matmul(A, Bs, A_scale, B_scales, gather_dim, group, biases, result_scales,
                                   out_dtypes, use_fast_accum):
    call, group = "fused_all_gather_scaled_matmul", group_of(group)
    check_lists(call, Bs, B_scales=B_scales, biases=biases, result_scales=result_scales, out_dtypes=out_dtypes,
                use_fast_accum=use_fast_accum)
    check_operands(call, A, Bs, gather_dim, "gather_dim")
    scale, shard = rows_scale(A, A_scale, gather_dim, group), rows_of(A, gather_dim)
    rows = shard.shape[0] * group.size
    whole = shard.new_empty((rows, shard.shape[1]))
    dtypes = [dtype or A.dtype for dtype in dtypes_of(out_dtypes)]
    products = [shard.new_empty((rows, b.shape[1]), dtype=_wide(dtype)) for b, dtype in zip(Bs, dtypes)]
    _products.run(weft.all_gather_scaled_matmul, group, (products, whole), (
        shard, [factor(b) for b in Bs], scale, [_scale_of(b) for b in B_scales],
        [bias if bias is None else plain(bias) for bias in biases]))
    return unrow(whole, A, gather_dim, group.size), [
        unrow(_finished(*each), A, gather_dim, group.size) for each in zip(products, result_scales, dtypes)]


def rows_scale(A, scale, dim, group):
    """Returns the factors of the rows of this rank's shard, with `dim` as the first dimension."""
    full = list(A.shape[:-1])
    full[dim] *= group.size
    if scale.dim() and scale.shape[:-1] == A.shape[:-1] and scale.shape[-1] == 1:
        return plain(scale.movedim(dim, 0)).view(-1, 1)
    if scale.numel() == 1:
        return _scale_of(scale)
    if scale.dim() and list(scale.shape[:-1]) == full:
        return plain(scale.movedim(dim, 0)).view(-1, 1).chunk(group.size)[group.rank]
    raise ValueError(f"Invalid scale shape for fp8 all-gather (shard shape: {list(A.shape)}, scale "
                     f"shape: {list(scale.shape)}); expected one number, {[*A.shape[:-1], 1]} or "
                     f"{[*full, 1]}")


def fused_scaled_matmul_reduce_scatter(A, B, A_scale, B_scale, reduce_op, orig_scatter_dim,
                                       scatter_dim_after_maybe_reshape, group, output_shape,
                                       bias=None, result_scale=None, out_dtype=None,
                                       use_fast_accum=False):
    call, group = "fused_scaled_matmul_reduce_scatter", group_of(group)
    dim, [dtype] = scatter_dim_after_maybe_reshape, dtypes_of([out_dtype])
    check_operands(call, A, [B], dim, "scatter dim for 2D tensor input to scaled_mm")
    check_reduce_op(call, reduce_op, ("sum", "avg"))
    check_divisible(call, A, dim, group.size)
    sizes = scattered_sizes(call, A, B, orig_scatter_dim, output_shape, group.size)
    if A_scale.numel() != 1 and A_scale.shape[:-1] != A.shape[:-1]:
        raise ValueError(f"{call}: For row-wise scaling, the leading dims of A_scale must match the "
                         f"leading dims of A (A shape: {list(A.shape)}, A_scale shape: "
                         f"{list(A_scale.shape)})")

    def fold_rows(tensor):
        return tensor if is_matrix(A, dim) else fold(tensor, dim, group.size)
    scale = _scale_of(A_scale) if A_scale.numel() == 1 else plain(fold_rows(A_scale)).view(-1, 1)
    a, dtype = factor(fold_rows(A).flatten(0, -2)), dtype or A.dtype
    product = a.new_empty((a.shape[0] // group.size, B.shape[1]), dtype=_wide(dtype))
    _products.run(weft.scaled_matmul_reduce_scatter, group, (product,), (
        a, factor(B), scale, _scale_of(B_scale), bias if bias is None else plain(bias)), reduce_op)
    return _finished(product, result_scale, dtype).view(sizes)


def scattered_sizes(call, A, B, dim, output_shape, parts):
    if output_shape is None:
        output_shape = [*A.shape[:-1], B.shape[1]]
    if not 0 <= dim < len(output_shape):
        raise ValueError(f"{call}: Invalid scatter dim for 3D+ output tensor: got {dim}, expected 0 "
                         f"to {len(output_shape) - 1}")
    sizes = list(output_shape)
    sizes[dim] //= parts
    return sizes


def check_lists(call, Bs, **lists):
    """Checks that each is a list as long as Bs."""
    for name, given in lists.items():
        if not isinstance(given, (list, tuple)):
            raise TypeError(f"{call}: got {name} of type {type(given).__name__}, expected a list")
        if len(given) != len(Bs):
            raise ValueError(f"{call}: len({name}) must be the same as len(Bs): got {len(given)}, "
                             f"expected {len(Bs)}")


def check_operands(call, A, Bs, dim, name):
    if A.dim() < 2:
        raise ValueError(f"{call}: A_shard must be a matrix, got {list(A.shape)}")
    if not 0 <= dim < A.dim() - 1:
        raise ValueError(f"{call}: Invalid {name}: got {dim}, expected 0 to {A.dim() - 2}: scales "
                         "are of rows, which the last dimension would cut")
    for B in Bs:
        if B.dim() != 2:
            raise ValueError(f"{call}: B must be a matrix, got {list(B.shape)}")
        if A.dtype not in NARROW or B.dtype not in NARROW or B.shape[0] != A.shape[-1]:
            raise RuntimeError(f"{call}: got A of {list(A.shape)} {A.dtype} and B of "
                               f"{list(B.shape)} {B.dtype}, expected 8-bit floats and "
                               f"{A.shape[-1]} rows of B")


def _scale_of(scale):
    """Returns one number as a matrix, or the columns' numbers as they are."""
    return plain(scale).view(1, -1)


def _wide(dtype):
    """Returns the dtype of the product: an 8-bit float is converted from 32 bits afterwards."""
    return torch.float32 if dtype in NARROW else dtype


def _finished(product, result_scale, dtype):
    if product.dtype == dtype:
        return product
    if result_scale is not None:
        product = product * result_scale if product.is_cuda else product / result_scale
    return product.to(dtype)
