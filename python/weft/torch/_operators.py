# SPDX-License-Identifier: BSD-3-Clause
"""The operators as functions. All are collective over the group, which is a process group, its name, or a DeviceMesh of
one dimension, and may also be passed as group_name; all members call, in the same order. Tensors are the ranks' own.
The functions of tensor parallelism also accept DTensors, see _dtensors.py; the others raise TypeError for a DTensor.

On return (CPU), or when the stream gets there (CUDA), results are complete and inputs may be overwritten. Sizes and
types are checked before anything is sent: ValueError or RuntimeError with the value and the expected value.
"""
import functools

import torch

from weft.torch import _backend, _dtensors, _eager, _exchange, _kernels, _memory, _products
from weft.torch._groups import by_either_name, group_of, or_with_dtensors
from weft.torch._groups import group_name as name_of

_weft = torch.ops.weft
_symm_mem = torch.ops.symm_mem


def without_gradient(operator):
    """Refuses tensors that require a gradient. PyTorch's operators of these names have no gradient and do not report
    it, so the layers before them would not learn."""
    @functools.wraps(operator)
    def call(*args, **named):
        if torch.is_grad_enabled():
            for given in (*args, *named.values()):
                if isinstance(given, torch.Tensor) and given.requires_grad:
                    raise RuntimeError(f"{operator.__name__}: got a tensor that requires a gradient, expected one "
                                       "that does not, or torch.no_grad(): this operator has no gradient; all_reduce, "
                                       "all_gather, reduce_scatter and all_to_all have one")
        return operator(*args, **named)
    return call


def on_its_gpu(operator):
    """Makes the tensors' device current: PyTorch's C++ operators use the current device's stream."""
    @functools.wraps(operator)
    def call(*args, **named):
        tensor = next((given for given in (*args, *named.values()) if isinstance(given, torch.Tensor)), None)
        if (tensor is None or not tensor.is_cuda or torch.compiler.is_compiling()
                or tensor.device.index == torch.cuda.current_device()):
            return operator(*args, **named)
        with torch.cuda.device(tensor.device):
            return operator(*args, **named)
    return call


# --- By Weft's kernels ----------------------------------------------------------------------------


def _is_plain(*tensors):
    """Returns whether these are ordinary contiguous tensors on one GPU, outside of compilation."""
    return not torch.compiler.is_compiling() and all(
        type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.is_cuda and tensor.is_contiguous()
        and tensor.device == tensors[0].device for tensor in tensors)


def _are_summed(symmetric, reduce_op, *others):
    """Returns whether PyTorch's operator would accept these, as far as Python can check."""
    return (reduce_op == "sum" and _is_plain(symmetric, *others) and symmetric.dtype in (torch.float32, torch.bfloat16)
            and all(other.dtype == symmetric.dtype for other in others) and _memory.is_symm_mem_tensor(symmetric))


def _all_reduce(symmetric, reduce_op, group, source, dest=None):
    """Returns source's sum, or None if PyTorch's operator must be called, which also reports errors."""
    result = source if dest is None else dest
    if (not _are_summed(symmetric, reduce_op, source, result) or result.shape != source.shape
            or source.numel() > symmetric.numel()):
        return None
    return _kernels.all_reduce(source, reduce_op, group_of(name_of(group)), dest)


def _reduce_scatter(symmetric, group, dest):
    if not _are_summed(symmetric, "sum", dest) or symmetric.dim() != 1 or dest.dim() != 1:
        return None
    group = group_of(name_of(group))
    if dest.numel() == 0 or symmetric.numel() != dest.numel() * group.size:
        return None
    return _kernels.reduce_scatter(symmetric.view(group.size, -1), "sum", group, dest)


def _reduce_rows(tensor, reduce_op, group):
    if tensor.numel() == 0 or tensor.shape[0] % group.size:
        return None
    return _kernels.reduce_scatter(tensor.unflatten(0, (group.size, -1)), reduce_op, group)


# --- Functions with gradients --------------------------------------------------------------------


@or_with_dtensors(_dtensors.all_gather)
def all_gather(input, gather_dim, group):
    """Concatenates the members' inputs, all of one shape, along gather_dim in order of rank. The result's layout has
    gather_dim as the outermost dimension. Any dtype.

    With a DTensor: Shard(gather_dim) becomes Replicate."""
    return _weft.all_gather(input, gather_dim, name_of(group))


