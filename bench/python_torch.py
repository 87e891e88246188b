#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures calls of weft.torch on CPU tensors, beside PyTorch's own by gloo, and beside weft's own Python call without
a torch operator around it. Medians of RUNS runs of as many calls as take 20 ms, of the slowest rank, in microseconds.
hogs=N only measures steps of DistributedDataParallel, beside N single-threaded processes that compute.

    build/bin/oshrun -n 2 python bench/python_torch.py [hogs=N]      # PYTHONPATH=build/python"""
import os
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol

import weft
import weft.torch as symm_mem

RUNS, FILL_S = 9, 0.02
CROWD = int(sys.argv[1].removeprefix("hogs=")) if len(sys.argv) > 1 else 0
HOG = "import time; end = time.monotonic() + 300\nwhile time.monotonic() < end: pass"

# They start before the library: a child of a PE inherits its short time slices (docs/adr/0051).
HOGS = [subprocess.Popen([sys.executable, "-c", HOG]) for _ in range(CROWD) if os.environ["WEFT_PE"] == "0"]
WORLD = symm_mem.init_process_group("gloo")
ME, N, NAME = WORLD.rank(), WORLD.size(), WORLD.group_name


def agreed(value):
    """Returns the largest value of all ranks."""
    box = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(box, dist.ReduceOp.MAX)
    return box.item()


def microseconds(call):
    begin = time.perf_counter()
    call()
    call()
    times = max(1, int(agreed(FILL_S / (time.perf_counter() - begin)) * 2))
    runs = []
    for _ in range(RUNS):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(times):
            call()
        runs.append(agreed((time.perf_counter() - begin) / times))
    return statistics.median(runs) * 1e6


def row(name, **calls):
    figures = {by: microseconds(call) for by, call in calls.items()}
    if ME == 0:
        print(f"{name:34}", *[f"{by} {figure:9.1f}" for by, figure in figures.items()], sep="  ", flush=True)


def collectives(elements):
    x, out, whole = torch.ones(elements), torch.empty(elements), torch.ones(elements * N)
    size = f"{elements * 4} bytes"
    row(f"all_reduce, {size}",
        gloo=lambda: dist.all_reduce(out),
        functional=lambda: funcol.wait_tensor(funcol.all_reduce(x, "sum", NAME)),
        weft_torch=lambda: symm_mem.all_reduce(x, "sum", NAME),
        weft=lambda: weft.all_reduce(out, x))
    row(f"all_gather, {size} each",
        gloo=lambda: dist.all_gather_into_tensor(whole, x),
        functional=lambda: funcol.wait_tensor(funcol.all_gather_tensor(x, 0, NAME)),
        weft_torch=lambda: symm_mem.all_gather(x, 0, NAME),
        weft=lambda: weft.all_gather(whole, x))
    row(f"reduce_scatter, {size} each",
        gloo=lambda: dist.reduce_scatter_tensor(out, whole),
        functional=lambda: funcol.wait_tensor(funcol.reduce_scatter_tensor(whole, "sum", 0, NAME)),
        weft_torch=lambda: symm_mem.reduce_scatter(whole, "sum", 0, NAME),
        weft=lambda: weft.reduce_scatter(out, whole))


def in_test_mode(call):
    def by_fallback():
        with symm_mem._test_mode():
            call()
    return by_fallback


def products(rows, inner, columns):
    a, b = torch.randn(rows, inner), torch.randn(inner, columns)
    partial = torch.randn(rows * N, inner)
    c, shard = torch.empty(rows * N, columns), torch.empty(rows, columns)
    gather = lambda: symm_mem.fused_all_gather_matmul(a, [b], 0, NAME, return_A=False)  # noqa: E731
    scatter = lambda: symm_mem.fused_matmul_reduce_scatter(partial, b, "sum", 0, NAME)  # noqa: E731
    size = f"{rows * N}x{inner}x{columns}"
    row(f"all-gather matmul {size}", fallback=in_test_mode(gather), weft_torch=gather,
        weft=lambda: weft.all_gather_matmul(c, a, b))
    row(f"matmul reduce-scatter {size}", fallback=in_test_mode(scatter), weft_torch=scatter,
        weft=lambda: weft.matmul_reduce_scatter(shard, partial, b))


