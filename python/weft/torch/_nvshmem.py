# SPDX-License-Identifier: BSD-3-Clause
"""The operators that PyTorch has for its NVSHMEM backend only, on CUDA tensors in Weft's memory; and its fused products,
which Weft's replace.

Each is registered before PyTorch's own kernel, which is still called for other backends. The host waits for nothing, so
all of them can be captured into a graph. PyTorch's kernels written in Python use the current device, so a wrapper makes
the device of their tensors current.

A collective call begins and ends with a barrier, so that the memory it has read may be overwritten afterwards.
"""
import warnings

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

from weft.torch import _kernels, _products
from weft.torch._exchange import exchange_rows
from weft.torch._groups import group_of
from weft.torch._peers import multi_root_tile_reduce, tile_reduce

_registrations = None   # the registrations last as long as this object
_CHANNEL = 0


class _Part:
    """A symmetric tensor with its group's handle and its offset in the allocation."""

    def __init__(self, call, name, tensor, group_name):
        self.tensor = tensor
        if not tensor.is_contiguous():
            raise RuntimeError(f"{call}: {name} is not contiguous; expected a contiguous tensor")
        self.handle = symm_mem.rendezvous(tensor, group_name)
        if self.handle is None:
            raise RuntimeError(f"{call}: {name} is not symmetric; expected a tensor of symm_mem.empty")
        self.at = tensor.data_ptr() - self.handle.buffer_ptrs[self.handle.rank]

    def of(self, peer):
        """Returns the same tensor of a peer."""
        begin, rest = divmod(self.at, self.tensor.element_size())
        assert rest == 0, "tensors are aligned to their elements"
        return self.handle.get_buffer(peer, self.tensor.shape, self.tensor.dtype, begin)

    def barrier(self):
        self.handle.barrier(channel=_CHANNEL)


def _world():
    return dist.group.WORLD.group_name


def _check_peer(call, name, peer, size):
    if not 0 <= peer < size:
        raise RuntimeError(f"{call}: {name} is {peer}; expected a rank in [0, {size})")


# --- One peer -----------------------------------------------------------------------------------------


def nvshmem_put(tensor, peer):
    here = _Part("nvshmem_put", "tensor", tensor, _world())
    _check_peer("nvshmem_put", "peer", peer, here.handle.world_size)
    here.of(peer).copy_(tensor)


def nvshmem_get(tensor, peer):
    here = _Part("nvshmem_get", "tensor", tensor, _world())
    _check_peer("nvshmem_get", "peer", peer, here.handle.world_size)
    tensor.copy_(here.of(peer))


def _signal_word(call, sigpad, group_name):
    """Returns the first 8 bytes of sigpad, the part that PyTorch's kernels use."""
    if sigpad.numel() * sigpad.element_size() < 8 or sigpad.data_ptr() % 8:
        raise RuntimeError(f"{call}: sigpad has {sigpad.numel()} elements of {sigpad.dtype}; expected at least 8 "
                           "bytes, aligned to 8")
    return _Part(call, "sigpad", sigpad.view(-1).view(torch.uint8)[:8].view(torch.int64), group_name)


def nvshmem_put_with_signal(tensor, sigpad, signal, peer):
    word = _signal_word("nvshmem_put_with_signal", sigpad, _world())
    nvshmem_put(tensor, peer)
    word.of(peer).fill_(signal)  # a kernel after the copy: a peer that sees the signal sees the data


def nvshmem_wait_for_signal(sigpad, signal, peer):
    from weft.torch import _exchange_kernels as kernels
    word = _signal_word("nvshmem_wait_for_signal", sigpad, _world())
    kernels.wait_until_equal(word.tensor, signal)


# --- All members --------------------------------------------------------------------------------------


def nvshmem_broadcast(input, root, group_name):
    here = _Part("nvshmem_broadcast", "input", input, group_name)
    _check_peer("nvshmem_broadcast", "root", root, here.handle.world_size)
    here.barrier()
    if here.handle.rank != root:
        input.copy_(here.of(root))
    here.barrier()
    return input


