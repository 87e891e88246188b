# SPDX-License-Identifier: BSD-3-Clause
"""Checks of arguments. Every error names the call, the value and the expected value. Checks precede all communication,
so members with the same mistake all raise the error.
"""
import torch
from torch._C._distributed_c10d import _SymmetricMemory

from weft.torch import _memory
from weft.torch._handle import Handle

REDUCE_OPS = ("sum", "avg", "max", "min", "prod")


def check_tensor(call, name, value):
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{call}: got {name} of type {type(value).__name__}, expected a torch.Tensor")
    return value


def check_handle(call, name, value):
    if not isinstance(value, (Handle, _SymmetricMemory)):
        raise TypeError(f"{call}: got {name} of type {type(value).__name__}, expected a handle of "
                        "rendezvous()")


def check_dim(call, name, dim, tensor):
    """Returns the dimension as a number from 0 on; negative numbers count from the end."""
    if not -tensor.dim() <= dim < tensor.dim():
        raise ValueError(f"{call}: got {name} {dim}, expected one of {tensor.dim()} dimensions of "
                         f"{list(tensor.shape)}")
    return dim % tensor.dim()


def check_divisible(call, tensor, dim, parts, kind=ValueError):
    """Checks that the size of dimension `dim` is a multiple of `parts`. kind: the exception that PyTorch's operator of
    this name raises."""
    if tensor.shape[dim] % parts:
        raise kind(f"{call}: got {tensor.shape[dim]} in dimension {dim} of "
                   f"{list(tensor.shape)}, expected a multiple of the group's {parts} members")


def check_reduce_op(call, reduce_op, allowed=REDUCE_OPS):
    if reduce_op not in allowed:
        raise ValueError(f"{call}: got reduce_op {reduce_op!r}, expected one of "
                         f"{', '.join(allowed)}")


def check_differentiable(call, reduce_op):
    if reduce_op not in ("sum", "avg"):
        raise NotImplementedError(f"{call}: got reduce_op {reduce_op!r} in backward, expected sum "
                                  "or avg: others have no gradient here")


def check_contiguous(call, name, tensor, kind=RuntimeError):
    if not tensor.is_contiguous():
        raise kind(f"{call}: got {name} with strides {tensor.stride()}, expected it to be contiguous")


def check_dtype(call, name, tensor, allowed):
    if tensor.dtype not in allowed:
        raise NotImplementedError(f"{call}: got {name} of {tensor.dtype}, expected one of "
                                  f"{', '.join(map(str, allowed))}")


def check_same(call, name, tensor, like):
    if tensor.shape != like.shape or tensor.dtype != like.dtype:
        raise RuntimeError(f"{call}: got {name} of {list(tensor.shape)} {tensor.dtype}, expected "
                           f"{list(like.shape)} {like.dtype}")


def check_symmetric(call, name, tensor, group_name):
    """Returns the tensor's handle."""
    handle = _memory.rendezvous(tensor, group_name)
    if handle is None:
        raise RuntimeError(f"{call}: got {name} in private memory, expected it to be allocated by "
                           "symm_mem.empty() or empty_strided_p2p()")
    return handle
