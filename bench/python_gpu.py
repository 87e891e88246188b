#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's symmetric-memory operators on Weft's memory, where fused products are Weft's, and on PyTorch's own, in one
run:

    torchrun --standalone --nproc-per-node 4 bench/python_gpu.py [--out file.json]

Each row is a CUDA graph of calls, one over the memory of each backend; graphs of both are replayed in turns.
Microseconds per call: the median, of the slowest rank. Neither uses multicast."""
import argparse
import functools
import json
import os
import pathlib
import sys
import time

os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed._symmetric_memory as symm_mem  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "python"))
import job  # noqa: E402
from cuda_graphs import graph_of, slowest  # noqa: E402

SAMPLES = 21
OPS = torch.ops.symm_mem
ROWS = []


class Here:
    """This rank; filled in by main."""


class Backends:
    """The registry's allocator, and its workspace."""

    def __init__(self):
        self.workspaces = {"CUDA": {}, "WEFT": {}}
        self.now = "CUDA"
        symm_mem.empty(1, device=Here.device)  # it counts as used from now on
        assert symm_mem.get_backend(Here.device) == "CUDA"

    def use(self, name):
        import weft.torch
        from weft.torch import _backend
        if name == self.now:
            return
        known = symm_mem._group_name_to_workspace_tensor
        self.workspaces[self.now] = dict(known)
        known.clear()
        known.update(self.workspaces[name])
        if name == "WEFT":
            weft.torch.install(force=True)
        else:
            _backend._shim.pyweft_torch_restore()
        assert symm_mem.get_backend(Here.device) == name
        self.now = name


def row(name, calls=20):
    """The decorated function makes its tensors and returns one call."""
    def add(make):
        ROWS.append((name, calls, make))
        return make
    return add