def scaled_products(rows, inner, columns):
    """weft.torch's functions skip PyTorch's dispatcher, through which torch.ops.weft's go."""
    eight, one, bf16 = torch.float8_e4m3fn, torch.ones(()), torch.bfloat16
    a, partial = torch.randn(rows, inner).to(eight), torch.randn(rows * N, inner).to(eight)
    b = torch.randn(columns, inner).to(eight).t()
    c, shard = torch.empty(rows * N, columns, dtype=bf16), torch.empty(rows, columns, dtype=bf16)
    scales = [torch.ones(1, 1), torch.ones(1, 1)]

    def gather(ops):
        return lambda: ops.fused_all_gather_scaled_matmul(a, [b], one, [one], 0, NAME, [None], [None], [bf16], [False])

    def scatter(ops):
        return lambda: ops.fused_scaled_matmul_reduce_scatter(partial, b, one, one, "sum", 0, 0, NAME,
                                                              [rows * N, columns], None, None, bf16)
    size = f"{rows * N}x{inner}x{columns}"
    row(f"all-gather scaled matmul {size}", dispatcher=gather(torch.ops.weft), weft_torch=gather(symm_mem),
        weft=lambda: weft.all_gather_scaled_matmul(c, a, b, *scales))
    row(f"scaled matmul reduce-scatter {size}", dispatcher=scatter(torch.ops.weft), weft_torch=scatter(symm_mem),
        weft=lambda: weft.scaled_matmul_reduce_scatter(shard, partial, b, *scales))


def handles():
    t = symm_mem.empty(1024, device="cpu")
    handle = symm_mem.rendezvous(t, WORLD)
    row("handle.barrier", gloo=lambda: dist.barrier(), weft_torch=handle.barrier, weft=weft.sync)
    row("handle.get_buffer", weft_torch=lambda: handle.get_buffer(0, (32, 32), torch.float32))
    row("rendezvous of a known tensor", weft_torch=lambda: symm_mem.rendezvous(t, NAME))
    row("empty", torch=lambda: torch.empty(1024), weft_torch=lambda: symm_mem.empty(1024, device="cpu"))


# --- Steps of DistributedDataParallel -----------------------------------------------------------------

def sum_here(_, bucket):
    done = torch.futures.Future()
    done.set_result(symm_mem.all_reduce(bucket.buffer(), "avg", NAME))
    return done


def sum_by_gloo(_, bucket):
    done, buffer = torch.futures.Future(), bucket.buffer()
    dist.all_reduce(buffer)
    done.set_result(buffer.div_(N))
    return done


def steps(side):
    """Forward and backward of one layer, followed by gloo's all-reduce of the gradients, and with either library by a
    hook, in the thread that computes."""
    x = torch.randn(4, side)

    def step(hook=None):
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(side, side, bias=False))
        if hook:
            model.register_comm_hook(None, hook)
        return lambda: model(x).sum().backward()
    row(f"all_reduce in DDP's hook, {4 * side * side} bytes", gloo=step(), gloo_in_hook=step(sum_by_gloo),
        weft_torch=step(sum_here))


def main():
    if ME == 0:
        print(f"{N} ranks, microseconds a call, beside {CROWD} processes that compute")
    torch.set_num_threads(1)
    if not CROWD:
        for elements in (1, 16384, 1 << 20):
            collectives(elements)
        for sizes in ((8, 16, 16), (256, 512, 512)):
            products(*sizes)
        scaled_products(8, 16, 16)
        handles()
    steps(512)
    dist.destroy_process_group()


try:
    main()
finally:
    for hog in HOGS:
        hog.kill()