@or_with_dtensors(_dtensors.reduce_scatter)
def reduce_scatter(input, reduce_op, scatter_dim, group):
    """Returns this rank's part along scatter_dim, whose size is a multiple of the members, of the sum over all inputs;
    reduce_op: sum, avg, max, min or prod. The result is contiguous. 16-bit types are added in 32 bits.

    With a DTensor: Partial(reduce_op) becomes Shard(scatter_dim)."""
    return _weft.reduce_scatter(input, reduce_op, scatter_dim, name_of(group))


@or_with_dtensors(_dtensors.all_reduce)
def all_reduce(input, reduce_op, group):
    """Returns the sum (avg, max, min, prod) over all inputs, with the same bits on every rank. The result is
    contiguous.

    With a DTensor: Partial(reduce_op) becomes Replicate."""
    return _weft.all_reduce(input, reduce_op, name_of(group))


@by_either_name
def all_to_all(input, group, output_splits=None, input_splits=None):
    """Sends input_splits[r] rows of input to rank r, and receives output_splits[r] rows from it, in order of rank;
    without both, equal parts. The splits of each pair of ranks must agree: ValueError on all ranks."""
    return _weft.all_to_all(input, output_splits, input_splits, name_of(group))


@_eager.first
@or_with_dtensors(_dtensors.fused_all_gather_matmul)
def fused_all_gather_matmul(A, Bs, gather_dim, group, *, return_A=True):
    """Returns (A gathered along gather_dim, or None; [gathered A @ B for B in Bs]).

    A: this rank's shard, (..., K), the same shape on all ranks; each B: (K, N) of any N, each rank its own. 0 <=
    gather_dim < A.dim(). When the last dimension is gathered, B has K * members rows. A is not copied if
    A.movedim(gather_dim, 0) is contiguous; the results have that layout. float32, float64, bfloat16 and float16 are
    multiplied while they are gathered.

    With DTensors: A is Shard(gather_dim) and each B Shard(1); gathered A is Replicate and each product Shard(last)."""
    call, group = _products.route("fused_all_gather_matmul", group, A, Bs)
    return call(A, Bs, gather_dim, group, return_A=return_A)


@_eager.first
@or_with_dtensors(_dtensors.fused_matmul_reduce_scatter)
def fused_matmul_reduce_scatter(A, B, reduce_op, scatter_dim, group):
    """Returns this rank's part along scatter_dim of the sum (reduce_op avg: mean) over the ranks' A @ B.

    A: (..., K), B: (K, N); the size of the scattered dimension is a multiple of the members. The result is contiguous.
    A is not copied if A.movedim(scatter_dim, 0) is contiguous.

    With DTensors: A is Shard(last) and B Shard(0); the result, A @ B, is Shard(scatter_dim). reduce_op: sum."""
    call, group = _products.route("fused_matmul_reduce_scatter", group, A, [B])
    return call(A, B, reduce_op, scatter_dim, group)


@_eager.first
@or_with_dtensors(_dtensors.fused_matmul_all_reduce)
def fused_matmul_all_reduce(A, B, reduce_op, group):
    """Returns the sum (reduce_op avg: mean) over the ranks' A @ B, with the same bits on all. A: (..., K), B: (K, N).

    With DTensors: A is Shard(last) and B Shard(0); the result, A @ B, is Replicate. reduce_op: sum."""
    call, group = _products.route("fused_matmul_all_reduce", group, A, [B])
    return call(A, B, reduce_op, group)


# --- Products of 8-bit floats --------------------------------------------------------------------


@or_with_dtensors(_dtensors.fused_all_gather_scaled_matmul)
@without_gradient
def fused_all_gather_scaled_matmul(A, Bs, A_scale, B_scales, gather_dim, group, biases,
                                   result_scales, out_dtypes, use_fast_accum):
    """Returns (A gathered, [torch._scaled_mm(gathered A, B, ...) for B in Bs]).

    A: (..., K) of 8-bit floats, gathered along any dimension but the last; B: (K, N). A_scale: one number, or one for
    each row, of this rank's A ((..., 1): gathered with it) or of the whole A. The other lists are as long as Bs;
    ValueError if not, and for scales of any other shape.

    With DTensors: as fused_all_gather_matmul(). Scales of rows are sharded like A, scales of columns and biases like B."""
    call, group = _products.route("fused_all_gather_scaled_matmul", group, A, Bs, A_scale, B_scales, biases,
                                  result_scales)
    return call(A, Bs, A_scale, B_scales, gather_dim, group, biases, result_scales, out_dtypes, use_fast_accum)


