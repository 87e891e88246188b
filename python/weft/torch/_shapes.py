# SPDX-License-Identifier: BSD-3-Clause
"""Sizes, strides and dtypes of the operators' results, for tensors without memory.

Sizes may be symbols, and there is no communication: a group's size is all that is known of it.
"""
import torch
import torch.distributed.distributed_c10d as c10d

from weft.torch._versions import dtypes_of


def _members(group_name):
    return c10d._get_group_size_by_name(group_name)


def _moved(tensor, sizes, dim):
    """Returns an empty tensor of these sizes whose layout has dim as the outermost dimension."""
    order = list(sizes)
    order.insert(0, order.pop(dim))
    return tensor.new_empty(order).movedim(0, dim)


def _resized(tensor, dim, size):
    sizes = list(tensor.shape)
    sizes[dim] = size
    return sizes


def all_gather(input, gather_dim, group_name):
    dim = gather_dim % input.dim()
    return _moved(input, _resized(input, dim, input.shape[dim] * _members(group_name)), dim)


def reduce_scatter(input, reduce_op, scatter_dim, group_name):
    dim = scatter_dim % input.dim()
    return input.new_empty(_resized(input, dim, input.shape[dim] // _members(group_name)))


def all_reduce(input, reduce_op, group_name):
    return input.new_empty(input.shape)


def all_to_all(input, output_splits, input_splits, group_name):
    rows = input.shape[0] if output_splits is None else sum(output_splits)
    return input.new_empty([rows, *input.shape[1:]])


def fused_all_gather_matmul(A, Bs, gather_dim, group_name, *, return_A=True):
    last = gather_dim == A.dim() - 1
    gathered = _resized(A, gather_dim, A.shape[gather_dim] * _members(group_name))
    whole = A.new_empty(gathered) if last else _moved(A, gathered, gather_dim)
    products = [[*(A if last else whole).shape[:-1], b.shape[1]] for b in Bs]
    return whole if return_A else None, [
        A.new_empty(sizes) if last else _moved(A, sizes, gather_dim) for sizes in products]


def fused_matmul_reduce_scatter(A, B, reduce_op, scatter_dim, group_name):
    sizes = [*A.shape[:-1], B.shape[1]]
    sizes[scatter_dim] = sizes[scatter_dim] // _members(group_name)
    return A.new_empty(sizes)


def fused_matmul_all_reduce(A, B, reduce_op, group_name):
    return A.new_empty([*A.shape[:-1], B.shape[1]])


def fused_all_gather_scaled_matmul(A, Bs, A_scale, B_scales, gather_dim, group_name, biases,
                                   result_scales, out_dtypes, use_fast_accum):
    whole, products = fused_all_gather_matmul(A, Bs, gather_dim, group_name)
    dtypes = dtypes_of(out_dtypes)
    return whole, [torch.empty_like(product, dtype=dtype or A.dtype)
                   for product, dtype in zip(products, dtypes)]


def fused_scaled_matmul_reduce_scatter(A, B, A_scale, B_scale, reduce_op, orig_scatter_dim,
                                       scatter_dim_after_maybe_reshape, group_name, output_shape,
                                       bias=None, result_scale=None, out_dtype=None,
                                       use_fast_accum=False):
    sizes = list(output_shape or [*A.shape[:-1], B.shape[1]])
    sizes[orig_scatter_dim] = sizes[orig_scatter_dim] // _members(group_name)
    dtype = dtypes_of([out_dtype])[0]
    return A.new_empty(sizes, dtype=dtype or A.dtype)
