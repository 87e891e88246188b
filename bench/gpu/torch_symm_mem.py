#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's symmetric memory: the rows of gpu.h for which it has calls. Run under oshrun, or torchrun."""
import itertools
import json
import os

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

import torch_times

KIB, MIB = 1 << 10, 1 << 20
SAMPLES = 21
LIBRARY = "PyTorch " + torch.__version__.split("+")[0]
ME = int(os.environ.get("WEFT_PE", os.environ.get("RANK", "0")))
NPES = int(os.environ.get("WEFT_NPES", os.environ.get("WORLD_SIZE", "1")))
TABLE = os.environ.get("BENCH_TABLE", "calls")
DEVICE = torch.device("cuda", ME % torch.cuda.device_count())


def size_name(size):
    return f"{size} B" if size < KIB else f"{size // KIB} KiB" if size < MIB else f"{size // MIB} MiB"


def calls_for(size):
    return 50 if size <= 64 * MIB else 5


def report(row, value, unit, way=""):
    line = {"row": row, "value": value, "unit": unit, "pes": NPES, "gpus": NPES, "pe": ME, "library": LIBRARY + way}
    os.write(1, f"{json.dumps(line)}\n".encode())  # in one piece: lines of several PEs must not mix


def meet():
    torch.cuda.synchronize()
    dist.barrier(device_ids=[DEVICE.index])


def time_us(work, calls):
    return torch_times.time_us(work, calls, SAMPLES, lambda: None)


def eager_us(body, calls):
    return time_us(lambda: [body() for _ in range(calls)], calls)


def graph_us(body, calls):
    return time_us(torch_times.graph_of(body, calls).replay, calls)


def barriers(handle):
    report("barrier on a stream, in graphs", graph_us(lambda: handle.barrier(0, 0), 50), "us")
    meet()
    report("barrier on a stream, eager", eager_us(lambda: handle.barrier(0, 0), 200), "us")
    meet()


def signals(handle, source):
    """A copy to the peer and then a signal, and the same back."""
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


# --- Collectives, as collectives.h has them ------------------------------------------------------------

ROWS = {"all-reduce": [KIB, 16 * KIB, 128 * KIB, MIB, 8 * MIB, 64 * MIB, 256 * MIB],
        "all-gather": [KIB, 16 * KIB, 128 * KIB, MIB, 8 * MIB, 64 * MIB, 256 * MIB],
        "reduce-scatter": [KIB, 16 * KIB, 128 * KIB, MIB, 8 * MIB, 64 * MIB, 256 * MIB]}
TYPES = {"bf16": torch.bfloat16, "f32": torch.float32}
GROUP = "0"


def wait(result):
    return torch.ops._c10d_functional.wait_tensor(result)


def one_shot(source, out):
    return torch.ops.symm_mem.one_shot_all_reduce_out(source, "sum", GROUP, out)


def two_shot(source, out):
    return torch.ops.symm_mem.two_shot_all_reduce_out(source, "sum", GROUP, out)


def two_shot_in_place(source, out):
    return torch.ops.symm_mem.two_shot_all_reduce_(source, "sum", GROUP)


def gather(source, out):
    return wait(torch.ops.symm_mem._low_contention_all_gather(source, GROUP))


def scatter(source, out):
    return wait(torch.ops.symm_mem._low_contention_reduce_scatter(source, "sum", GROUP))


def scatter_out(source, out):
    return torch.ops.symm_mem.reduce_scatter_out(source, GROUP, False, out)


# An algorithm's name; whether its result is in the memory of its source.
WAYS = {"all-reduce": [(", one shot", one_shot, False), (", two shots", two_shot, False),
                       (", two shots", two_shot_in_place, True)],
        "all-gather": [(", low contention", gather, False)],
        "reduce-scatter": [(", low contention", scatter, False), (", out", scatter_out, False)]}


def elements_of(pe, nelems, dtype):
    """Returns elements whose sums are exact in any order, also in bf16."""
    generator = torch.Generator(device=DEVICE).manual_seed(1 + pe)
    return torch.randint(-8, 8, (nelems,), device=DEVICE, generator=generator).to(dtype)


def expected(operation, nelems, dtype):
    parts = [elements_of(pe, nelems, dtype) for pe in range(NPES)]
    if operation == "all-gather":
        return torch.cat(parts)
    total = sum(parts[1:], parts[0])
    return total if operation == "all-reduce" else total.chunk(NPES)[ME]


def is_wanted(size, kind, in_place):
    some = size in (KIB, MIB, 256 * MIB) and not in_place
    return (size <= MIB) == (TABLE == "small") and (kind == "bf16" or some)


def measure_row(operation, size, kind, way):
    name, call, in_place = way
    nelems = size // TYPES[kind].itemsize
    row = f"{operation} {size_name(size)} {kind}" + (", in place" if in_place else "")
    if os.environ.get("BENCH_ROWS", "") not in row:
        return
    source = symm_mem.empty(nelems, dtype=TYPES[kind], device=DEVICE)
    symm_mem.rendezvous(source, dist.group.WORLD)
    source.copy_(elements_of(ME, nelems, TYPES[kind]))
    meet()
    out = torch.full((nelems // (NPES if operation == "reduce-scatter" else 1),), -1, dtype=TYPES[kind], device=DEVICE)
    if not torch.equal(call(source, out), expected(operation, nelems, TYPES[kind])):
        report(row, None, "us", name)
    meet()
    try:
        report(row, graph_us(lambda: call(source, out), calls_for(size)), "us", name)
    except RuntimeError as error:  # it cannot be captured
        torch.cuda.synchronize()
        print(f"# {row}{name}: not in a graph: {error}"[:200], flush=True)
    meet()
    report(f"{row}, eager", eager_us(lambda: call(source, out), 200 if size <= MIB else 10), "us", name)
    meet()


def measure_or_tell(operation, size, kind, way):
    try:
        measure_row(operation, size, kind, way)
    except (RuntimeError, NotImplementedError) as error:
        print(f"# {operation} {size_name(size)} {kind}{way[0]}: {error}"[:200], flush=True)
        meet()


def collectives():
    global GROUP
    GROUP = dist.group.WORLD.group_name
    for kind in TYPES:
        for operation, sizes in ROWS.items():
            for size, way in itertools.product(sizes, WAYS[operation]):
                if is_wanted(size, kind, way[2]):
                    measure_or_tell(operation, size, kind, way)


def data_of(pe, size):
    generator = torch.Generator(device=DEVICE).manual_seed(1 + pe)
    return torch.randint(0, 256, (size,), dtype=torch.uint8, device=DEVICE, generator=generator)


def calls():
    buffer = symm_mem.empty(256 * MIB, dtype=torch.uint8, device=DEVICE)
    handle = symm_mem.rendezvous(buffer, dist.group.WORLD)
    source = data_of(ME, 256 * MIB)
    meet()
    barriers(handle)
    signals(handle, source)
    bandwidths(handle, source)


def main():
    torch.cuda.set_device(DEVICE)
    where = "file://" + os.path.join(os.environ["BENCH_MEET"], "torch") if "BENCH_MEET" in os.environ else "env://"
    dist.init_process_group("nccl", init_method=where, rank=ME, world_size=NPES, device_id=DEVICE)
    if TABLE == "calls":
        calls()
    elif TABLE != "ordinary":  # its memory is symmetric
        collectives()
    torch.cuda.synchronize()
    dist.destroy_process_group()


main()
