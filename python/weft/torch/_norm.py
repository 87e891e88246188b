# SPDX-License-Identifier: BSD-3-Clause
"""All-reduce, residual and RMS norm in one operator, for layers of transformers that are split over ranks.

    z = sum of the ranks' x + bias + residual, rounded;  y = z / sqrt(mean of z^2 + epsilon) * weight

CPU tensors, and CUDA tensors of the sizes of Weft's own all-reduces, are one call of the library. Larger CUDA tensors are
an all-reduce, and PyTorch's operations.
"""
import torch

import weft
from weft.torch import _collectives_cuda, _kernels
from weft.torch._check import check_tensor
from weft.torch._groups import group_of
from weft.torch._products import stream_of

_TYPES = (torch.float32, torch.bfloat16, torch.float16)
_F8_MAX, _GREATEST_MIN = 448.0, 1e-10  # as in the library


def _scales_shape(x, group_size):
    return (*x.shape[:-1], x.shape[-1] // group_size)


def shape(x, weight, epsilon, residual, bias, group_name):
    return torch.empty_like(x), torch.empty_like(x)


def shape_f8(x, weight, epsilon, residual, bias, scale, group_size, group_name):
    scales = x.new_empty((1,) if scale is not None else _scales_shape(x, group_size), dtype=torch.float32)
    return torch.empty_like(x), torch.empty_like(x), torch.empty_like(x, dtype=torch.float8_e4m3fn), scales


def _check(call, x, **others):
    check_tensor(call, "x", x)
    if x.dtype not in _TYPES or x.dim() == 0:
        raise ValueError(f"{call}: got x of {list(x.shape)} {x.dtype}, expected rows of float32, bfloat16 or float16")
    for name, (value, sizes) in others.items():
        if value is not None and (value.dtype != x.dtype or value.shape != sizes or value.device != x.device):
            raise ValueError(f"{call}: got {name} of {list(value.shape)} {value.dtype} on {value.device}, expected "
                             f"{list(sizes)} {x.dtype} on {x.device}")


def _dense(tensor):
    return None if tensor is None else tensor.detach().contiguous()


def _by_library(x, group):
    """Returns whether one call of the library does all, the same on all ranks."""
    return not x.is_cuda or (_kernels.takes("all_reduce", x, x.numel(), group) and x.device == _kernels.own_gpu())


def _run(call, x, weight, epsilon, residual, bias, group_name, quantized=None, scales=None, group_size=0):
    group, row = group_of(group_name), x.shape[-1:]
    _check(call, x, weight=(weight, row), bias=(bias, row), residual=(residual, x.shape))
    x, weight, residual, bias = map(_dense, (x, weight, residual, bias))
    y, z = torch.empty_like(x), torch.empty_like(x)
    if _by_library(x, group):
        weft.all_reduce_rms_norm(y, x, z, bias=bias, residual=residual, weight=weight, epsilon=epsilon,
                                 quantized=quantized, scales=scales, group=group_size, team=group.team,
                                 stream=stream_of(x.get_device()))
        return y, z
    total = _collectives_cuda.all_reduce(x, "sum", group_name).float()
    for more in bias, residual:
        total = total if more is None else total + more.float()
    z.copy_(total)
    wide = torch.nn.functional.rms_norm(z.float(), row, None if weight is None else weight.float(), epsilon)
    if quantized is not None:
        _quantize(wide, quantized, scales, group_size)
    return y.copy_(wide), z


def _quantize(wide, quantized, scales, group_size):
    groups = wide if not group_size else wide.unflatten(-1, (-1, group_size))
    if group_size:
        scales.copy_(groups.abs().amax(-1).clamp(min=_GREATEST_MIN) / _F8_MAX)
    divided = groups / (scales[..., None] if group_size else scales)
    quantized.copy_(divided.clamp(-_F8_MAX, _F8_MAX).view(wide.shape))


def rms_norm(x, weight, epsilon, residual, bias, group_name):
    return _run("all_reduce_rms_norm", x, weight, epsilon, residual, bias, group_name)


def rms_norm_f8(x, weight, epsilon, residual, bias, scale, group_size, group_name):
    call = "all_reduce_rms_norm"
    if scale is None and (group_size <= 0 or group_size % 8 or x.shape[-1] % group_size):
        raise ValueError(f"{call}: got group_size {group_size}, expected a multiple of 8 that divides {x.shape[-1]}")
    quantized = torch.empty(x.shape, dtype=torch.float8_e4m3fn, device=x.device)
    if scale is None:
        scales = torch.empty(_scales_shape(x, group_size), dtype=torch.float32, device=x.device)
    else:
        scales, group_size = scale.detach().to(torch.float32).reshape(1).clone(), 0
    return *_run(call, x, weight, epsilon, residual, bias, group_name, quantized, scales, group_size), quantized, scales
