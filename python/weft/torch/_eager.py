# SPDX-License-Identifier: BSD-3-Clause
"""The fused products of ordinary matrices, outside of compilation, without gradients.

For a small product the host takes longer than the GPU, and most of its time goes into Python's calls of functions. So
each function here does in one body what _products.route() and _fused.py do in steps for all tensors, dimensions and
types: with it a call takes four fifths of the time (docs/performance.md). If a condition does not hold, a function
returns None before it has sent any of the matrices: the general way follows, which also reports errors.
"""
import functools

import torch

import weft
from weft.torch._backend import fused_runs
from weft.torch._groups import group_of
from weft.torch._products import MULTIPLIED, ORDINARY, is_batch, is_ready, is_watched, stream_of


def first(operator):
    """Makes a fused operator try this module's function of its name first, if there is one. While PyTorch traces
    symbolically, A is a placeholder, with which nothing may be compared, so its type is asked first."""
    name = operator.__name__
    eager = _functions.get(name)
    if eager is None:
        return operator

    @functools.wraps(operator)
    def call(*args, **named):
        short = args and type(args[0]) in ORDINARY and "group_name" not in named and not is_watched()
        done = eager(*args, **named) if short else None
        if done is None:
            return operator(*args, **named)
        fused_runs[name] += 1
        return done
    return call


def _group_for(group, *matrices):
    """Returns the group if these are ordinary matrices of one type that Weft multiplies, with contiguous rows or
    columns, that need no gradient, and if the first is on the CPU or on this PE's GPU; otherwise None."""
    dtype, records = matrices[0].dtype, torch.is_grad_enabled()
    if dtype not in MULTIPLIED:
        return None
    for each in matrices:
        if (type(each) not in ORDINARY or each.dim() != 2 or each.dtype != dtype or each.is_neg() or is_batch(each)
                or (records and each.requires_grad)):
            return None
        (rows, cols), (step, within) = each.shape, each.stride()
        if not ((within == 1 and step >= cols) or (step == 1 and within >= rows)):
            return None
    known, device = group_of(group), matrices[0].get_device()
    return known if is_ready(matrices[0], known) and (device < 0 or device == weft.device()) else None


def fused_all_gather_matmul(A, Bs, gather_dim, group, *, return_A=True):
    if gather_dim != 0 or type(Bs) not in (list, tuple) or not Bs:
        return None
    known = _group_for(group, A, *Bs)
    if known is None:
        return None
    (rows, inner), products = A.shape, []
    rows *= known.size
    for B in Bs:
        height, width = B.shape
        if height != inner:
            return None
        products.append(A.new_empty((rows, width)))
    whole = A.new_empty((rows, inner)) if return_A else None
    weft.all_gather_matmul(products, A, Bs, whole, team=known.team, stream=stream_of(A.get_device()))
    return whole, products


def fused_matmul_reduce_scatter(A, B, reduce_op, scatter_dim, group):
    known = _group_for(group, A, B) if scatter_dim == 0 and reduce_op in ("sum", "avg") else None
    if known is None:
        return None
    (rows, inner), (height, width) = A.shape, B.shape
    if height != inner or rows % known.size:
        return None
    product = A.new_empty((rows // known.size, width))
    weft.matmul_reduce_scatter(product, A, B, reduce_op, team=known.team, stream=stream_of(A.get_device()))
    return product


def fused_matmul_all_reduce(A, B, reduce_op, group):
    known = _group_for(group, A, B) if reduce_op in ("sum", "avg") else None
    if known is None:
        return None
    (rows, inner), (height, width) = A.shape, B.shape
    if height != inner:
        return None
    product = A.new_empty((rows, width))
    weft.matmul_all_reduce(product, A, B, reduce_op, team=known.team, stream=stream_of(A.get_device()))
    return product


_functions = {function.__name__: function for function in (fused_all_gather_matmul, fused_matmul_reduce_scatter,
                                                           fused_matmul_all_reduce)}
