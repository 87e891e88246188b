#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Dispatch and combine of a mixture of experts: Weft's, and what programs do with NCCL and with PyTorch's symmetric
memory, in turns in one process for each GPU.

    torchrun --nproc-per-node 2 bench/gpu/experts.py weft nccl

The arguments are the ways to compare; symm_mem needs a process without weft. Environment: ROUNDS (3), EACH: experts of a
GPU (64; symm_mem takes at most 16).

Times are of the slowest rank, in us, the median of the rounds. All ways get tokens and the experts of each token, and end
with rows sorted by expert; a combine ends with the weighted sum for each token.

    weft           weft.torch.moe: in a CUDA graph, and call by call
    nccl           counts are exchanged and copied to the host; a copy of a row for each expert; all_to_all_single; a copy
                   sorts the rows. Call by call, because the host waits for the counts
    symm_mem       torch.ops.symm_mem.all_to_all_vdev_2d of a copy of a row for each expert (PyTorch with NVSHMEM), in a
                   CUDA graph; for combines all_to_all_vdev_2d_offset
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
COLS, TOP_K, EACH = 7168, 8, int(os.environ.get("EACH", "64"))


class Problem:
    def __init__(self, ntokens):
        self.ntokens = ntokens
        self.x = torch.randn(ntokens, COLS, device=DEVICE).bfloat16()
        self.experts = torch.rand(ntokens, N * EACH, device=DEVICE).topk(TOP_K).indices
        self.weights = torch.rand(ntokens, TOP_K, device=DEVICE)
        # The experts' rows: each returns its rows as they are, so a combine returns x times the sum of the weights.
        self.expected = self.x.double() * self.weights.double().sum(1, keepdim=True)

    def check(self, name, got):
        worst = (got.double() - self.expected).abs().max().item()
        assert worst < 0.03 * self.expected.abs().max().item(), (name, worst)


# --- The ways ------------------------------------------------------------------------------------


def weft_way(problem):
    from weft.torch import moe
    layer = moe.MoE(N * EACH, TOP_K, COLS, problem.ntokens, rows_max=N * problem.ntokens * TOP_K, dtype=torch.bfloat16)
    ids, narrow = problem.experts.int(), problem.x.to(torch.float8_e4m3fn)
    rows = layer.dispatch(problem.x, ids, problem.weights)
    problem.check("weft", layer.combine(rows.data, rows))
    calls = {"dispatch bf16": lambda: layer.dispatch(problem.x, ids, problem.weights),
             "dispatch 8 bits": lambda: layer.dispatch(narrow, ids, problem.weights),
             "combine bf16": lambda: layer.combine(rows.data, rows)}
    return [(f"{name}, graph", in_graph, call) for name, call in calls.items()] + [
        (f"{name}, call by call", one_by_one, call) for name, call in calls.items()]


def nccl_way(problem):
    flat = problem.experts.flatten()
    state = {}

    def dispatch(x):
        order = flat.argsort(stable=True)
        counts = torch.bincount(flat, minlength=N * EACH)
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts)
        table = torch.stack([counts.view(N, EACH).sum(1), theirs.view(N, EACH).sum(1)]).tolist()
        sent = x.view(torch.uint8)[order // TOP_K]
        taken = sent.new_empty((sum(table[1]), sent.shape[1]))
        dist.all_to_all_single(taken, sent, table[1], table[0])
        local = torch.arange(EACH, device=DEVICE).repeat(N).repeat_interleave(theirs, output_size=sum(table[1]))
        sort = local.argsort(stable=True)
        state.update(order=order, table=table, sort=sort)
        return taken[sort].view(x.dtype)

    def combine(rows):
        back = torch.empty_like(rows)
        back[state["sort"]] = rows
        returned = rows.new_empty((problem.ntokens * TOP_K, COLS))
        dist.all_to_all_single(returned, back, state["table"][0], state["table"][1])
        slots = torch.empty_like(returned)
        slots[state["order"]] = returned
        return (slots.view(-1, TOP_K, COLS).float() * problem.weights[:, :, None]).sum(1).bfloat16()

    rows, narrow = dispatch(problem.x), problem.x.to(torch.float8_e4m3fn)
    problem.check("nccl", combine(rows))
    return [("dispatch bf16, call by call", one_by_one, lambda: dispatch(problem.x)),
            ("dispatch 8 bits, call by call", one_by_one, lambda: dispatch(narrow)),
            ("combine bf16, call by call", one_by_one, lambda: combine(rows))]


def symm_mem_way(problem):
    name, slots = dist.group.WORLD.group_name, problem.ntokens * TOP_K
    if not torch_symm_mem.is_nvshmem_available():
        return []
    torch_symm_mem.set_backend("NVSHMEM")
    make = lambda *shape, dtype=torch.bfloat16: torch_symm_mem.empty(*shape, dtype=dtype, device=DEVICE)  # noqa: E731
    sent, taken, back = make(slots, COLS), make(N * slots, COLS), make(slots, COLS)
    splits, found, out = (make(*shape, dtype=torch.int64) for shape in ((N * EACH,), (2, N * EACH), (2, N * EACH)))
    for tensor in (sent, taken, back, splits, found, out):
        torch_symm_mem.rendezvous(tensor, name)
    flat = problem.experts.flatten()
    order = flat.argsort(stable=True)

    def dispatch():
        order.copy_(flat.argsort(stable=True))
        splits.copy_(torch.zeros_like(splits).scatter_add_(0, flat, torch.ones_like(flat)))
        torch.index_select(problem.x, 0, order // TOP_K, out=sent)
        torch.ops.symm_mem.all_to_all_vdev_2d(sent, taken, splits, found, name)

    def combine():
        torch.ops.symm_mem.all_to_all_vdev_2d_offset(taken, back, found, out, name)
        ordered = torch.empty_like(back)
        ordered[order] = back
        return (ordered.view(-1, TOP_K, COLS).float() * problem.weights[:, :, None]).sum(1).bfloat16()

    dispatch()
    problem.check("symm_mem", combine())
    return [("dispatch bf16, graph", in_graph, dispatch), ("combine bf16, graph", in_graph, combine)]


WAYS = {"weft": weft_way, "nccl": nccl_way, "symm_mem": symm_mem_way}


def main():
    torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl", device_id=DEVICE)
    ways_wanted = sys.argv[1:] or ["weft", "nccl"]
    for ntokens in 128, 4096:
        problem = Problem(ntokens)
        times = {}
        ways = {}
        for way in ways_wanted:
            try:
                ways[way] = WAYS[way](problem)
            except (RuntimeError, AttributeError, AssertionError) as error:
                print(f"rank {ME}: {way} is left out: {error}", file=sys.stderr)
        for _ in range(int(os.environ.get("ROUNDS", "3"))):
            for way, rows in ways.items():
                for row, measure, call in rows:
                    times.setdefault((row, way), []).append(measure(call))
        for (row, way), found in sorted(times.items()):
            if ME == 0:
                print(f"{N} GPUs, {ntokens} tokens, {row:30} {way:9} {statistics.median(found):9.1f} us", flush=True)
    dist.barrier()
    torch.cuda.synchronize()
    os._exit(0)


main()
