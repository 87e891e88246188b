# SPDX-License-Identifier: BSD-3-Clause
"""Times of work on a CUDA stream, by PyTorch's events: the median of samples, in us."""
import statistics

import torch
import torch.distributed as dist

SAMPLES = 15


def time_us(work, calls, samples, meet):
    """Returns the time of one of `calls` that work() makes; all ranks meet before each sample."""
    found = []
    for i in range(-3, samples):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        meet()
        first.record()
        work()
        last.record()
        last.synchronize()
        if i >= 0:
            found.append(1e3 * first.elapsed_time(last) / calls)
    return statistics.median(found)


def graph_of(body, calls):
    """Returns a graph of that many calls."""
    body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="relaxed"):
        for _ in range(calls):
            body()
    return graph


def meet():
    torch.cuda.synchronize()
    dist.barrier()


def slowest_us(body, calls):
    """Returns the time of a call, of which body() makes `calls`, on the slowest rank."""
    slowest = torch.tensor(time_us(body, calls, SAMPLES, meet), device="cuda")
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.item()


def in_graph(call, calls=20):
    return slowest_us(graph_of(call, calls).replay, calls)


def one_by_one(call, calls=20):
    return slowest_us(lambda: [call() for _ in range(calls)], calls)
