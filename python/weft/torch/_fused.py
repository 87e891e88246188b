# SPDX-License-Identifier: BSD-3-Clause
"""Products after a gather or before a reduction, by Weft's fused operators, on any device.

The operators work on the rows of matrices. Another dimension is mapped to rows here:

    gather dim d, not the last:   rows are (d, all others); the result is a view of (d, ..., N)
    gather the last:              A is gathered along K, and multiplied once
    scatter dim d, not the last:  rows are (member, all of its part)
    scatter the last:             the product is computed transposed, so that its rows are columns

Results have the sizes and strides of PyTorch's operators.
"""
import torch

import weft
from weft.torch import _products
from weft.torch._check import check_divisible, check_reduce_op
from weft.torch._collectives import factor, fold
from weft.torch._groups import group_of
from weft.torch._products import MULTIPLIED

ops = torch.ops.weft


def check_product(call, a, bs, dim, name, inner):
    """Checks that a has the dimension `dim`, and that the matrices bs have `inner` times as many rows as a's last
    dimension."""
    shape = a.shape
    if len(shape) < 2:
        raise ValueError(f"{call}: A_shard must be a matrix, got {list(shape)}")
    if not 0 <= dim < len(shape):
        raise ValueError(f"{call}: Invalid {name}: got {dim}, expected 0 to {len(shape) - 1}")
    for b in bs:
        if b.dim() != 2:
            raise ValueError(f"{call}: B must be a matrix, got {list(b.shape)}")
        if b.shape[0] != shape[-1] * inner:
            raise RuntimeError(f"{call}: got B of {list(b.shape)}, expected "
                               f"{shape[-1] * inner} rows for A of {list(shape)}")
        if b.dtype != a.dtype:
            raise RuntimeError(f"{call}: got B of {b.dtype}, expected A's {a.dtype}")


def rows_of(a, dim):
    """Returns a as a factor whose rows are (dim, all others)."""
    return factor(a if is_matrix(a, dim) else a.movedim(dim, 0).flatten(0, -2))


def is_matrix(a, dim):
    """Returns whether a is what rows_of() makes of it. Each operation on tensors takes the host microseconds."""
    return dim == 0 and a.dim() == 2


def unrow(matrix, a, dim, parts):
    """Returns rows (dim, others) of `parts` times a's `dim` as a tensor with a's order of dimensions."""
    if is_matrix(a, dim):
        return matrix
    outer = [size for at, size in enumerate(a.shape[:-1]) if at != dim]
    return matrix.view(a.shape[dim] * parts, *outer, matrix.shape[-1]).movedim(0, dim)


def fused_all_gather_matmul(A, Bs, gather_dim, group, *, return_A=True):
    call, group = "fused_all_gather_matmul", group_of(group)
    last = gather_dim == A.dim() - 1
    check_product(call, A, Bs, gather_dim, "gather_dim", group.size if last else 1)
    if last:
        whole = ops.all_gather(A.detach(), gather_dim, group.name).contiguous()
        return whole if return_A else None, [whole @ b.detach() for b in Bs]
    shard = rows_of(A, gather_dim)
    rows = shard.shape[0] * group.size
    whole = shard.new_empty((rows, shard.shape[1])) if return_A else None
    products = [shard.new_empty((rows, b.shape[1])) for b in Bs]
    multiply_gathered(group, shard, [factor(b) for b in Bs], products, whole)
    return (unrow(whole, A, gather_dim, group.size) if return_A else None,
            [unrow(c, A, gather_dim, group.size) for c in products])


def multiply_gathered(group, shard, bs, products, whole):
    """Computes products[i] = all shards x bs[i], and the gathered shards in `whole` unless it is None."""
    if shard.dtype in MULTIPLIED and bs:
        _products.run(weft.all_gather_matmul, group, (products, whole), (shard, bs))
        return
    gathered = ops.all_gather(shard, 0, group.name)
    for b, product in zip(bs, products):
        torch.mm(gathered, b, out=product)
    if whole is not None:
        whole.copy_(gathered)


def fused_matmul_reduce_scatter(A, B, reduce_op, scatter_dim, group):
    call, group = "fused_matmul_reduce_scatter", group_of(group)
    check_product(call, A, [B], scatter_dim, "scatter_dim", 1)
    check_reduce_op(call, reduce_op, ("sum", "avg"))
    if scatter_dim == A.dim() - 1:
        check_divisible(call, B, 1, group.size)
        turned = multiply_scattered(group, factor(B.t()), factor(A.flatten(0, -2).t()), reduce_op)
        return turned.t().contiguous().view(*A.shape[:-1], B.shape[1] // group.size)
    check_divisible(call, A, scatter_dim, group.size)
    if is_matrix(A, scatter_dim):
        return multiply_scattered(group, factor(A), factor(B), reduce_op)
    parts = fold(A, scatter_dim, group.size)
    product = multiply_scattered(group, factor(parts.flatten(0, -2)), factor(B), reduce_op)
    return product.view(*parts.shape[1:-1], B.shape[1])


def multiply_scattered(group, a, b, reduce_op):
    """Returns this member's rows of a x b, reduced over all members."""
    if a.dtype not in MULTIPLIED:
        return ops.reduce_scatter(torch.mm(a, b), reduce_op, 0, group.name)
    product = a.new_empty((a.shape[0] // group.size, b.shape[1]))
    _products.run(weft.matmul_reduce_scatter, group, (product,), (a, b), reduce_op)
    return product


def fused_matmul_all_reduce(A, B, reduce_op, group):
    call, group = "fused_matmul_all_reduce", group_of(group)
    check_product(call, A, [B], 0, "dimension", 1)
    check_reduce_op(call, reduce_op, ("sum", "avg"))
    a, b = factor(A if A.dim() == 2 else A.flatten(0, -2)), factor(B)
    if a.dtype in MULTIPLIED and _products.takes(a, group):
        product = a.new_empty((a.shape[0], b.shape[1]))
        _products.run(weft.matmul_all_reduce, group, (product,), (a, b), reduce_op)
    else:
        product = ops.all_reduce(torch.mm(a, b), reduce_op, group.name)
    return product if A.dim() == 2 else product.view(*A.shape[:-1], B.shape[1])
