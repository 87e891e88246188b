# SPDX-License-Identifier: BSD-3-Clause
"""The last step of a scattered product: the sum or mean of the ranks' contributions to this rank's part. PyTorch has
these functions since 2.14.
"""
import torch
from torch.utils._triton import has_triton

_HALVES = (torch.float16, torch.bfloat16)
_BLOCK = 1024


def reduce_partials(partials, *, dim, reduce_op, output_dtype, group_size):
    """Returns the sum or mean of partials along dim. For contiguous 16-bit floats on a GPU and the first dimension,
    they are added in 32 bits and rounded once, to output_dtype. Otherwise output_dtype is ignored: the result is
    torch.sum's or torch.mean's. ValueError for a reduce_op other than sum and avg."""
    if reduce_op not in ("sum", "avg"):
        raise ValueError(f"reduce_op must be sum or avg, got {reduce_op!r}")
    if dim % max(partials.dim(), 1) == 0:
        reduced = triton_reduce_partials_first_dim(partials, reduce_op=reduce_op, output_dtype=output_dtype,
                                                   group_size=group_size)
        if reduced is not None:
            return reduced
    return torch.sum(partials, dim=dim) if reduce_op == "sum" else torch.mean(partials, dim=dim)


def triton_reduce_partials_first_dim(partials, *, reduce_op, output_dtype, group_size):
    """Returns the sum over the first dimension, or the mean (avg), by one Triton kernel. Returns None without
    Triton, and for anything but contiguous 16-bit floats on a GPU, of two dimensions or more with group_size as the
    first, and an output_dtype of 16 bits."""
    taken = (partials.device.type == "cuda" and partials.is_contiguous() and partials.dim() >= 2
             and partials.shape[0] == group_size and output_dtype in _HALVES and partials.dtype in _HALVES)
    if not taken or not has_triton():
        return None
    out = partials.new_empty(partials.shape[1:], dtype=output_dtype)
    if out.numel():
        from weft.torch import _partials_kernel
        with torch.cuda.device(partials.device):
            _partials_kernel.reduce(partials, out, group_size, reduce_op == "avg", _BLOCK)
    return out
