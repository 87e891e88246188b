#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges of rows whose numbers are in GPU memory, and copies of blocks by tables: Weft's, and what programs do with
NCCL and with PyTorch's symmetric memory, in turns in one process for each GPU.

    torchrun --nproc-per-node 2 bench/gpu/exchange.py weft nccl

The arguments are the ways to compare; symm_mem needs a process without weft. Environment: ROUNDS (3).

Times are of the slowest rank, in us, the median of the rounds; GB/s are the bytes that a GPU sends to others in that time.

    weft       ragged: all_to_all_vdev (weft_all_to_allv_on_device), numbers between half and one and a half of the mean;
               even: weft.all_to_all of as many bytes in all; blocks: kv_shuffle, in pairs of ranks, half of the GPUs send.
               In CUDA graphs
    nccl       ragged: numbers are exchanged and copied to the host, then all_to_all_single, call by call; even:
               all_to_all_single, in a graph; blocks: index_select, send and recv, index_copy_, call by call
    symm_mem   ragged: torch.ops.symm_mem.all_to_all_vdev (PyTorch with NVSHMEM), in a graph
"""
import os
import statistics
import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as torch_symm_mem

from torch_times import in_graph, one_by_one

ME, N = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", ME)))
COLS, BLOCK = 4096, 64 << 10
HALF = N // 2


class Rows:
    """Rows of bf16 for all members: `mean` for each pair on average, the same number in all."""

    def __init__(self, mean):
        same = torch.Generator().manual_seed(7)
        extra = torch.rand(N, N, generator=same) - 0.5
        extra -= extra.mean(1, keepdim=True)
        self.table = (mean * (1 + extra)).long()
        self.table[:, -1] += N * mean - self.table.sum(1)
        self.mean, self.room = mean, 2 * N * mean
        self.splits = self.table[ME].to(DEVICE)
        self.x = torch.randn(N * mean, COLS, device=DEVICE).bfloat16()
        self.bytes = 2 * COLS * int(self.table[ME].sum() - self.table[ME, ME])

    def check(self, way, out, books):
        everyone = [torch.empty_like(self.x) for _ in range(N)]
        dist.all_gather(everyone, self.x)
        begins = self.table.cumsum(1) - self.table
        expected = torch.cat([everyone[r][begins[r, ME]:begins[r, ME] + self.table[r, ME]] for r in range(N)])
        assert torch.equal(out[:len(expected)], expected), way
        assert books is None or books[0].tolist() == self.table[:, ME].tolist(), way


class Blocks:
    """Two caches, of which half of the ranks send `count` blocks each to those of the other half."""

    def __init__(self, count):
        self.count, self.bytes = count, 2 * count * BLOCK
        self.sends, self.peer = ME < HALF, (ME + HALF) % (2 * HALF) if ME < 2 * HALF else -1
        same = torch.Generator().manual_seed(8)
        self.from_blocks, self.to_blocks = (torch.randperm(2 * count, generator=same)[:count].to(DEVICE) for _ in range(2))
        self.pair = torch.tensor([self.peer, int(not self.sends)], dtype=torch.int32, device=DEVICE)

    def filled(self, caches):
        for cache in caches:
            cache.random_(0, 255)
        return caches

    def check(self, way, caches, call):
        before = [cache.clone() for cache in caches]
        call()
        for cache, mine in zip(caches, before):
            theirs = [torch.empty_like(mine) for _ in range(N)]
            dist.all_gather(theirs, mine)
            if self.peer >= 0 and not self.sends:
                mine[self.to_blocks] = theirs[self.peer][self.from_blocks]
            assert torch.equal(cache, mine), way


# --- The ways ------------------------------------------------------------------------------------


def weft_rows(rows):
    import weft
    import weft.torch as symm_mem
    group = dist.group.WORLD
    make = lambda *shape, dtype=torch.bfloat16: symm_mem.empty(*shape, dtype=dtype, device=DEVICE)  # noqa: E731
    x, out = make(*rows.x.shape).copy_(rows.x), make(rows.room, COLS)
    splits, books = make(N, dtype=torch.int64).copy_(rows.splits), make(2, N, dtype=torch.int64)
    for tensor in x, out, splits, books:
        symm_mem.rendezvous(tensor, group)
    ragged = lambda: symm_mem.all_to_all_vdev(x, out, splits, books, group)  # noqa: E731
    ragged()
    rows.check("weft", out, books)
    dest, source = (weft.empty(rows.x.numel(), "bfloat16", space="device") for _ in range(2))
    even = lambda: weft.all_to_all(dest, source, stream=torch.cuda.current_stream())  # noqa: E731
    return [("ragged, graph", in_graph, ragged), ("even, graph", in_graph, even)]


def weft_blocks(blocks):
    import weft.torch as symm_mem
    caches = [symm_mem.empty(2 * blocks.count, BLOCK, dtype=torch.uint8, device=DEVICE) for _ in range(2)]
    call = lambda: symm_mem.kv_shuffle(caches, blocks.pair, blocks.from_blocks, blocks.to_blocks,  # noqa: E731
                                       dist.group.WORLD)
    call()
    blocks.check("weft", blocks.filled(caches), call)
    return [("blocks, graph", in_graph, call)]


def nccl_rows(rows):
    def ragged():
        theirs = torch.empty_like(rows.splits)
        dist.all_to_all_single(theirs, rows.splits)
        sent, taken = torch.stack([rows.splits, theirs]).tolist()
        out = rows.x.new_empty((sum(taken), COLS))
        dist.all_to_all_single(out, rows.x, taken, sent)
        return out
    rows.check("nccl", ragged(), None)
    dest = torch.empty_like(rows.x)
    return [("ragged, call by call", one_by_one, ragged),
            ("even, graph", in_graph, lambda: dist.all_to_all_single(dest, rows.x))]


def nccl_blocks(blocks):
    caches = blocks.filled([torch.empty(2 * blocks.count, BLOCK, dtype=torch.uint8, device=DEVICE) for _ in range(2)])

    def call():
        for cache in caches:
            if blocks.peer >= 0 and blocks.sends:
                dist.send(cache.index_select(0, blocks.from_blocks), blocks.peer)
            elif blocks.peer >= 0:
                taken = cache.new_empty((blocks.count, BLOCK))
                dist.recv(taken, blocks.peer)
                cache.index_copy_(0, blocks.to_blocks, taken)
    blocks.check("nccl", caches, call)
    return [("blocks, call by call", one_by_one, call)]


def symm_mem_rows(rows):
    if not torch_symm_mem.is_nvshmem_available():
        return []
    torch_symm_mem.set_backend("NVSHMEM")
    name = dist.group.WORLD.group_name
    make = lambda *shape, dtype=torch.bfloat16: torch_symm_mem.empty(*shape, dtype=dtype, device=DEVICE)  # noqa: E731
    x, out = make(*rows.x.shape).copy_(rows.x), make(rows.room, COLS)
    splits, books = make(N, dtype=torch.int64).copy_(rows.splits), make(2, N, dtype=torch.int64)
    for tensor in x, out, splits, books:
        torch_symm_mem.rendezvous(tensor, name)
    ragged = lambda: torch.ops.symm_mem.all_to_all_vdev(x, out, splits, books, name)  # noqa: E731
    ragged()
    rows.check("symm_mem", out, books)
    return [("ragged, graph", in_graph, ragged)]


WAYS = {"weft": (weft_rows, weft_blocks), "nccl": (nccl_rows, nccl_blocks), "symm_mem": (symm_mem_rows, lambda blocks: [])}


def measure(problem, name, make_rows):
    """Prints the times of a problem by all ways."""
    ways, times = {}, {}
    for way, make in make_rows.items():
        try:
            ways[way] = make(problem)
        except (RuntimeError, AttributeError, AssertionError) as error:
            print(f"rank {ME}: {way} is left out: {error}", file=sys.stderr)
    for _ in range(int(os.environ.get("ROUNDS", "3"))):
        for way, rows in ways.items():
            for row, take, call in rows:
                times.setdefault((row, way), []).append(take(call))
    for (row, way), found in sorted(times.items()):
        median = statistics.median(found)
        if ME == 0:
            print(f"{N} GPUs, {name:18} {row:22} {way:9} {median:9.1f} us {problem.bytes / median / 1e3:7.1f} GB/s",
                  flush=True)


def main():
    torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl", device_id=DEVICE)
    wanted = sys.argv[1:] or ["weft", "nccl"]
    for mean in 16, 1024, 8192:
        measure(Rows(mean), f"{mean} rows a pair", {way: WAYS[way][0] for way in wanted})
    for count in 16, 256, 2048:
        if N > 1:
            measure(Blocks(count), f"{count} blocks", {way: WAYS[way][1] for way in wanted})
    dist.barrier()
    torch.cuda.synchronize()
    os._exit(0)


main()
