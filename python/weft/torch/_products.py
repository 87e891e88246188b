# SPDX-License-Identifier: BSD-3-Clause
"""Weft's products of matrices, which overlap their communication, on tensors of any device: in the calling thread, or
in the GPU's current stream.
"""
import torch
import torch.distributed._symmetric_memory as torch_symm_mem
from torch.autograd import forward_ad

import weft
from weft.torch import _kernels, _memory
from weft.torch._groups import group_name, group_of

# By PyTorch's name, for all devices: the fused operators, and the same as functions that record their gradients. _library
# fills both.
operators, recorded = {}, {}
MULTIPLIED = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
ORDINARY = frozenset((torch.Tensor, torch.nn.Parameter))
is_batch = torch._C._functorch.is_legacy_batchedtensor  # of gradients: is_grads_batched


def takes(tensor, group):
    """Returns whether Weft multiplies such tensors of the group's members; the same on all of them. On GPUs that needs
    a first call of all ranks outside of a graph, which connects them."""
    return not tensor.is_cuda or _kernels.multiplies(group, tensor.device)


def route(name, group, a, bs, *rest):
    """Returns the function to call for the fused operator of that name, and the group to pass to it: PyTorch's dispatcher,
    which takes longer than the operator, or for ordinary tensors outside of compilation and other modes the operator
    itself, which records its gradient if one is needed. rest: its other tensors, lists of them, and None."""
    if not is_watched() and isinstance(bs, (list, tuple)) and _are_ordinary((a, *bs, *_present(rest))):
        known = group_of(group)
        if is_ready(a, known):
            records = torch.is_grad_enabled() and (a.requires_grad or any(b.requires_grad for b in bs))
            function = (recorded if records else operators).get(name)
            if function is not None:
                return function, known
    return getattr(torch.ops.weft, name), group_name(group)


def is_watched():
    """Returns whether a mode of PyTorch watches or changes what is called."""
    return (torch.compiler.is_compiling() or torch_symm_mem._is_test_mode
            or torch._C._len_torch_dispatch_stack() > 0 or torch._C._are_functorch_transforms_active()
            or forward_ad._current_level >= 0)


def _present(operands):
    """Yields the tensors among operands and in their lists."""
    for each in operands:
        if isinstance(each, (list, tuple)):
            yield from _present(each)
        elif each is not None:
            yield each


def _are_ordinary(tensors):
    for tensor in tensors:  # in two thirds of the time of all()
        if type(tensor) not in ORDINARY or tensor.is_neg() or is_batch(tensor):
            return False
    return True


def is_ready(tensor, group):
    """Returns whether the tensor is on the CPU; or on the current GPU, if Weft multiplies the group's CUDA tensors."""
    device = tensor.get_device()  # -1: the CPU
    if device < 0 or not tensor.is_cuda:
        return tensor.is_cpu
    return ((group.multiplies or (_memory.registered(tensor.device) and takes(tensor, group)))
            and torch._C._cuda_getDevice() == device)


def stream_of(device):
    """Returns the current stream of the GPU of that number, in a tenth of the time of torch.cuda.current_stream(), or None
    for -1, the CPU."""
    return None if device < 0 else torch._C._cuda_getCurrentRawStream(device)


def run(product, group, written, read, *options):
    """Calls product(written[0], *read, *written[1:], *options): tensors, lists of tensors, or None, and options of other
    types. read[0] is a tensor."""
    device = read[0].get_device()
    if device < 0 or device == weft.device():
        product(written[0], *read, *written[1:], *options, team=group.team, stream=stream_of(device))
    else:
        _run_elsewhere(product, group, written, read, options, _kernels.own_gpu())


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
    """Returns a copy of the tensor on the device, made through ordinary memory: see _kernels.py."""
    return tensor.clone().to(device)