@or_with_dtensors(_dtensors.fused_scaled_matmul_reduce_scatter)
@without_gradient
def fused_scaled_matmul_reduce_scatter(A, B, A_scale, B_scale, reduce_op, orig_scatter_dim,
                                       scatter_dim_after_maybe_reshape, group, output_shape,
                                       bias=None, result_scale=None, out_dtype=None,
                                       use_fast_accum=False):
    """Returns this rank's part of the sum (or mean) over the ranks' torch._scaled_mm(A, B, ...).

    A: (..., K) of 8-bit floats, with its scatter dimension at scatter_dim_after_maybe_reshape. output_shape: of the
    product before it is scattered along orig_scatter_dim.

    With DTensors: as fused_matmul_reduce_scatter(), without a reshape. Scales and bias are Replicate."""
    call, group = _products.route("fused_scaled_matmul_reduce_scatter", group, A, [B], A_scale, B_scale, bias,
                                  result_scale)
    return call(A, B, A_scale, B_scale, reduce_op, orig_scatter_dim, scatter_dim_after_maybe_reshape, group,
                output_shape, bias, result_scale, out_dtype, use_fast_accum)


# --- On symmetric tensors ------------------------------------------------------------------------


@by_either_name
@without_gradient
@on_its_gpu
def one_shot_all_reduce(input, reduce_op, group):
    """Returns the sum over the ranks' symmetric inputs, with the same bits on all. reduce_op: sum. float32 and
    bfloat16; on the CPU also float64 and float16."""
    reduced = _all_reduce(input, reduce_op, group, input)
    return _symm_mem.one_shot_all_reduce(input, reduce_op, name_of(group)) if reduced is None else reduced


@by_either_name
@without_gradient
@on_its_gpu
def one_shot_all_reduce_out(input, reduce_op, group, out):
    """Does one_shot_all_reduce() into `out`, which is contiguous and of input's shape."""
    if _all_reduce(input, reduce_op, group, input, out) is not None:
        return out
    return _symm_mem.one_shot_all_reduce_out(input, reduce_op, name_of(group), out)


@by_either_name
@without_gradient
@on_its_gpu
def one_shot_all_reduce_copy(symm_buffer, local_input, reduce_op, group):
    """Does one_shot_all_reduce() of a tensor that need not be symmetric, through symm_buffer, which must be large
    enough."""
    reduced = _all_reduce(symm_buffer, reduce_op, group, local_input)
    if reduced is not None:
        return reduced
    return _symm_mem.one_shot_all_reduce_copy(symm_buffer, local_input, reduce_op, name_of(group))


@by_either_name
@without_gradient
@on_its_gpu
def one_shot_all_reduce_copy_out(symm_buffer, local_input, reduce_op, group, out):
    """Does one_shot_all_reduce_copy() into `out`, which is contiguous and of local_input's shape."""
    if _all_reduce(symm_buffer, reduce_op, group, local_input, out) is not None:
        return out
    return _symm_mem.one_shot_all_reduce_copy_out(symm_buffer, local_input, reduce_op,
                                                  name_of(group), out)


@by_either_name
@without_gradient
@on_its_gpu
def two_shot_all_reduce_(input, reduce_op, group):
    """Replaces input by the sum over the ranks' symmetric inputs."""
    if _all_reduce(input, reduce_op, group, input, input) is not None:
        return input
    return _symm_mem.two_shot_all_reduce_(input, reduce_op, name_of(group))


@by_either_name
@without_gradient
@on_its_gpu
def two_shot_all_reduce_out(input, reduce_op, group, output):
    """Does two_shot_all_reduce_() into `output`; afterwards the content of input is undefined."""
    if _all_reduce(input, reduce_op, group, input, output) is not None:
        return output
    return _symm_mem.two_shot_all_reduce_out(input, reduce_op, name_of(group), output)


@by_either_name
@without_gradient
@on_its_gpu
def reduce_scatter_out(input, group, split_last_dim, output):
    """Writes this rank's part of the sum over the ranks' symmetric inputs to output: a part of a 1-D tensor, or of each
    row along the last dimension."""
    if not split_last_dim and _reduce_scatter(input, group, output) is not None:
        return output
    return _symm_mem.reduce_scatter_out(input, name_of(group), split_last_dim, output)


@by_either_name
@without_gradient
def low_contention_all_gather(tensor, group):
    """Does all_gather() along dimension 0 without the GPU's multiprocessors, except small tensors after install(),
    which kernels gather faster. The result is complete after torch.ops._c10d_functional.wait_tensor()."""
    gathered = None
    if _is_plain(tensor) and tensor.dim() > 0 and _backend.installed():
        gathered = _kernels.all_gather(tensor, group_of(name_of(group)))
    if gathered is not None:
        return gathered.flatten(0, 1)
    return _symm_mem._low_contention_all_gather(tensor, name_of(group))