def nvshmem_all_to_all(input, out, group_name):
    call = "nvshmem_all_to_all"
    here = _Part(call, "input", input, group_name)
    rank, size = here.handle.rank, here.handle.world_size
    if not out.is_contiguous() or out.numel() != input.numel() or out.dtype != input.dtype:
        raise RuntimeError(f"{call}: out is {tuple(out.shape)} of {out.dtype}; expected it contiguous, with "
                           f"{input.numel()} elements of {input.dtype}, as input")
    if input.numel() % size:
        raise RuntimeError(f"{call}: input has {input.numel()} elements; expected a multiple of the {size} members")
    parts = out.view(size, -1)
    here.barrier()
    for step in range(size):
        peer = (rank + step) % size
        parts[peer].copy_(here.of(peer).view(size, -1)[rank])
    here.barrier()
    return out


def all_to_all_vdev(input, out, in_splits, out_splits_offsets, group_name):
    _exchange("all_to_all_vdev", input, out, in_splits, None, out_splits_offsets, group_name, by_rank=True)


def all_to_all_vdev_2d(input, out, in_splits, out_splits_offsets, group_name, major_align=None):
    align = 1 if major_align is None else major_align
    if align <= 0:
        raise RuntimeError(f"all_to_all_vdev_2d: major_align is {align}; expected a positive number")
    _exchange("all_to_all_vdev_2d", input, out, in_splits, None, out_splits_offsets, group_name, by_rank=True,
              align=align, two_dims=True)


def all_to_all_vdev_2d_offset(input, out, in_splits_offsets, out_splits_offsets, group_name):
    splits, offsets = in_splits_offsets.unbind(0)
    _exchange("all_to_all_vdev_2d_offset", input, out, splits, offsets, out_splits_offsets, group_name,
              by_rank=False, two_dims=True)


def _check_splits(call, splits, out_splits_offsets, size, two_dims):
    """Checks the splits and their output. Returns the number of chunks for each pair of ranks."""
    count = splits.numel()
    if splits.dtype != torch.int64 or not splits.is_contiguous() or count % size or (not two_dims and count != size):
        raise RuntimeError(f"{call}: the splits of the input are {tuple(splits.shape)} of {splits.dtype}; expected "
                           f"contiguous int64, {'a multiple of ' if two_dims else ''}{size} of them")
    if out_splits_offsets.dtype != torch.int64 or tuple(out_splits_offsets.shape) != (2, count):
        raise RuntimeError(f"{call}: out_splits_offsets is {tuple(out_splits_offsets.shape)} of "
                           f"{out_splits_offsets.dtype}; expected (2, {count}) of int64")
    return count // size


def _check_rows(call, input, out):
    if input.dtype != out.dtype or not out.is_contiguous() or input.stride(0) != out.stride(0):
        raise RuntimeError(f"{call}: out is {tuple(out.shape)} of {out.dtype}; expected it contiguous, with rows "
                           f"like those of input, which is {tuple(input.shape)} of {input.dtype}")


def _exchange(call, input, out, in_splits, in_offsets, out_splits_offsets, group_name, by_rank, align=1,
              two_dims=False):
    """Exchanges the chunks of rows, and stores their sizes and offsets in out_splits_offsets. by_rank: the input's
    chunks are ordered by rank and the output's by expert; otherwise the reverse. Triton's kernels serve GPUs that are
    not connected, and an out that is not symmetric."""
    from weft.torch import _exchange_kernels as kernels
    source = _Part(call, "input", input, group_name)
    books = _Part(call, "out_splits_offsets", out_splits_offsets, group_name)
    _check_rows(call, input, out)
    experts = _check_splits(call, in_splits, out_splits_offsets, source.handle.world_size, two_dims)
    group = group_of(group_name)
    if input.is_cuda and symm_mem.rendezvous(out, group_name) is not None and _kernels.works_on(input.device, group):
        by_expert = two_dims and by_rank
        exchange_rows(call, group, input, out, in_splits, in_offsets, out_splits_offsets,
                      torch.cuda.current_stream(input.device), source_by_part=not by_rank, dest_by_part=by_expert,
                      align=align if by_expert else 0)
        _kernels.met(group, True)
        return
    books.barrier()  # peers have finished with the old contents of their tables
    kernels.tell(in_splits, in_offsets, books, experts, by_rank)
    books.barrier()
    kernels.pull(source, out, books, experts, by_rank, align)
    books.barrier()