def symmetric(nbytes, dtype=torch.bfloat16):
    tensor = symm_mem.empty(nbytes // dtype.itemsize, dtype=dtype, device=Here.device)
    symm_mem.rendezvous(tensor, Here.group)
    return tensor.normal_()


# --- Rows ---------------------------------------------------------------------------------------------

@row("barrier")
def barrier():
    return symm_mem.rendezvous(symm_mem.empty(1, device=Here.device), Here.group).barrier


def all_reduce(nbytes, op):
    tensor = symmetric(nbytes)
    if op == "one_shot":
        out = torch.empty_like(tensor)
        return lambda: OPS.one_shot_all_reduce_out(tensor, "sum", Here.group, out)
    return lambda: OPS.two_shot_all_reduce_(tensor, "sum", Here.group)


for size in (1 << 10, 16 << 10, 128 << 10, 1 << 20):
    row(f"one_shot_all_reduce {size >> 10} KiB")(functools.partial(all_reduce, size, "one_shot"))
for size in (1 << 20, 8 << 20, 64 << 20):
    row(f"two_shot_all_reduce_ {size >> 20} MiB", 10)(functools.partial(all_reduce, size, "two_shot"))


def reduce_scatter(nbytes):
    tensor = symmetric(nbytes)
    out = torch.empty(tensor.numel() // Here.size, dtype=tensor.dtype, device=Here.device)
    return lambda: OPS.reduce_scatter_out(tensor, Here.group, False, out)


for size in (1 << 20, 64 << 20):
    row(f"reduce_scatter_out {size >> 20} MiB", 10)(functools.partial(reduce_scatter, size))


def low_contention_all_gather(nbytes):
    tensor = symmetric(nbytes).view(-1, 512)
    return lambda: torch.ops._c10d_functional.wait_tensor(OPS._low_contention_all_gather(tensor, Here.group))


for size in (1 << 20, 64 << 20):
    row(f"low_contention_all_gather {size >> 20} MiB shards", 5)(functools.partial(low_contention_all_gather, size))


# --- By Weft's kernels, beside PyTorch's operator for the same on PyTorch's memory ------------------------

def ours(name, theirs):
    """Returns weft.torch's function if the memory is Weft's."""
    if symm_mem.get_backend(Here.device) != "WEFT":
        return theirs
    import weft.torch
    return getattr(weft.torch, name)


def kernel_all_reduce(nbytes):
    tensor = symmetric(nbytes)
    out = torch.empty_like(tensor)
    theirs = OPS.one_shot_all_reduce_out if nbytes < 1 << 20 else OPS.two_shot_all_reduce_out
    call = ours("one_shot_all_reduce_out" if nbytes < 1 << 20 else "two_shot_all_reduce_out", theirs)
    return lambda: call(tensor, "sum", Here.group, out)


def kernel_reduce_scatter(nbytes):
    tensor = symmetric(nbytes * Here.size)
    out = torch.empty(tensor.numel() // Here.size, dtype=tensor.dtype, device=Here.device)
    call = ours("reduce_scatter_out", OPS.reduce_scatter_out)
    return lambda: call(tensor, Here.group, False, out)


def kernel_all_gather(nbytes):
    tensor = symmetric(nbytes).view(-1, 64)
    call = ours("low_contention_all_gather", OPS._low_contention_all_gather)
    return lambda: torch.ops._c10d_functional.wait_tensor(call(tensor, Here.group))


for size in (1, 16, 128, 512, 768):
    row(f"all-reduce of {size} KiB by either")(functools.partial(kernel_all_reduce, size << 10))
for size in (1, 16, 128, 512, 1024):
    row(f"reduce-scatter of {size} KiB by either")(functools.partial(kernel_reduce_scatter, size << 10))
for size in (1, 16, 128, 256):
    row(f"all-gather of {size} KiB by either")(functools.partial(kernel_all_gather, size << 10))


@row("fused_all_gather_matmul 4096 x 6656 x 16384", 3)
def all_gather_matmul():
    shard = torch.randn(4096 // Here.size, 16384, device=Here.device, dtype=torch.bfloat16)
    b = torch.randn(6656 // Here.size, 16384, device=Here.device, dtype=torch.bfloat16).t()
    return lambda: OPS.fused_all_gather_matmul(shard, [b], 0, Here.group)


@row("fused_matmul_reduce_scatter 4096 x 6656 x 4096", 3)
def matmul_reduce_scatter():
    a = torch.randn(4096, 4096 // Here.size, device=Here.device, dtype=torch.bfloat16)
    b = torch.randn(6656, 4096 // Here.size, device=Here.device, dtype=torch.bfloat16).t()
    return lambda: OPS.fused_matmul_reduce_scatter(a, b, "sum", 0, Here.group)


@row("fused_all_gather_scaled_matmul 4096 x 6656 x 16384", 3)
def all_gather_scaled_matmul():
    one = torch.ones((), device=Here.device)
    shard = torch.randn(4096 // Here.size, 16384, device=Here.device).to(torch.float8_e4m3fn)
    b = torch.randn(6656 // Here.size, 16384, device=Here.device).to(torch.float8_e4m3fn).t()
    return lambda: OPS.fused_all_gather_scaled_matmul(shard, [b], one, [one], 0, Here.group, [None], [None],
                                                      [torch.bfloat16], [True])


# --- Measuring ----------------------------------------------------------------------------------------

def replay_us(graph, calls):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    dist.barrier()
    begin.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / calls


def measure(backends, calls, make):
    kept, graphs, samples = {}, {}, {"CUDA": [], "WEFT": []}
    for name in samples:
        backends.use(name)
        kept[name] = make()
        graphs[name] = graph_of(kept[name], calls)
    for _ in range(SAMPLES):
        for name in samples:
            samples[name].append(replay_us(graphs[name], calls))
    return {name: slowest(times[2:]) for name, times in samples.items()}


def host_us(function, calls=1000):
    """Returns the time of a call in the calling thread."""
    function()
    torch.cuda.synchronize()
    dist.barrier()
    began = time.perf_counter()
    for _ in range(calls):
        function()
    spent = time.perf_counter() - began
    torch.cuda.synchronize()
    return spent * 1e6 / calls


def host_rows(backends):
    made = {}
    for name in ("CUDA", "WEFT"):
        backends.use(name)
        tensor = symmetric(1 << 20)
        handle = symm_mem.rendezvous(tensor, Here.group)
        calls = {"host: handle.barrier()": handle.barrier,
                 "host: rendezvous again": functools.partial(symm_mem.rendezvous, tensor, Here.group)}
        for row_name, call in calls.items():
            us = slowest([host_us(call, 200) for _ in range(9)])
            made.setdefault(row_name, {})[name] = us
    return made


def report(name, us):
    if Here.rank == 0:
        print(f"{name:54} {us['CUDA']:10.2f} {us['WEFT']:10.2f} {us['WEFT'] / us['CUDA']:7.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--out")
    args = parser.parse_args()
    Here.rank, Here.size = job.place()
    Here.device = torch.device("cuda", Here.rank % torch.cuda.device_count())
    torch.cuda.set_device(Here.device)
    Here.group = job.start("nccl", seconds_max=550).group_name
    dist.barrier()
    backends, results = Backends(), {}
    if Here.rank == 0:
        print(f"# {Here.size} GPUs, torch {torch.__version__}; us a call\n{'':54} {'CUDA':>10} {'WEFT':>10} ratio")
    for name, calls, make in ROWS:
        if args.only in name:
            results[name] = measure(backends, calls, make)
            report(name, results[name])
    for name, us in host_rows(backends).items():
        results[name] = us
        report(name, us)
    if args.out and Here.rank == 0:
        pathlib.Path(args.out).write_text(json.dumps(results, indent=1))
    job.end()


if __name__ == "__main__":
    main()
