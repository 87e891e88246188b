#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's products of matrices and their communication, on the rows of products.c: its fused operators, and torch.mm
with a collective of its process group. Run under oshrun, or torchrun.

    torch_products.py FILE [SKIP]

As there, each timed graph follows HEAT_US of the product alone and a meeting of the GPUs; ways take turns."""
import json
import os
import statistics
import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from torch_times import graph_of

CALLS, ROUNDS, HEAT_US = 24, 11, 20000
LIBRARY = "PyTorch " + torch.__version__.split("+")[0]
ME = int(os.environ.get("WEFT_PE", os.environ.get("RANK", "0")))
NPES = int(os.environ.get("WEFT_NPES", os.environ.get("WORLD_SIZE", "1")))
DEVICE = torch.device("cuda", ME % torch.cuda.device_count())


def report(row, value, unit, way):
    line = {"row": row, "value": value, "unit": unit, "pes": NPES, "gpus": NPES, "pe": ME, "library": LIBRARY + way}
    os.write(1, f"{json.dumps(line)}\n".encode())  # in one piece: lines of several PEs must not mix


def read(path, skip):
    """Yields (row's name, operation, M, N, K of this GPU's product) as products.c does."""
    number = 0
    with open(path) as lines:
        for line in lines:
            words = line.split()
            if len(words) < 6 or words[0].startswith("#"):
                continue
            parts = 1 if words[0].endswith("=") else NPES
            operation, (m, n, k) = words[0].rstrip("="), map(int, words[1:4])
            n, k = (n // parts, k) if operation.startswith("gather") else (n, k // parts)
            name = f"{operation} {m} x {n} x {k} ({words[4]} {words[5]})"
            if os.environ.get("BENCH_ROWS", "") in name:
                if number % skip == 0:
                    yield name, operation, m, n, k
                number += 1


def random(rows, cols, seed):
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    return torch.randn((rows, cols), device=DEVICE, generator=generator).to(torch.bfloat16) / 16


def ways_of(operation, m, n, k, group):
    """Returns {way's name: its call}. The first is the product alone. B has contiguous columns, or rows where the
    operation has a '."""
    if "8" in operation:
        return narrow_ways_of(operation, m, n, k, group)
    a, b = random(m, k, 1 + ME), random(k, n, 101 + ME) if "'" in operation else random(n, k, 101 + ME).t()
    operation = operation.rstrip("'")
    shard, whole = a[:m // NPES].contiguous(), torch.empty_like(a)
    c, part = a.new_empty((m, n)), a.new_empty((m // NPES, n))
    if operation == "gather":
        def apart():
            dist.all_gather_into_tensor(whole, shard)
            torch.mm(whole, b, out=c)
        fused = lambda: torch.ops.symm_mem.fused_all_gather_matmul(shard, [b], 0, group, return_A=False)  # noqa: E731
        return {"alone": lambda: torch.mm(a, b, out=c), ", fused": fused, ", apart": apart}
    symmetric = symm_mem.empty((m, n), dtype=torch.bfloat16, device=DEVICE)
    symm_mem.rendezvous(symmetric, dist.group.WORLD)
    if operation == "scatter":
        def apart():
            torch.mm(a, b, out=c)
            dist.reduce_scatter_tensor(part, c)
        fused = lambda: torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b, "sum", 0, group)  # noqa: E731
        return {"alone": lambda: torch.mm(a, b, out=c), ", fused": fused, ", apart": apart}

    def summed(reduce):
        def both():
            torch.mm(a, b, out=symmetric)
            reduce()
        return both
    return {"alone": lambda: torch.mm(a, b, out=c),
            ", one shot": summed(lambda: torch.ops.symm_mem.one_shot_all_reduce(symmetric, "sum", group)),
            ", two shots": summed(lambda: torch.ops.symm_mem.two_shot_all_reduce_(symmetric, "sum", group)),
            ", apart": summed(lambda: dist.all_reduce(symmetric))}


def narrow_ways_of(operation, m, n, k, group):
    """As ways_of, of fp8 with one scale for each factor."""
    a, b = (random(rows, k, seed + ME).to(torch.float8_e4m3fn) for rows, seed in ((m, 1), (n, 101)))
    b, one, shard, bf16 = b.t(), torch.ones((), device=DEVICE), a[:m // NPES].contiguous(), torch.bfloat16
    whole, part = torch.empty_like(a), a.new_empty((m // NPES, n), dtype=bf16)

    def alone(factor):
        return torch._scaled_mm(factor, b, one, one, out_dtype=bf16)
    if operation == "gather8":
        def apart():
            dist.all_gather_into_tensor(whole.view(torch.uint8), shard.view(torch.uint8))
            alone(whole)
        return {"alone": lambda: alone(a), ", apart": apart,
                ", fused": lambda: torch.ops.symm_mem.fused_all_gather_scaled_matmul(
                    shard, [b], one, [one], 0, group, [None], [None], [bf16], [False])}
    return {"alone": lambda: alone(a), ", apart": lambda: dist.reduce_scatter_tensor(part, alone(a)),
            ", fused": lambda: torch.ops.symm_mem.fused_scaled_matmul_reduce_scatter(
                a, b, one, one, "sum", 0, 0, group, [m, n], None, None, bf16)}


def hot_us(before, graph, handle, heats):
    torch.cuda.synchronize()
    dist.barrier(device_ids=[DEVICE.index])
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(heats):
        before.replay()
    handle.barrier(0, 0)
    first.record()
    graph.replay()
    last.record()
    last.synchronize()
    return 1e3 * first.elapsed_time(last) / CALLS


def measure(row, bodies, handle):
    graphs = {way: graph_of(body, CALLS) for way, body in bodies.items()}
    samples, ways = {way: [] for way in graphs}, list(graphs)
    heats = torch.tensor(1 + int(HEAT_US / CALLS / hot_us(graphs["alone"], graphs["alone"], handle, 1)), device=DEVICE)
    dist.all_reduce(heats, dist.ReduceOp.MAX)
    for turn in range(-1, ROUNDS):
        for way in ways[(turn + 1) % len(ways):] + ways[:(turn + 1) % len(ways)]:
            us = hot_us(graphs["alone"], graphs[way], handle, int(heats))
            if turn >= 0:
                samples[way].append(us)
    medians = torch.tensor([statistics.median(samples[way]) for way in ways], device=DEVICE)
    dist.all_reduce(medians, dist.ReduceOp.MAX)  # the slowest GPU's, which the others wait for
    alone, *others = medians.tolist()
    for way, us in zip(ways[1:], others):
        report(row, us, "us", way)
        report(f"{row}, to the product alone", us / alone, "", way)


def main():
    torch.cuda.set_device(DEVICE)
    where = "file://" + os.path.join(os.environ["BENCH_MEET"], "torch") if "BENCH_MEET" in os.environ else "env://"
    dist.init_process_group("nccl", init_method=where, rank=ME, world_size=NPES, device_id=DEVICE)
    pad = symm_mem.empty(1024, dtype=torch.uint8, device=DEVICE)
    handle = symm_mem.rendezvous(pad, dist.group.WORLD)
    path, skip = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for row, operation, m, n, k in read(path, skip):
        try:
            measure(row, ways_of(operation, m, n, k, dist.group.WORLD.group_name), handle)
        except (RuntimeError, NotImplementedError) as error:
            print(f"# {row}: {error}"[:200], flush=True)
    torch.cuda.synchronize()
    dist.destroy_process_group()


main()
