# SPDX-License-Identifier: BSD-3-Clause
"""Collectives on CUDA tensors by Weft's own kernels, for the sizes at which they are faster than PyTorch's.

All members use the kernels for a call, or none does, because the decision depends only on size, type and group. The
functions return None if the kernels do not apply; PyTorch's operator is used then.

With two H200s an all-reduce of 1 KiB takes 2.2 us (PyTorch's one shot 6.9), of 128 KiB 3.5 (8.2); an all-gather of 1
KiB 2.2, of 256 KiB 4.6 (low contention 23 to 29); a reduce-scatter of 512 KiB 4.3 (5.8 to 9).
"""
import collections

import torch

import weft
from weft.torch import _memory

FLOATS = (torch.float32, torch.bfloat16, torch.float16)
_KIB = 1024

taken = collections.Counter()  # counts calls by these kernels, by operation
_up = False                    # the job's GPUs are connected, which takes a call of all ranks


def limit(operation, members):
    """Returns the bytes of the largest block for these kernels. Gathers and all-to-alls end at the limit of packets
    (coll/stream_choice.c). The limits of reductions are lower than in that table; an all-reduce of more than 1 MiB has
    not been measured against PyTorch's."""
    if operation == "all_reduce":
        return min(384 * _KIB * members, 1024 * _KIB)
    return (2048 if operation == "reduce_scatter" else 512) * _KIB // members


def all_gather(source, group):
    """Returns (members, *source.shape), or None; any dtype."""
    if source.dtype.is_complex or not takes("all_gather", source, source.numel(), group):
        return None
    dest = source.new_empty((group.size, *source.shape))
    _run("all_gather", _bytes(dest), _bytes(source), group)
    return dest


def all_to_all(source, group):
    """Exchanges equal parts of dimension 0, or returns None; any dtype."""
    if source.dtype.is_complex or not takes("all_to_all", source, source.numel() // group.size, group):
        return None
    dest = torch.empty_like(source)
    _run("all_to_all", _bytes(dest), _bytes(source), group)
    return dest


def all_reduce(source, reduce_op, group, dest=None):
    """Returns the sum in source's shape, in dest if given (contiguous, of the same shape and type), or None."""
    if not _reduces(source, reduce_op) or not takes("all_reduce", source, source.numel(), group):
        return None
    dest = torch.empty_like(source) if dest is None else dest
    _run("all_reduce", dest, source, group, op=reduce_op)
    return dest


def reduce_scatter(parts, reduce_op, group, dest=None):
    """Returns this member's part of the reduction over all members' parts, in dest if given (with as many elements), or
    None. parts: (members, ...)."""
    if not _reduces(parts, reduce_op) or not takes("reduce_scatter", parts, parts.numel() // group.size, group):
        return None
    dest = parts.new_empty(parts.shape[1:]) if dest is None else dest
    _run("reduce_scatter", dest, parts, group, op=reduce_op)
    return dest


# --- The choice ---------------------------------------------------------------------------------------


def multiplies(group, device):
    """Returns whether the group's GPUs multiply matrices by Weft's operators; the same on all members. The first
    answer takes a call of all members, outside of a graph."""
    if group.multiplies is None and _may_ask(group):
        connect(device)
        group.multiplies = _has_products(group)
    return bool(group.multiplies)


def _reduces(source, reduce_op):
    return reduce_op in ("sum", "avg") and source.dtype in FLOATS


def takes(operation, source, block_numel, group):
    """Returns whether the group's kernels do this operation on blocks of source's type, the same on all members. The first
    answer takes a call of all members, outside of a graph."""
    nbytes = block_numel * source.element_size()
    if group.size == 1 or not 0 < nbytes <= limit(operation, group.size) or not source.is_contiguous():
        return False
    if group.kernels is None:
        _ask(group, source.device)
    return group.kernels is not None and nbytes <= group.kernels[operation]


def _may_ask(group):
    """Returns whether the group's members may find something out together: not while a graph is captured, and not by a
    part of the ranks before all have met."""
    return not torch.cuda.is_current_stream_capturing() and (_up or group.size == weft.n_pes())


def connect(device):
    """The first symmetric tensor decides which GPU is this PE's."""
    _memory.SymmetricMemory.empty_strided_p2p((1,), (1,), torch.uint8, device)


def met(group, found):
    """Notes that the GPUs of all ranks are connected, if all of them have found something to work."""
    global _up
    _up = _up or (group.size == weft.n_pes() and found)


def _ask(group, device):
    """Finds, by trying, up to which block size the group's GPUs have kernels for each operation, 0 for none: the same
    answer on all members. Collective over the group, once."""
    if not _may_ask(group):
        return
    connect(device)
    group.kernels = {operation: _most(operation, group) for operation in _SHAPES}
    met(group, any(group.kernels.values()))


# Whether dest and source have a block for each member.
_SHAPES = {"all_gather": (True, False), "all_to_all": (True, True), "all_reduce": (False, False),
           "reduce_scatter": (False, True)}


def _most(operation, group):
    """Weft's settings may reduce the limit (SHMEMX_SMS), or leave nothing (SHMEMX_ALGORITHM)."""
    most = limit(operation, group.size)
    return next((most >> less for less in range(4) if _works(operation, group, most >> less)), 0)


def _works(operation, group, nbytes):
    numel = nbytes // 2
    dest, source = (torch.zeros(numel * (group.size if whole else 1), dtype=torch.bfloat16, device=own_gpu())
                    for whole in _SHAPES[operation])
    try:
        _enqueue(operation, dest, source, group)
    except (NotImplementedError, RuntimeError, ValueError, MemoryError, OSError):
        return False
    return True


def _has_products(group):
    """Returns False if cuBLASLt is missing."""
    shard = torch.zeros((8, 8), dtype=torch.bfloat16, device=own_gpu())
    c = shard.new_empty((8 * group.size, 8))
    try:
        weft.all_gather_matmul(c, shard, shard, team=group.team, stream=torch.cuda.current_stream(shard.device))
    except NotImplementedError:
        return False
    met(group, True)
    return True


def works_on(device, group):
    """Returns whether the group's calls on this GPU are Weft's kernels, the same on all members: it is this PE's, and the
    GPUs of all ranks are connected, or this call of all of them can connect them. met() follows a successful call."""
    if not _up:
        if not _may_ask(group):
            return False
        connect(device)
    return device == own_gpu()


# --- The call -----------------------------------------------------------------------------------------


def own_gpu():
    """Returns this PE's GPU, after its first symmetric tensor."""
    return torch.device("cuda", weft.device())


def _bytes(tensor):
    return tensor.view(-1).view(torch.uint8)


def _enqueue(operation, dest, source, group, **options):
    stream = torch.cuda.current_stream(source.device)
    getattr(weft, operation)(dest.detach(), source.detach(), team=group.team, stream=stream, **options)


def _run(operation, dest, source, group, **options):
    """Kernels work on this PE's GPU. Tensors on another GPU of the process are copied there and back, through ordinary
    memory, because other GPUs cannot access the symmetric memory of this one."""
    taken[operation] += 1
    own = own_gpu()
    if source.device == own:
        _enqueue(operation, dest, source, group, **options)
        return
    result = torch.empty_like(dest, device=own)
    _enqueue(operation, result, source.clone().to(own), group, **options)
    dest.copy_(result.to(dest.device))