# --- Replacing PyTorch's operators --------------------------------------------------------------------

_OPERATORS = (nvshmem_put, nvshmem_get, nvshmem_put_with_signal, nvshmem_wait_for_signal, nvshmem_broadcast,
              nvshmem_all_to_all, all_to_all_vdev, all_to_all_vdev_2d, all_to_all_vdev_2d_offset, tile_reduce,
              multi_root_tile_reduce)
_IN_PYTHON = ("fused_all_gather_matmul", "fused_matmul_reduce_scatter", "fused_all_gather_scaled_matmul",
              "fused_scaled_matmul_reduce_scatter", "_low_contention_all_gather", "_low_contention_reduce_scatter")


def _check_devices(call, device, given):
    """Checks that all tensors are on one GPU, in whose stream the kernel runs."""
    for each in given:
        if isinstance(each, torch.Tensor) and each.device != device:
            raise RuntimeError(f"{call}: got tensors on {device} and {each.device}; expected all on one GPU")


def _kernel_of(name):
    """Returns PyTorch's own kernel, or None in a build without it."""
    try:
        return torch.library.get_kernel(f"symm_mem::{name}", "CUDA")
    except RuntimeError:
        return None


def _before(operator, kernel):
    """Returns the function to register, which selects by the backend in use."""
    def dispatch(keys, first, *args, **kwargs):
        device = (args[0] if isinstance(first, (list, tuple)) else first).device  # a list is followed by its result
        if symm_mem.get_backend(device) == "WEFT":
            _check_devices(operator.__name__, device, (*(first if isinstance(first, (list, tuple)) else ()), *args,
                                                       *kwargs.values()))
            with torch.cuda.device(device):
                return operator(first, *args, **kwargs)
        if kernel is None:
            raise NotImplementedError(f"{operator.__name__}: this PyTorch has no kernel for it")
        return kernel.call_boxed(keys, first, *args, **kwargs)
    return dispatch


def _on_its_gpu(kernel):
    """Returns the function to register before a kernel written in Python. If the caller's device is another one, the
    backend's side stream is joined immediately, because the caller waits on its own device."""
    def dispatch(keys, first, *args, **kwargs):
        is_same = torch.cuda.current_device() == first.device.index
        with torch.cuda.device(first.device):
            result = kernel.call_boxed(keys, first, *args, **kwargs)
            if not is_same:
                torch.cuda.current_stream().wait_stream(symm_mem._get_backend_stream())
        return result
    return dispatch


def _multiplied(name, kernel):
    """Returns the function to register for a fused product: Weft's, where the group's GPUs have it."""
    arguments = [argument.name for argument in getattr(torch.ops.symm_mem, name).default._schema.arguments]
    at, otherwise = arguments.index("group_name"), _on_its_gpu(kernel)

    def dispatch(keys, *args, **kwargs):
        first = args[0]
        if symm_mem.get_backend(first.device) != "WEFT" or not _products.takes(first, group_of(args[at])):
            return otherwise(keys, *args, **kwargs)
        with torch.cuda.device(first.device):
            return _products.operators[name](*args, **kwargs)
    return dispatch


def _put_before(name, dispatch):
    _registrations.impl(name, dispatch, "CUDA", with_keyset=True, allow_override=True)


def install():
    global _registrations
    if _registrations is not None or torch.version.cuda is None:
        return
    _registrations = torch.library.Library("symm_mem", "IMPL")
    with warnings.catch_warnings():  # of this warning only
        warnings.filterwarnings("ignore", message=".*may also be overridden")
        for operator in _OPERATORS:
            if hasattr(torch.ops.symm_mem, operator.__name__):
                _put_before(operator.__name__, _before(operator, _kernel_of(operator.__name__)))
        for name in _IN_PYTHON:
            if (kernel := _kernel_of(name)) is not None:
                _put_before(name, _multiplied(name, kernel) if name in _products.operators else _on_its_gpu(kernel))
