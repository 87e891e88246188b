# SPDX-License-Identifier: BSD-3-Clause
"""Weft's products of matrices, which overlap their communication, on tensors of any device: in the calling thread, or
in the GPU's current stream.
"""
import torch

import weft
from weft.torch import _kernels, _memory
from weft.torch._groups import group_of

operators = {}  # the fused operators for all devices, by PyTorch's name; _library fills it


def takes(tensor, group):
    """Returns whether Weft multiplies such tensors of the group's members; the same on all of them. On GPUs that needs
    a first call of all ranks outside of a graph, which connects them."""
    return not tensor.is_cuda or _kernels.multiplies(group, tensor.device)


def direct(name, group, a, bs):
    """Returns the fused operator of that name if it may be called as it is, without PyTorch's dispatcher, which takes
    longer than the operator: for ordinary tensors, outside of compilation and other modes, and if nothing records
    gradients. Otherwise returns None."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0 or not isinstance(bs, (list, tuple)):
        return None
    recorded = torch.is_grad_enabled()
    for tensor in (a, *bs):
        if (type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.is_neg()
                or (recorded and tensor.requires_grad)):
            return None
    if a.is_cuda and not (_memory.registered(a.device) and takes(a, group_of(group))
                          and torch.cuda.current_device() == a.device.index):
        return None
    return operators[name]


def run(product, group, written, read, *options):
    """Calls product(written[0], *read, *written[1:], *options): tensors, lists of tensors, or None, and options of other
    types. read[0] is a tensor."""
    device = read[0].device
    if device.type == "cpu":
        product(written[0], *read, *written[1:], *options, team=group.team)
    elif device == (own := _kernels.own_gpu()):
        product(written[0], *read, *written[1:], *options, team=group.team, stream=torch.cuda.current_stream(own))
    else:
        _run_elsewhere(product, group, written, read, options, own)


def _run_elsewhere(product, group, written, read, options, own):
    """Other GPUs of the process cannot access the symmetric memory of this PE's: the matrices are copied there and
    the results back."""
    results = [_each(_empty_on(own), part) for part in written]
    run(product, group, results, [_each(lambda tensor: _copied_to(own, tensor), part) for part in read], *options)
    for part, result in zip(written, results):
        pairs = zip(part, result) if isinstance(part, (list, tuple)) else [(part, result)]
        for tensor, copy in pairs:
            if tensor is not None:
                tensor.copy_(copy)


def _each(function, part):
    if isinstance(part, (list, tuple)):
        return [_each(function, tensor) for tensor in part]
    return None if part is None else function(part)


def _empty_on(device):
    return lambda tensor: torch.empty_like(tensor, device=device)


def _copied_to(device, tensor):
    """Through ordinary memory: see _kernels.py."""
    return tensor.clone().to(device)
