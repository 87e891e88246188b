# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges of rows between all members, on CPU tensors, with any number of rows for each.

    all_to_all           the caller passes the sizes as numbers
    all_to_all_vdev      the splits are a tensor; receivers learn theirs
    .._2d                ne splits for each member, to be sorted by expert: (rank, expert) becomes
                         (expert, rank), experts begin at multiples of major_align
    .._2d_offset         the reverse; the input may have gaps, the output has none

Before rows are sent, the members exchange all splits and the numbers of rows in their tensors, so that an error is
raised on all of them.
"""
import torch

import weft
from weft.torch._check import check_contiguous
from weft.torch._groups import group_of


def all_to_all(input, output_splits, input_splits, group_name):
    """Does the same as torch.distributed.all_to_all_single(), but returns the output."""
    group = group_of(group_name)
    source = input.detach().contiguous()
    sent, taken = split_sizes(input, output_splits, input_splits, group.size)
    dest = source.new_empty((sum(taken), *source.shape[1:]))
    _send(group, dest, taken, None, source, sent, None, 1)
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


def _send(group, dest, taken, taken_at, source, sent, sent_at, parts):
    """Sends rows of source to the members' dest. Counts and offsets are in rows, in the order (member, part). Without
    offsets the parts follow each other."""
    row = source.shape[1:].numel()
    elements = [rows and [row * each for each in rows] for rows in (taken, sent, taken_at, sent_at)]
    weft.all_to_allv(dest.detach(), source.detach(), elements[0], elements[1],
                     dest_offsets=elements[2], source_offsets=elements[3], nparts=parts,
                     team=group.team)


def all_to_all_vdev(input, out, in_splits, out_splits_offsets, group_name):
    call, group = "all_to_all_vdev", group_of(group_name)
    _check_rows(call, input, out)
    _check_splits(call, "in_splits", in_splits, (group.size,))
    _check_splits(call, "out_splits_offsets", out_splits_offsets, (2, group.size))
    splits, room = _exchange_splits(call, group, in_splits, int(in_splits.sum()), input, out)
    taken = splits[:, group.rank]
    _check_room(call, splits.sum(0), room)
    out_splits_offsets[0] = taken
    out_splits_offsets[1] = _before(taken)
    _send(group, out, taken.tolist(), None, input, in_splits.tolist(), None, 1)


def all_to_all_vdev_2d(input, out, in_splits, out_splits_offsets, group_name, major_align=None):
    call, group = "all_to_all_vdev_2d", group_of(group_name)
    align = 1 if major_align is None else major_align
    if align <= 0:
        raise RuntimeError(f"{call}: major_align must be positive, got {align}")
    _check_rows(call, input, out)
    experts = _experts(call, "in_splits", in_splits, in_splits.shape[-1:], group)
    _check_splits(call, "out_splits_offsets", out_splits_offsets, (2, in_splits.shape[0]))
    splits, room = _exchange_splits(call, group, in_splits, int(in_splits.sum()), input, out)
    bins = splits.view(group.size, group.size, experts).movedim(1, 0).movedim(1, 2)
    begins = torch.stack([_bins(each, align) for each in bins])  # (receiver, expert, sender)
    _check_room(call, torch.where(bins > 0, begins + bins, 0).flatten(1).amax(1), room)
    taken, taken_at = bins[group.rank], begins[group.rank]
    out_splits_offsets[0] = taken.flatten()
    out_splits_offsets[1] = taken_at.flatten()
    _send(group, out, taken.t().flatten().tolist(), taken_at.t().flatten().tolist(), input,
          in_splits.tolist(), None, experts)


def all_to_all_vdev_2d_offset(input, out, in_splits_offsets, out_splits_offsets, group_name):
    call, group = "all_to_all_vdev_2d_offset", group_of(group_name)
    _check_rows(call, input, out)
    experts = _experts(call, "in_splits_offsets", in_splits_offsets,
                       (2, in_splits_offsets.shape[-1]), group)
    _check_splits(call, "out_splits_offsets", out_splits_offsets, in_splits_offsets.shape)
    sent, sent_at = in_splits_offsets.view(2, experts, group.size).transpose(1, 2).flatten(1)
    ends = torch.where(sent > 0, sent + sent_at, 0)
    splits, room = _exchange_splits(call, group, sent, int(ends.max()), input, out)
    splits = splits.view(group.size, group.size, experts)  # (sender, receiver, expert)
    taken = splits[:, group.rank].flatten()
    _check_room(call, splits.sum((0, 2)), room)
    out_splits_offsets[0] = taken
    out_splits_offsets[1] = _before(taken)
    _send(group, out, taken.tolist(), None, input, sent.tolist(), sent_at.tolist(), experts)


def _before(counts):
    """Returns the exclusive prefix sum along the last dimension."""
    return counts.cumsum(-1) - counts


def _bins(counts, align):
    """Returns where the parts of (expert, sender) begin, each expert at a multiple of align. An empty expert takes
    room, too, because grouped matrix products do not accept empty groups."""
    lengths = ((counts.sum(1) + align - 1) // align * align).clamp(min=align)
    return _before(lengths)[:, None] + _before(counts)


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


def _experts(call, name, splits, sizes, group):
    _check_splits(call, name, splits, sizes)
    if splits.shape[-1] == 0 or splits.shape[-1] % group.size:
        raise RuntimeError(f"{call}: got {name} of {splits.shape[-1]} splits, expected a multiple "
                           f"of the group's {group.size} members")
    return splits.shape[-1] // group.size


def _exchange_splits(call, group, splits, needed, input, out):
    """Returns the splits of all members, (member, *), and the number of rows in each member's out, after checking that
    every member has the rows that it sends."""
    rows = torch.tensor([needed, input.shape[0], out.shape[0]], device=splits.device)
    own = torch.cat([splits.flatten(), rows])
    table = own.new_empty((group.size, own.numel()))
    weft.all_gather(table, own, team=group.team)
    splits, room = table[:, :-3], table[:, -1]
    for member, (rows, has) in enumerate(table[:, -3:-1].tolist()):
        if splits[member].min() < 0:
            raise RuntimeError(f"{call}: got a split of {int(splits[member].min())} rows on rank "
                               f"{member}, expected at least 0")
        if rows > has:
            raise RuntimeError(f"{call}: got splits of {rows} rows on rank {member}, expected at "
                               f"most the {has} of its input")
    return splits, room


def _check_room(call, needed, room):
    """Checks that each out has room. needed[r]: rows that rank r receives; room[r]: rows of its out."""
    for member, (rows, has) in enumerate(zip(needed.tolist(), room.tolist())):
        if rows > has:
            raise RuntimeError(f"{call}: got out of {has} rows on rank {member}, expected at least "
                               f"the {rows} that it receives")