@by_either_name
@without_gradient
def low_contention_reduce_scatter(tensor, reduce_op, group):
    """Does reduce_scatter() along dimension 0. Except for small tensors after install(), parts are moved without the
    GPU's multiprocessors, which then reduce them. The result is complete after
    torch.ops._c10d_functional.wait_tensor(). reduce_op: sum or avg."""
    reduced = None
    if _is_plain(tensor) and tensor.dim() > 0 and _backend.installed():
        reduced = _reduce_rows(tensor, reduce_op, group_of(name_of(group)))
    if reduced is not None:
        return reduced
    return _symm_mem._low_contention_reduce_scatter(tensor, reduce_op, name_of(group))


@by_either_name
@without_gradient
def get_remote_tensors(x, group):
    """Returns the ranks' copies of a symmetric tensor, in order of rank; ValueError if x is not symmetric."""
    return _symm_mem.get_remote_tensors(x, name_of(group))


# --- Rows by splits ------------------------------------------------------------------------------


@by_either_name
@without_gradient
def all_to_all_vdev(input, out, in_splits, out_splits_offsets, group):
    """Sends in_splits[r] rows of input to rank r. out receives the rows of all ranks in order of rank;
    out_splits_offsets[0][r] is the number of rows from rank r, [1][r] their offset. int64. CPU tensors:
    RuntimeError on all ranks if one lacks the rows that it sends, or room for those that it receives. CUDA tensors: a
    split that does not fit ends the job, because only the GPU knows the splits."""
    return _symm_mem.all_to_all_vdev(input, out, in_splits, out_splits_offsets, name_of(group))


@by_either_name
@without_gradient
def all_to_all_vdev_2d(input, out, in_splits, out_splits_offsets, group, major_align=None):
    """Sends rows to experts: in_splits[r * ne + e] for expert e of rank r. out holds them by expert, then by sender,
    entry e * members + r of out_splits_offsets. Each expert begins at a multiple of major_align rows (default 1), and
    takes at least that many."""
    return _symm_mem.all_to_all_vdev_2d(input, out, in_splits, out_splits_offsets, name_of(group),
                                        major_align)


@by_either_name
@without_gradient
def all_to_all_vdev_2d_offset(input, out, in_splits_offsets, out_splits_offsets, group):
    """Reverses all_to_all_vdev_2d(), whose result is in_splits_offsets, entry e * members + r; out holds rows by rank,
    then by expert, without gaps."""
    return _symm_mem.all_to_all_vdev_2d_offset(input, out, in_splits_offsets, out_splits_offsets,
                                               name_of(group))


@by_either_name
@without_gradient
def all_reduce_rms_norm(x, weight=None, epsilon=1e-6, *, residual=None, bias=None, scale=None, group_size=0, group):
    """Returns (y, z): z is the sum of the ranks' x, plus bias and residual; y is each row of z divided by its root mean
    square, times weight. A row is the last dimension; float32, bfloat16 or float16. With a scale (a tensor of one
    float32) or a group_size, also y as float8_e4m3fn, divided by its scales, and the scales: for each group of group_size
    elements of a row the largest magnitude / 448. torch.compile and CUDA graphs support it; it has no gradient."""
    name = name_of(group)
    if scale is None and not group_size:
        return _weft.all_reduce_rms_norm(x, weight, epsilon, residual, bias, name)
    return _weft.all_reduce_rms_norm_f8(x, weight, epsilon, residual, bias, scale, group_size, name)


@by_either_name
@without_gradient
def kv_shuffle(caches, peer_and_role, from_blocks, to_blocks, group):
    """Copies blocks of K and V caches between pairs of ranks. caches: symmetric tensors of the same shape, blocks x ...;
    peer_and_role: int32, the other rank of this rank's pair, or -1, and 0 to send or 1 to receive. A rank that sends
    copies block from_blocks[i] of each cache to block to_blocks[i] of its peer's; both are int64, and an entry with
    from_blocks[i] == -1 is skipped; other ranks may pass None. CUDA tensors: the GPU reads the three tensors, so that a
    graph can be replayed with others; a number that does not fit ends the job."""
    return _exchange.kv_shuffle(caches, peer_and_role, from_blocks, to_blocks, group_of(group))


# --- Words of 32 bits ----------------------------------------------------------------------------


@on_its_gpu
def stream_write_value32_(input, offset, val):
    """Sets input[offset] = val in the order of the stream. uint32, 1-D."""
    return _symm_mem.stream_write_value32_(input, offset, val)


@on_its_gpu
def memset32_(input, offset, val, count=1):
    """Sets input[offset:offset + count] = val; CUDA graphs can capture it. uint32, 1-D."""
    return _symm_mem.memset32_(input, offset, val, count)
