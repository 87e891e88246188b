# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the benchmarks of PyTorch on GPUs: graphs of calls, and the time of the slowest rank."""
import statistics

import torch
import torch.distributed as dist


def graph_of(call, calls):
    """Returns a CUDA graph of this many calls; the call is made three times before, as libraries require."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    return graph


def slowest(samples):
    """Returns the median, of the slowest rank."""
    median = torch.tensor(statistics.median(samples), device="cuda", dtype=torch.float64)
    dist.all_reduce(median, dist.ReduceOp.MAX)
    return median.item()
