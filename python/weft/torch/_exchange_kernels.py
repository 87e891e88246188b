# SPDX-License-Identifier: BSD-3-Clause
"""Triton kernels for exchanges whose sizes only the GPU knows. Triton comes with PyTorch.

Chunk j of the output comes from one rank. The table is (2, chunks) of int64 in symmetric memory:

    tell    each rank writes into a peer's table, for each chunk: into row 0 how many rows the peer gets,
            into row 1 where they begin in this rank's input
    place   a rank saves row 1, and replaces it by the offsets of the chunks in its own output
    pull    copies the chunks, as words, from the peers' inputs
"""
import math

import torch
import triton
import triton.language as tl

_PROGRAMS = 128     # over all chunks, at least
_WORDS = 4096       # copied by a program at a time


@triton.jit
def pointer(address, TYPE: tl.constexpr):
    """An address below 2^31, where some Pythons have their heap, is passed as a number of 32 bits."""
    return address.to(tl.int64).to(tl.pointer_type(TYPE))


@triton.jit
def _tell(splits, offsets, books, at, me, ranks, experts, BY_RANK: tl.constexpr, GIVEN: tl.constexpr,
          ROOM: tl.constexpr):
    chunk = tl.arange(0, ROOM)
    chunks = ranks * experts
    live = chunk < chunks
    rows = tl.load(splits + chunk, mask=live, other=0)
    if GIVEN:
        begin = tl.load(offsets + chunk, mask=live, other=0)
    else:
        begin = tl.cumsum(rows, 0) - rows
    if BY_RANK:
        peer = chunk // experts
        to = (chunk % experts) * ranks + me
    else:
        peer = chunk % ranks
        to = me * experts + chunk // ranks
    book = pointer(tl.load(pointer(books, tl.int64) + peer, mask=live, other=0) + at, tl.int64)
    tl.store(book + to, rows, mask=live)
    tl.store(book + chunks + to, begin, mask=live)


@triton.jit
def _place(book, sources, chunks, majors, minors, align, MAJORS: tl.constexpr, MINORS: tl.constexpr):
    major = tl.arange(0, MAJORS)[:, None]
    minor = tl.arange(0, MINORS)[None, :]
    live = (major < majors) & (minor < minors)
    at = major * minors + minor
    rows = tl.load(book + at, mask=live, other=0)
    tl.store(sources + at, tl.load(book + chunks + at, mask=live, other=0), mask=live)
    total = tl.sum(rows, 1)
    room = tl.maximum((total + align - 1) // align, 1) * align
    begin = (tl.cumsum(room, 0) - room)[:, None] + tl.cumsum(rows, 1) - rows
    tl.store(book + chunks + at, begin, mask=live)


@triton.jit
def _pull(out, inputs, at, book, sources, chunks, ranks, experts, row_words, BY_RANK: tl.constexpr,
          WORD: tl.constexpr, WORDS: tl.constexpr):
    chunk = tl.program_id(0)
    if BY_RANK:
        peer = chunk % ranks
    else:
        peer = chunk // experts
    count = tl.load(book + chunk) * row_words
    source = pointer(tl.load(pointer(inputs, tl.int64) + peer) + at, WORD) + tl.load(sources + chunk) * row_words
    dest = out.to(tl.pointer_type(WORD)) + tl.load(book + chunks + chunk) * row_words
    begin = tl.program_id(1).to(tl.int64) * WORDS
    while begin < count:
        word = begin + tl.arange(0, WORDS)
        tl.store(dest + word, tl.load(source + word, mask=word < count), mask=word < count)
        begin += tl.num_programs(1) * WORDS


@triton.jit(do_not_specialize=["value"])
def _wait_until_equal(word, value):
    wanted = value.to(tl.int64)
    while tl.atomic_cas(word, wanted, wanted, sem="acquire", scope="sys") != wanted:
        pass


def tell(splits, offsets, books, experts, by_rank):
    """Writes into the peers' tables how many rows they get, and where these begin in this rank's input. books: the
    tables of this rank and its peers."""
    handle = books.handle
    _tell[(1,)](splits, splits if offsets is None else offsets, handle.buffer_ptrs_dev, books.at, handle.rank,
                handle.world_size, experts, BY_RANK=by_rank, GIVEN=offsets is not None,
                ROOM=triton.next_power_of_2(splits.numel()))


def pull(source, out, books, experts, by_rank, align):
    """Places the chunks in this rank's out, and copies them from the peers' inputs. by_rank: the input's chunks are
    ordered by rank and the output's by expert; then an expert's room is a multiple of align, and not empty. Otherwise
    the reverse."""
    ranks, chunks = source.handle.world_size, books.tensor.shape[1]
    majors, minors = (experts, ranks) if by_rank else (1, chunks)
    sources = torch.empty(chunks, dtype=torch.int64, device=out.device)
    _place[(1,)](books.tensor, sources, chunks, majors, minors, align, MAJORS=triton.next_power_of_2(majors),
                 MINORS=triton.next_power_of_2(minors))
    row_bytes = out.stride(0) * out.element_size()
    word = _word_bytes(row_bytes, source.at, out.data_ptr())
    _pull[(chunks, triton.cdiv(_PROGRAMS, chunks))](
        out, source.handle.buffer_ptrs_dev, source.at, books.tensor, sources, chunks, ranks, experts,
        row_bytes // word, BY_RANK=by_rank, WORD=_WORD_TYPES[word], WORDS=_WORDS)


_WORD_TYPES = {8: tl.int64, 4: tl.int32, 2: tl.int16, 1: tl.int8}


def _word_bytes(*multiples):
    return math.gcd(8, *multiples)


def wait_until_equal(word, value):
    """Makes the stream wait until the int64 at `word` equals value."""
    _wait_until_equal[(1,)](word, value)
