#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's symmetric memory: the rows of gpu.h that it has calls for. Run under oshrun, or torchrun."""
import json
import os
import statistics

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

KIB, MIB = 1 << 10, 1 << 20
SAMPLES = 15
LIBRARY = "PyTorch " + torch.__version__.split("+")[0]
ME = int(os.environ.get("WEFT_PE", os.environ.get("RANK", "0")))
NPES = int(os.environ.get("WEFT_NPES", os.environ.get("WORLD_SIZE", "1")))
DEVICE = torch.device("cuda", ME % torch.cuda.device_count())


def size_name(size):
    return f"{size} B" if size < KIB else f"{size // KIB} KiB" if size < MIB else f"{size // MIB} MiB"


def calls_for(size):
    return 50 if size <= 64 * KIB else 20 if size <= 4 * MIB else 6 if size <= 64 * MIB else 2


def report(row, value, unit):
    line = json.dumps({"row": row, "value": value, "unit": unit, "pes": NPES, "pe": ME, "library": LIBRARY})
    os.write(1, f"{line}\n".encode())  # in one piece: lines of several PEs must not mix


def meet():
    torch.cuda.synchronize()
    dist.barrier(device_ids=[DEVICE.index])


def time_us(work, calls):
    samples = []
    for i in range(-3, SAMPLES):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        work()
        last.record()
        last.synchronize()
        if i >= 0:
            samples.append(1e3 * first.elapsed_time(last) / calls)
    return statistics.median(samples)


def eager_us(body, calls):
    return time_us(lambda: [body() for _ in range(calls)], calls)


def graph_us(body, calls):
    body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="relaxed"):
        for _ in range(calls):
            body()
    return time_us(graph.replay, calls)


def barriers(handle):
    report("barrier on a stream, in graphs", graph_us(lambda: handle.barrier(0, 0), 50), "us")
    meet()
    report("barrier on a stream, eager", eager_us(lambda: handle.barrier(0, 0), 200), "us")
    meet()


def signals(handle, source):
    """A copy to the peer and a signal behind it, there and back."""
    for size in (8, 16 * KIB):
        peer = 1 - ME
        there = handle.get_buffer(peer, (size,), torch.uint8) if ME < 2 else None

        def ping_pong():
            if ME == 0:
                there.copy_(source[:size])
                handle.put_signal(peer, 1, 0)
            handle.wait_signal(peer, 1, 0)
            if ME == 1:
                there.copy_(source[:size])
                handle.put_signal(peer, 1, 0)

        if ME < 2:
            report(f"signal ping-pong {size_name(size)}, one way", 0.5 * graph_us(ping_pong, 50), "us")
        meet()


def bandwidths(handle, source):
    for size in (4 * KIB, 64 * KIB, MIB, 16 * MIB, 256 * MIB):
        there = handle.get_buffer((ME + 1) % NPES, (size,), torch.uint8)
        for name, body in (("put", lambda: there.copy_(source[:size])), ("get", lambda: source[:size].copy_(there))):
            for way, goes in (("one way", ME == 0), ("both ways", True)):
                if goes:
                    report(f"{name} {size_name(size)}, {way}", 1e-3 * size / graph_us(body, calls_for(size)), "GB/s")
                meet()


def all_gathers():
    for size in (KIB, MIB, 256 * MIB):
        shard = symm_mem.empty(size, dtype=torch.uint8, device=DEVICE)
        symm_mem.rendezvous(shard, dist.group.WORLD)
        shard.copy_(data_of(ME, size))
        meet()

        def all_gather():
            full = torch.ops.symm_mem._low_contention_all_gather(shard, dist.group.WORLD.group_name)
            return torch.ops._c10d_functional.wait_tensor(full)

        row = f"all-gather {size_name(size)} shards"
        try:
            us = graph_us(all_gather, calls_for(size))
        except RuntimeError as error:  # it cannot be captured: where it is long, that is no matter
            torch.cuda.synchronize()
            us = eager_us(all_gather, calls_for(size)) if size >= 16 * MIB else None
            print(f"# {row}: not in a graph: {error}"[:200], flush=True)
        if us:
            report(row, us, "us")
        full = all_gather()
        for pe in range(NPES):
            if not torch.equal(full[pe * size:(pe + 1) * size], data_of(pe, size)):
                raise SystemExit(f"PE {ME}: {row}: wrong data")
        meet()


def data_of(pe, size):
    generator = torch.Generator(device=DEVICE).manual_seed(1 + pe)
    return torch.randint(0, 256, (size,), dtype=torch.uint8, device=DEVICE, generator=generator)


def main():
    torch.cuda.set_device(DEVICE)
    where = "file://" + os.path.join(os.environ["BENCH_MEET"], "torch") if "BENCH_MEET" in os.environ else "env://"
    dist.init_process_group("nccl", init_method=where, rank=ME, world_size=NPES, device_id=DEVICE)
    buffer = symm_mem.empty(256 * MIB, dtype=torch.uint8, device=DEVICE)
    handle = symm_mem.rendezvous(buffer, dist.group.WORLD)
    source = data_of(ME, 256 * MIB)
    meet()
    barriers(handle)
    signals(handle, source)
    bandwidths(handle, source)
    all_gathers()
    torch.cuda.synchronize()
    dist.destroy_process_group()


main()
