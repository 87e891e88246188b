#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The fused products of SymmetricMemoryHandler beside PyTorch's own, in one run:

    torchrun --standalone --nproc-per-node 4 bench/python_handler.py

bfloat16; M x N x K of one rank's product. Microseconds per call, the median, of the slowest rank: "graph" in a CUDA
graph of ten calls, "plain" called one by one, with the host's work. "behind" is the collective and then the product, as
for types that Weft does not multiply, "hidden" Weft's product. Rows are measured in turns."""
import functools
import os
import pathlib
import sys
import time

os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed._symmetric_memory as torch_symm_mem  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "python"))
import job  # noqa: E402
from cuda_graphs import graph_of, slowest  # noqa: E402
from weft.torch import SymmetricMemoryHandler as symm  # noqa: E402
from weft.torch import _on_lanes  # noqa: E402

SHAPES = [(128, 4096, 4096), (512, 2048, 4096), (512, 4096, 2048), (1024, 4096, 4096), (2048, 4096, 2048),
          (2048, 8192, 4096), (4096, 8192, 4096)]
ROUNDS, CALLS, BF16 = 7, 10, torch.bfloat16


def behind(function, *arguments):
    def call():
        multiplied, _on_lanes.MULTIPLIED = _on_lanes.MULTIPLIED, ()
        try:
            return function(*arguments)
        finally:
            _on_lanes.MULTIPLIED = multiplied
    return call


def microseconds(work, calls):
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(calls):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) * 1e6 / calls


def measure(calls):
    """Returns {name: (graph, plain)}."""
    graphs = {name: graph_of(call, CALLS) for name, call in calls.items()}
    samples = {name: ([], []) for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            samples[name][0].append(microseconds(graphs[name].replay, 5) / CALLS)
            samples[name][1].append(microseconds(call, 50))
    return {name: tuple(slowest(times[1:]) for times in pair) for name, pair in samples.items()}


def report(what, times):
    if dist.get_rank() == 0:
        print(f"| {what} | {times['alone'][0]:.0f} | "
              + " | ".join(f"{times[name][0]:.0f} / {times[name][1]:.0f}" for name in ("behind", "hidden", "torch")) + " |",
              flush=True)


def gather(m, n, k, group):
    ranks = dist.get_world_size()
    a, b = torch.randn(m, k, device="cuda").to(BF16), torch.randn(k, n, device="cuda").to(BF16)
    whole, signal = symm.empty((m * ranks, k), BF16), symm.empty(4 * ranks, torch.int32)
    c = torch.empty(m * ranks, n, device="cuda", dtype=BF16)
    arguments = symm.fused_all_gather_matmul, a, b, c, whole, signal
    times = measure({"alone": lambda: torch.mm(whole, b, out=c),
                     "behind": behind(*arguments), "hidden": functools.partial(*arguments),
                     "torch": lambda: torch_symm_mem._fused_all_gather_matmul(a, [b], 0, group)})
    report(f"all-gather, matmul {m * ranks} x {n} x {k}, {a.nbytes >> 20} MiB", times)


def scatter(m, n, k, group):
    ranks = dist.get_world_size()
    x1, x2 = torch.randn(m * ranks, k, device="cuda").to(BF16), torch.randn(k, n, device="cuda").to(BF16)
    room, signal = symm.empty((m * ranks, n), BF16), symm.empty(ranks, torch.int32)
    full = torch.empty(m * ranks, n, device="cuda", dtype=BF16)
    arguments = symm.fused_matmul_reduce_scatter, x1, x2, room, signal
    times = measure({"alone": lambda: torch.mm(x1, x2, out=full),
                     "behind": behind(*arguments), "hidden": functools.partial(*arguments),
                     "torch": lambda: torch_symm_mem._fused_matmul_reduce_scatter(x1, x2, "sum", 0, group)})
    report(f"matmul, reduce-scatter {m * ranks} x {n} x {k}, {room.nbytes // ranks >> 20} MiB", times)


def main():
    rank = job.place()[0]
    torch.cuda.set_device(rank % torch.cuda.device_count())
    group = job.start("nccl", seconds_max=400).group_name
    dist.barrier()
    if rank == 0:
        print(f"# {dist.get_world_size()} GPUs, torch {torch.__version__}; us, graph / plain\n"
              "| | product alone | behind | hidden | PyTorch's |\n|---|---:|---:|---:|---:|")
    for m, n, k in SHAPES:
        gather(m, n, k, group)
        scatter(m, n, k, group)
    symm.close()
    job.end()


if __name__ == "__main__":
    main()
