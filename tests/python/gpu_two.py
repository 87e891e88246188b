#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric tensors on two GPUs of one process: each rank has some on both.

    python tests/python/gpu_two.py                                                    one process
    python -m torch.distributed.run --nproc-per-node 2 tests/python/gpu_two.py        two, which share both GPUs
    build/bin/oshrun -n 2 python tests/python/gpu_two.py

Data is new in every run and gathered by torch.distributed on the host, where references are made in float64. While
the tensors of one GPU are worked on the other one is the current device. A line for each case, in TAP; the first
wrong ends the job. --cpu has both "GPUs" on the CPU, which is for trying the program out.
"""
import contextlib
import sys
import threading

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as torch_symm_mem

import job

CPU = "--cpu" in sys.argv
COUNT = 2 if CPU else torch.cuda.device_count()
if COUNT < 2:
    print(f"1..0 # SKIP two GPUs are needed, and there are {COUNT}")
    sys.exit(0)

import weft  # noqa: E402
import weft.torch as symm_mem  # noqa: E402

ME, N = job.place()
GPUS = [torch.device("cpu")] * 2 if CPU else [torch.device("cuda", 0), torch.device("cuda", 1)]
if not CPU:
    torch.cuda.set_device(GPUS[ME % 2])
WORLD = job.start("gloo", seconds_max=300)
NAME = WORLD.group_name
TIMEOUT_MS = 20000
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1.6e-2}
torch.backends.cuda.matmul.allow_tf32 = False
CASES = []


def case(function):
    CASES.append(function)
    return function


def gpu_case(function):
    """Needs CUDA itself."""
    return function if CPU else case(function)


def at_other(device):
    """A context: the other GPU is the current device, and is still the current one at its end."""
    return contextlib.nullcontext() if CPU else _at_other(torch.device("cuda", 1 - device.index))


@contextlib.contextmanager
def _at_other(other):
    with torch.cuda.device(other):
        yield
        assert torch.cuda.current_device() == other.index, "a call has left another current device behind"


def finish():
    for device in [] if CPU else GPUS:
        torch.cuda.synchronize(device)
    dist.barrier()


def of_all(tensor):
    """(ranks, *shape), on the host."""
    mine = tensor.detach().cpu().contiguous()
    parts = [torch.empty_like(mine) for _ in range(N)]
    dist.all_gather(parts, mine)
    return torch.stack(parts)


def random(device, *shape, dtype=torch.float32):
    return torch.randn(shape).to(dtype).to(device)


def symmetric(values):
    tensor = symm_mem.empty(*values.shape, dtype=values.dtype, device=values.device)
    assert tensor.device == values.device and symm_mem.is_symm_mem_tensor(tensor)
    return tensor.copy_(values)


def check(what, got, wanted, device, dtype=None, terms=1):
    """Compares bitwise; or, if given a dtype, within the rounding errors of that many terms."""
    assert got.device == device, f"{what}: on {got.device}, expected {device}"
    got = got.detach().cpu()
    assert got.shape == wanted.shape, f"{what}: {tuple(got.shape)}, expected {tuple(wanted.shape)}"
    if dtype is None:
        assert torch.equal(got, wanted), f"{what} on {device}: got {got.flatten()[:4]}, expected {wanted.flatten()[:4]}"
    else:
        worst = (got.double() - wanted.double()).abs().max().item()
        allowed = TOLERANCE[dtype] * max(1.0, wanted.abs().max().item()) * terms ** 0.5
        assert worst <= allowed, f"{what} on {device}: off by {worst}, {allowed} is allowed"


def raises(kind, words, call, *args, **named):
    try:
        call(*args, **named)
    except kind as error:
        assert all(word in str(error) for word in words), f"{error!s} does not say {words}"
        return
    raise AssertionError(f"no {kind.__name__} from {call}")


# --- Memory and handles -------------------------------------------------------------------------------


@gpu_case
def a_tensor_lies_on_its_gpu():
    """Checks the free memory of each GPU, if no other process uses them."""
    bytes = 64 << 20
    kept = [symm_mem.empty(1, device=device) for device in GPUS]  # each is open from here on
    for device in GPUS if N == 1 else []:
        left = [torch.cuda.mem_get_info(each)[0] for each in GPUS]
        with at_other(device):
            tensor = symm_mem.empty(bytes, dtype=torch.uint8, device=device)
        taken = [before - torch.cuda.mem_get_info(each)[0] for before, each in zip(left, GPUS)]
        assert taken[device.index] >= bytes and taken[1 - device.index] == 0, taken
        assert tensor.device == device
        del tensor
        assert torch.cuda.mem_get_info(device)[0] >= left[device.index], "the memory has not come back"
    del kept


@case
def peers_are_read_and_written():
    for device in GPUS:
        values = random(device, 5000)
        everyone = of_all(values)
        with at_other(device):
            tensor = symmetric(values)
            handle = symm_mem.rendezvous(tensor, WORLD)
            assert (handle.rank, handle.world_size, handle.device) == (ME, N, device)
            handle.barrier()
            for peer in range(N):
                check("get_buffer", handle.get_buffer(peer, (5000,), torch.float32), everyone[peer], device)
            handle.barrier()
            right, left = (ME + 1) % N, (ME - 1) % N
            symm_mem.put(torch.full((10,), 100. + ME, device=device), handle, right, offset=7)
            handle.barrier()
            check("put", tensor[7:17], torch.full((10,), 100. + left), device)
            handle.barrier()
            symm_mem.put_signal(torch.full((5000,), 7. + ME, device=device), handle, right)
            symm_mem.wait_signal(handle, left)
            check("put_signal", tensor, torch.full((5000,), 7. + left), device)
    finish()


@case
def streams_of_both_meet_in_turns():
    """Barriers and signals, on default streams and others, with the other GPU for the current device."""
    made = [symmetric(torch.zeros(N * 64, device=device)) for device in GPUS]
    handles = [symm_mem.rendezvous(tensor, WORLD) for tensor in made]
    sides = [contextlib.nullcontext() if CPU else torch.cuda.stream(torch.cuda.Stream(device)) for device in GPUS]
    for turn in range(12):
        for device, tensor, handle, side in zip(GPUS, made, handles, sides):
            with side if turn % 3 == 2 and not CPU else contextlib.nullcontext(), at_other(device):
                peer = (ME + turn) % N
                handle.barrier(timeout_ms=TIMEOUT_MS)
                handle.get_buffer(peer, (N, 64), torch.float32)[ME].fill_(1000 * turn + ME)
                handle.put_signal(peer, timeout_ms=TIMEOUT_MS)
                handle.wait_signal((ME - turn) % N, timeout_ms=TIMEOUT_MS)
                sender = (ME - turn) % N
                check("by signal", tensor.view(N, 64)[sender], torch.full((64,), 1000. * turn + sender), device)
    finish()


@case
def threads_that_are_new():
    """The threads have no context yet, and PyTorch takes GPU 0 for their current device."""
    handles = [symm_mem.rendezvous(symm_mem.empty(64, device=device), WORLD) for device in GPUS]
    failed = []

    def meet(handle, device):
        try:
            handle.barrier(timeout_ms=TIMEOUT_MS)
            tensor = symm_mem.empty(1 << 20, device=device)
            tensor.fill_(ME)
            check("of a thread", tensor[:4], torch.full((4,), float(ME)), device)
        except BaseException as error:
            failed.append(error)
    for turn in range(4):
        thread = threading.Thread(target=meet, args=(handles[turn % 2], GPUS[turn % 2]))
        thread.start()
        thread.join()
        assert not failed, failed
    finish()


@case
def groups():
    """Each pair of neighbours, with tensors of theirs on both."""
    pairs = [[rank, rank + 1] for rank in range(N - 1)] or [[0]]
    made = [dist.new_group(pair) for pair in pairs]
    for pair, group in zip(pairs, made):
        for device in GPUS if ME in pair else []:
            with at_other(device):
                tensor = symmetric(torch.full((100,), float(ME), device=device))
                handle = symm_mem.rendezvous(tensor, group)
                handle.barrier()
                for member, rank in enumerate(pair):
                    check("group", handle.get_buffer(member, (100,), torch.float32), torch.full((100,), float(rank)), device)
                handle.barrier()
    finish()


@gpu_case
def tensors_of_other_gpus_meet():
    """Even ranks give a tensor on one GPU, odd ones on the other."""
    device = GPUS[ME % 2]
    values = random(device, 3000)
    everyone = of_all(values)
    handle = symm_mem.rendezvous(symmetric(values), WORLD)
    handle.barrier()
    for peer in range(N):
        check("across", handle.get_buffer(peer, (3000,), torch.float32), everyone[peer], device)
    handle.barrier()
    finish()


@gpu_case
def pools():
    for device in GPUS:
        with torch.cuda.device(device), torch.cuda.use_mem_pool(symm_mem.get_mem_pool(device)):
            tensor = torch.full((1000,), float(ME), device=device)
        handle = symm_mem.rendezvous(tensor, WORLD)
        assert handle.device == device
        handle.barrier()
        peer = (ME + 1) % N
        check("pool", symm_mem.get_remote_tensors(tensor, WORLD)[peer], torch.full((1000,), float(peer)), device)
        handle.barrier()
    finish()


@gpu_case
def graphs():
    """Barriers and a copy, captured and replayed on each."""
    for device in GPUS:
        tensor = symmetric(torch.zeros(500, device=device))
        handle, out = symm_mem.rendezvous(tensor, WORLD), torch.empty(500, device=device)
        peer, graph = (ME + 1) % N, torch.cuda.CUDAGraph()
        theirs = handle.get_buffer(peer, (500,), torch.float32)
        finish()
        with torch.cuda.device(device), torch.cuda.graph(graph, stream=torch.cuda.Stream(device)):
            handle.barrier(timeout_ms=TIMEOUT_MS)
            out.copy_(theirs)
            handle.barrier(timeout_ms=TIMEOUT_MS)
        for turn in range(3):
            with torch.cuda.device(device):
                tensor.fill_(10 * turn + ME)
                graph.replay()
            check("graph", out, torch.full((500,), 10. * turn + peer), device)
        finish()


# --- Operators ----------------------------------------------------------------------------------------


@case
def workspaces():
    handles = [symm_mem.get_symm_mem_workspace(NAME, 1 << 16, device=device) for device in GPUS]
    assert [handle.device for handle in handles] == GPUS
    for device, handle in zip([] if CPU else GPUS, handles):
        with torch.cuda.device(device):
            again = torch_symm_mem.get_symm_mem_workspace(NAME, 100)
            assert again.device == device and again.buffer_ptrs == handle.buffer_ptrs
            assert torch_symm_mem._get_backend_stream().device == device
    finish()


@case
def on_symmetric_tensors():
    for device in GPUS if N > 1 else []:
        for dtype in TOLERANCE:
            values = random(device, 1024 * N, dtype=dtype)
            wanted = of_all(values).double().sum(0)
            with at_other(device):
                results = [symm_mem.one_shot_all_reduce(symmetric(values), "sum", WORLD),
                           symm_mem.two_shot_all_reduce_(symmetric(values), "sum", WORLD)]
                for result in results:
                    check("all-reduce", result, wanted, device, dtype, N)
                out = torch.full((1024,), float("nan"), dtype=dtype, device=device)
                symm_mem.reduce_scatter_out(symmetric(values), WORLD, False, out)
                check("reduce_scatter_out", out, wanted.chunk(N)[ME], device, dtype, N)
            finish()


@case
def collectives():
    for device in GPUS:
        for dtype in TOLERANCE:
            values = random(device, 4 * N, 6 * N, dtype=dtype)
            whole = of_all(values)
            total = whole.double().sum(0)
            with at_other(device):
                for dim in (0, 1):
                    check("all_gather", symm_mem.all_gather(values, dim, WORLD), torch.cat(list(whole), dim), device)
                    check("reduce_scatter", symm_mem.reduce_scatter(values, "sum", dim, WORLD), total.chunk(N, dim)[ME],
                          device, dtype, N)
                check("all_reduce", symm_mem.all_reduce(values, "sum", WORLD), total, device, dtype, N)
                check("all_to_all", symm_mem.all_to_all(values, WORLD),
                      torch.cat([each.chunk(N)[ME] for each in whole]), device)
                wait = torch.ops._c10d_functional.wait_tensor
                gathered = wait(symm_mem.low_contention_all_gather(values, WORLD))
                check("low contention", gathered, torch.cat(list(whole)), device)
                scattered = wait(symm_mem.low_contention_reduce_scatter(values, "sum", WORLD))
                check("low contention", scattered, total.chunk(N)[ME], device, dtype, N)
            finish()


@case
def products():
    for device in GPUS:
        for rows in (16, 512):
            x, w = random(device, rows * N, 64), random(device, 64, 32)
            xs, ws = of_all(x), of_all(w)
            with at_other(device):
                gathered, [product] = symm_mem.fused_all_gather_matmul(x, [w], 0, WORLD)
                check("gathered", gathered, torch.cat(list(xs)), device)
                check("fused_all_gather_matmul", product, torch.cat(list(xs)).double() @ ws[ME].double(), device,
                      torch.float32, 64)
                check("fused_matmul_reduce_scatter", symm_mem.fused_matmul_reduce_scatter(x, w, "sum", 0, WORLD),
                      (xs.double() @ ws.double()).sum(0).chunk(N)[ME], device, torch.float32, 64 * N)
                partials = random(device, N, rows, 16, dtype=torch.bfloat16)
                sums = symm_mem.reduce_partials(partials, dim=0, reduce_op="sum", output_dtype=torch.bfloat16, group_size=N)
                check("reduce_partials", sums, partials.double().sum(0).cpu(), device, torch.bfloat16, N)
            finish()


@case
def exchanges():
    for device in GPUS:
        splits = torch.randint(0, 20, (N,))
        table = of_all(splits).tolist()
        rows = random(device, 20 * N, 8)
        everyone = of_all(rows)
        with at_other(device):
            source, out = symmetric(rows), symm_mem.empty(20 * N * N, 8, device=device).fill_(float("nan"))
            books = symmetric(torch.full((2, N), -1, device=device))
            symm_mem.all_to_all_vdev(source, out, symmetric(splits.to(device)), books, WORLD)
            taken = [row[ME] for row in table]
            check("all_to_all_vdev", out[:sum(taken)], torch.cat(
                [everyone[rank][sum(row[:ME]):sum(row[:ME + 1])] for rank, row in enumerate(table)]), device)
            assert books[0].tolist() == taken
        finish()


@case
def gradients():
    for device in GPUS:
        x = random(device, 4, 8).requires_grad_()
        seeds = random(device, 4 * N, 8)
        with at_other(device):
            (symm_mem.all_gather(x, 0, NAME) * seeds).sum().backward()
        check("gradient", x.grad, of_all(seeds).double().sum(0).chunk(N)[ME], device, torch.float32, N)
        finish()


# --- What is refused ----------------------------------------------------------------------------------


@gpu_case
def what_would_be_on_two_gpus_is_refused():
    here, there = GPUS
    tensor, words = symmetric(torch.zeros(16, device=here)), symmetric(torch.zeros(1, dtype=torch.int64, device=there))
    handle = symm_mem.rendezvous(tensor, WORLD)
    symm_mem.rendezvous(words, WORLD)
    both = ("cuda:0", "cuda:1")
    raises(RuntimeError, both, symm_mem.put, torch.zeros(4, device=there), handle, 0)
    raises(RuntimeError, both, torch.ops.symm_mem.nvshmem_put_with_signal, tensor, words, 1, 0)
    raises(RuntimeError, both, symm_mem.all_to_all_vdev, tensor.view(-1, 1), tensor.view(-1, 1), words, words, WORLD)
    mine = weft.device()
    other = torch.device("cuda", 1 - mine)
    raises(ValueError, (f"got device {other}", f"cuda:{mine}"), symm_mem.SymmetricMemoryHandler.empty, 4, torch.float32,
           other)
    symm_mem.SymmetricMemoryHandler.close()
    dest = weft.empty(4, space="device")
    with torch.cuda.device(other):  # because PyTorch prints a tensor on the current device only
        raises(ValueError, (f"GPU {1 - mine}", f"GPU {mine}"), weft.put, dest, torch.zeros(4, device=other), ME, stream=0)
    finish()


def main():
    if not CPU:
        symm_mem.install()
        weft.init()
        assert weft.device() == ME % 2  # each GPU is this PE's GPU on one of the ranks
    for number, each in enumerate(CASES, 1):
        each()
        if ME == 0:
            print(f"ok {number} - {each.__name__.replace('_', ' ')}", flush=True)
    if ME == 0:
        print(f"1..{len(CASES)}\n# {N} ranks on {GPUS[0]} and {GPUS[1]}, {torch.__version__}")
    del globals()["WORLD"]  # as job.end() wants it
    job.end()


main()
