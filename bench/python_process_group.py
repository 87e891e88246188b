#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of torch.distributed on CPU tensors: the backends weft and gloo in one set of processes, in turns. Prints
medians in microseconds, of the slowest rank.

    build/bin/oshrun -n 2 python bench/python_process_group.py [bytes_max=67108864]
"""
import statistics
import sys
import time

import torch
import torch.distributed as dist

import weft.torch

SECONDS = 0.4  # for each pair of rows


def calls(numel, size):
    """Returns the calls for tensors of this many elements in all on each rank, which `size` divides."""
    whole, part = torch.ones(numel), torch.ones(numel // size)
    other = torch.empty(numel)
    return {
        "all_reduce": lambda group, later: dist.all_reduce(whole, dist.ReduceOp.MAX, group, later),
        "all_gather_into_tensor": lambda group, later: dist.all_gather_into_tensor(other, part, group, later),
        "reduce_scatter_tensor": lambda group, later: dist.reduce_scatter_tensor(part, whole, group=group, async_op=later),
        "all_to_all_single": lambda group, later: dist.all_to_all_single(other, whole, group=group, async_op=later),
        "broadcast": lambda group, later: dist.broadcast(whole, 0, group, later),
    }


def measure(call, groups, later):
    """Returns the median time of each group's call; the groups' calls alternate."""
    times = [[] for _ in groups]

    def once(group):
        dist.barrier(groups[0])
        begin = time.perf_counter()
        work = call(group, later)
        if later:
            work.wait()
        return time.perf_counter() - begin

    began = time.perf_counter()
    for i in range(3):
        for group in groups:
            once(group)
    spent = torch.tensor([(time.perf_counter() - began) / 3], dtype=torch.float64)
    dist.all_reduce(spent, dist.ReduceOp.MAX, groups[0])
    rounds = max(5, min(400, int(SECONDS / spent.item())))
    for _ in range(rounds):
        for kept, group in zip(times, groups):
            kept.append(once(group))
    medians = torch.tensor([statistics.median(kept) for kept in times], dtype=torch.float64)
    dist.all_reduce(medians, dist.ReduceOp.MAX, groups[0])
    return [1e6 * each for each in medians.tolist()]


def main():
    bytes_max = int(dict(word.split("=") for word in sys.argv[1:]).get("bytes_max", 64 << 20))
    torch.set_num_threads(1)
    weft.torch.init_process_group("weft")
    size = dist.get_world_size()
    groups = [dist.group.WORLD, dist.new_group(backend="gloo")]
    if dist.get_rank() == 0:
        print(f"PyTorch {torch.__version__}, {size} ranks; us, medians\n\n"
              f"{'call':36s} {'bytes':>10s} {'weft':>10s} {'gloo':>10s}")
    bytes_each = 4 * size
    while bytes_each <= bytes_max:
        for name, call in calls(bytes_each // 4, size).items():
            for later in (False, True) if name == "all_reduce" else (False,):
                weft_us, gloo_us = measure(call, groups, later)
                if dist.get_rank() == 0:
                    print(f"{name + (', async and wait' if later else ''):36s} {bytes_each:10d} {weft_us:10.1f} "
                          f"{gloo_us:10.1f}", flush=True)
        bytes_each *= 16
    dist.destroy_process_group()


main()
