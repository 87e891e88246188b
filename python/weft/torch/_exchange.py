# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges of rows between all members, on CPU tensors, with any number of rows for each; and of blocks of caches.

    all_to_all           the caller passes the sizes as numbers
    all_to_all_vdev      the splits are a tensor; receivers learn theirs
    .._2d                ne splits for each member, to be sorted by expert: (rank, expert) becomes
                         (expert, rank), experts begin at multiples of major_align
    .._2d_offset         the reverse; the input may have gaps, the output has none

In the latter three weft.all_to_allv_on_device() lets the members read all splits before rows are sent, so an error is
raised on all of them.
"""
import torch

import weft
from weft.torch import _kernels, _memory
from weft.torch._check import check_contiguous
from weft.torch._groups import group_of


def all_to_all(input, output_splits, input_splits, group_name):
    """Does the same as torch.distributed.all_to_all_single(), but returns the output."""
    group = group_of(group_name)
    source = input.detach().contiguous()
    sent, taken = split_sizes(input, output_splits, input_splits, group.size)
    dest = source.new_empty((sum(taken), *source.shape[1:]))
    row = source.shape[1:].numel()
    weft.all_to_allv(dest, source, [row * rows for rows in taken], [row * rows for rows in sent], team=group.team)
    return dest


def split_sizes(input, output_splits, input_splits, members):
    """Returns (sent, taken): the rows to and from each member, all equal without splits."""
    call = "all_to_all"
    if input.dim() == 0:
        raise ValueError(f"{call}: got a scalar, expected rows")
    if (output_splits is None) != (input_splits is None):
        raise ValueError(f"{call}: expected both output_splits and input_splits, or neither")
    if input_splits is None:
        if input.shape[0] % members:
            raise ValueError(f"{call}: got {input.shape[0]} rows without splits, expected a "
                             f"multiple of the group's {members} members")
        input_splits = output_splits = [input.shape[0] // members] * members
    for name, splits in (("input_splits", input_splits), ("output_splits", output_splits)):
        if len(splits) != members or any(rows < 0 for rows in splits):
            raise ValueError(f"{call}: got {name} {list(splits)}, expected {members} numbers of "
                             "rows, one a member")
    if sum(input_splits) != input.shape[0]:
        raise ValueError(f"{call}: got input_splits of {sum(input_splits)} rows together, expected "
                         f"the {input.shape[0]} of input")
    return list(input_splits), list(output_splits)


def exchange_rows(call, group, input, out, in_splits, in_offsets, books, stream=None, **order):
    """Sends rows of input to the members' out, and sets books: their splits and offsets. order: as in weft."""
    try:
        weft.all_to_allv_on_device(out.detach(), input.detach(), books[0], books[1], in_splits, in_offsets,
                                   nparts=in_splits.numel() // group.size, team=group.team, stream=stream, **order)
    except (ValueError, RuntimeError) as error:
        raise RuntimeError(f"{call}: {str(error).removeprefix('all_to_allv_on_device: ')}") from None


def all_to_all_vdev(input, out, in_splits, out_splits_offsets, group_name):
    call, group = "all_to_all_vdev", group_of(group_name)
    _check_rows(call, input, out)
    _check_splits(call, "in_splits", in_splits, (group.size,))
    _check_splits(call, "out_splits_offsets", out_splits_offsets, (2, group.size))
    exchange_rows(call, group, input, out, in_splits, None, out_splits_offsets)


def all_to_all_vdev_2d(input, out, in_splits, out_splits_offsets, group_name, major_align=None):
    call, group = "all_to_all_vdev_2d", group_of(group_name)
    align = 1 if major_align is None else major_align
    if align <= 0:
        raise RuntimeError(f"{call}: major_align must be positive, got {align}")
    _check_rows(call, input, out)
    _check_parts(call, "in_splits", in_splits, in_splits.shape[-1:], group)
    _check_splits(call, "out_splits_offsets", out_splits_offsets, (2, in_splits.shape[0]))
    exchange_rows(call, group, input, out, in_splits, None, out_splits_offsets, dest_by_part=True, align=align)


def all_to_all_vdev_2d_offset(input, out, in_splits_offsets, out_splits_offsets, group_name):
    call, group = "all_to_all_vdev_2d_offset", group_of(group_name)
    _check_rows(call, input, out)
    _check_parts(call, "in_splits_offsets", in_splits_offsets, (2, in_splits_offsets.shape[-1]), group)
    _check_splits(call, "out_splits_offsets", out_splits_offsets, in_splits_offsets.shape)
    exchange_rows(call, group, input, out, *in_splits_offsets.unbind(0), out_splits_offsets, source_by_part=True)


def kv_shuffle(caches, peer_and_role, from_blocks, to_blocks, group):
    """Copies blocks of symmetric tensors between pairs of ranks."""
    call, device, stream = "kv_shuffle", peer_and_role.device, None
    for number, cache in enumerate(caches):
        check_contiguous(call, f"caches[{number}]", cache)
        if _memory.SymmetricMemory.rendezvous(cache, group.name) is None:
            raise RuntimeError(f"{call}: caches[{number}] is not symmetric; expected a tensor of weft.torch.empty")
    if device.type == "cuda":
        if not _kernels.works_on(device, group):
            raise RuntimeError(f"{call}: the GPUs of all ranks are not connected; let all ranks make a collective call, "
                               "outside of a graph, on symmetric tensors before")
        stream = torch.cuda.current_stream(device)
    weft.kv_shuffle([cache.detach() for cache in caches], peer_and_role, from_blocks, to_blocks, team=group.team,
                    stream=stream)
    if stream is not None:
        _kernels.met(group, True)


def _check_rows(call, input, out):
    check_contiguous(call, "input", input)
    check_contiguous(call, "out", out)
    if input.dtype != out.dtype or input.dim() == 0 or input.shape[1:] != out.shape[1:]:
        raise RuntimeError(f"{call}: got out of {list(out.shape)} {out.dtype}, expected rows as of "
                           f"input, {list(input.shape)} {input.dtype}")


def _check_splits(call, name, splits, sizes):
    check_contiguous(call, name, splits)
    if splits.dtype != torch.int64 or tuple(splits.shape) != tuple(sizes):
        raise RuntimeError(f"{call}: got {name} of {list(splits.shape)} {splits.dtype}, expected "
                           f"{list(sizes)} torch.int64")


def _check_parts(call, name, splits, sizes, group):
    _check_splits(call, name, splits, sizes)
    if splits.shape[-1] == 0 or splits.shape[-1] % group.size:
        raise RuntimeError(f"{call}: got {name} of {splits.shape[-1]} splits, expected a multiple "
                           f"of the group's {group.size} members")
