# SPDX-License-Identifier: BSD-3-Clause
"""Formats of deep_ep.py: 8-bit floats with a scale for each 128 elements, what travels with a row, and the padded rows of
low-latency mode. No function waits for a GPU, and all shapes follow from those of the arguments, so CUDA graphs can
capture every call.

    compact, as MoE.dispatch() writes them       padded, for each expert `room` rows
    expert 0's rows, expert 1's rows, ...        expert 0's rows, unused, expert 1's rows, unused, ...
"""
import collections.abc

import torch

BLOCK = 128           # elements that share a scale
_F8_MAX = 448.0       # of float8_e4m3fn
_AMAX_MIN = 1e-4      # so that a block of zeros has a scale
_MANTISSA = (1 << 23) - 1


def to_f8(x, round_scale, use_ue8m0):
    """Returns x as float8_e4m3fn, and the factors that restore it: float32, or with use_ue8m0 four exponents in an int32.
    round_scale: factors are powers of two, rounded up."""
    blocks = x.float().view(x.shape[0], x.shape[1] // BLOCK, BLOCK)
    amax = blocks.abs().amax(2).clamp(min=_AMAX_MIN)
    if round_scale:
        bits = (amax * (1 / _F8_MAX)).view(torch.int32)
        factors = ((bits >> 23) + (bits & _MANTISSA != 0)) << 23
        factors = factors.to(torch.int32).view(torch.float32)
        narrow = blocks * (1 / factors)[:, :, None]
    else:
        factors = amax * (1 / _F8_MAX)
        narrow = blocks * (_F8_MAX / amax)[:, :, None]
    if use_ue8m0:
        factors = (factors.view(torch.int32) >> 23).to(torch.uint8).view(torch.int32)
    return narrow.view(x.shape).to(torch.float8_e4m3fn), factors


# --- What travels with a row -----------------------------------------------------------------------


def packed(*columns):
    """Returns columns of 32-bit elements beside each other as float32, bit for bit; None: there are no columns."""
    words = [each.contiguous().view(torch.int32) for each in columns if each is not None]
    return torch.cat(words, 1).view(torch.float32) if words else None


def unpacked(scales, *columns):
    """Splits the result of packed() into columns like those passed, which may be None."""
    widths = [0 if each is None else each.shape[1] for each in columns]
    words = [None] * len(columns) if scales is None else scales.view(torch.int32).split(widths, 1)
    return [None if like is None else part.contiguous().view(like.dtype) for part, like in zip(words, columns)]


def local_topk(topk_idx, topk_weights, experts, rank):
    """Returns the indices as those of the rank's own experts, -1 for other ranks' experts, whose weights become 0."""
    local = topk_idx.long() - rank * experts
    mine = (local >= 0) & (local < experts)
    return torch.where(mine, local, -1), torch.where(mine, topk_weights, 0)


def resized(rows, nrows):
    """Returns the first rows, or all of them and zeros."""
    if nrows <= rows.shape[0]:
        return rows[:nrows]
    result = rows.new_zeros((nrows, *rows.shape[1:]))
    result[:rows.shape[0]].copy_(rows)
    return result


class Handle:
    """The routes of a dispatch(). experts: the ranks of each token. nrows: rows of the result."""

    def __init__(self, experts, sources, offsets, tokens_max, nrows):
        self.experts, self.sources, self.offsets = experts, sources, offsets
        self.tokens_max, self.nrows = tokens_max, nrows

    def tensors(self):
        return [self.experts, self.sources, self.offsets]


# --- Padded rows -----------------------------------------------------------------------------------


def places_of(offsets, nrows, room):
    """Returns the place of each compact row among the padded ones; rows after the last have the place after the end."""
    row = torch.arange(nrows, dtype=torch.int32, device=offsets.device)
    expert = torch.searchsorted(offsets[1:].contiguous(), row, right=True)
    experts = offsets.shape[0] - 1
    at = row - offsets[expert.clamp(max=experts - 1)]
    return torch.where((expert < experts) & (at < room), expert * room + at, experts * room)


def _words(rows):
    """Returns rows as 8-byte words, which index operations copy faster than 8-bit floats."""
    return rows.view(torch.int64)


def pad(rows, places, experts, room):
    """Returns experts x room x cols; unused rows are not written."""
    result = rows.new_empty((experts * room + 1, rows.shape[1]))  # and a row for those after the last
    _words(result).index_copy_(0, places, _words(rows))
    return result[:-1].view(experts, room, -1)


def pad_scales(scales, places, experts, room):
    """Returns experts x room x cols, in which the rows of an expert are adjacent in memory for each column."""
    cols = scales.shape[1]
    result = scales.new_empty((experts * cols * room + 1,))
    column = torch.arange(cols, device=places.device) * room
    at = (places // room * (cols * room) + places % room)[:, None] + column
    at = torch.where(places[:, None] < experts * room, at, experts * cols * room)
    result.index_put_((at.view(-1),), scales.contiguous().view(-1))
    return result[:-1].view(experts, cols, room).transpose(1, 2)


def unpad(padded, places):
    """Returns compact rows; those after the last have any values."""
    flat = padded.reshape(-1, padded.shape[-1])
    return _words(flat)[places.clamp(max=flat.shape[0] - 1)].view(padded.dtype)


class PaddedHandle(collections.abc.Sequence):
    """The routes of a low_latency_dispatch(), which low_latency_combine() needs. As a sequence: source tokens (experts x
    room), for each of them and each rank the first row << 32 | the number of rows, tokens_max, hidden, and the number of
    all experts. The first two are computed when they are read."""

    def __init__(self, experts, sources, offsets, places, ranks, tokens_max, hidden, num_experts, dtype):
        self.experts, self.sources, self.offsets, self.places = experts, sources, offsets, places
        self.ranks, self.tokens_max, self.hidden, self.num_experts = ranks, tokens_max, hidden, num_experts
        self.top_k = experts.shape[1]
        self.each, self.room, self.dtype = num_experts // ranks, ranks * tokens_max, dtype
        self.next = None  # the tensor of get_next_low_latency_combine_buffer()

    def __len__(self):
        return 5

    def __getitem__(self, at):
        if isinstance(at, slice):
            return tuple(self[i] for i in range(*at.indices(5)))
        if not -5 <= at < 5:
            raise IndexError(f"a handle of low_latency_dispatch() has 5 elements, not one with the number {at}")
        return (self._source_tokens, self._ranges, lambda: self.tokens_max, lambda: self.hidden,
                lambda: self.num_experts)[at]()

    def _source_tokens(self):
        result = self.sources.new_full((self.each * self.room + 1,), -1)
        result.index_copy_(0, self.places, (self.sources // self.top_k % self.tokens_max).to(torch.int32))
        return result[:-1].view(self.each, self.room)

    def _ranges(self):
        rank = (self.sources // (self.top_k * self.tokens_max)).long()
        last = self.each * self.ranks
        at = torch.where(self.places < self.each * self.room, self.places // self.room * self.ranks + rank, last)
        counts = at.new_zeros(last + 1).scatter_add_(0, at, torch.ones_like(at))[:-1].view(self.each, self.ranks)
        return (counts.cumsum(1) - counts) << 32 | counts
