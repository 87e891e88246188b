# SPDX-License-Identifier: BSD-3-Clause
"""weft.torch on CUDA tensors: the checks that the torch_*.py tests make on CPU tensors.

    python -m torch.distributed.run --nproc-per-node 4 tests/python/gpu_torch.py

References are gathered by torch.distributed and computed in float64; inputs are new in every run, outputs are poisoned
before, and every check is made on every rank. Prints one line for each check, and stops at the first failure.
"""
import itertools
import os
import sys
import time

import torch
import torch.distributed as dist

import weft
import weft.torch as symm_mem
from weft.torch import moe
from weft.torch.deep_ep import Buffer

import job
import torch_async

ME, N = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", ME)) % torch.cuda.device_count())
torch.cuda.set_device(DEVICE)
job.start(job.kind_for(DEVICE), seconds_max=300)
WORLD = dist.group.WORLD
NAME = WORLD.group_name
SEED = torch.tensor([time.time_ns() % (1 << 31)], device=DEVICE)
dist.broadcast(SEED, 0)
torch.manual_seed(int(SEED) + ME)
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 1.6e-2, torch.float16: 2e-3}
FLOATS = [torch.float32, torch.bfloat16, torch.float16]
torch.backends.cuda.matmul.allow_tf32 = False


def say(text):
    torch.cuda.synchronize()
    dist.barrier()
    if ME == 0:
        print(f"ok  {text}", flush=True)


def of_all(tensor):
    flat = tensor.detach().clone(memory_format=torch.contiguous_format).view(-1).view(torch.uint8)
    gathered = [torch.empty_like(flat) for _ in range(N)]
    if flat.numel():
        dist.all_gather(gathered, flat)
    return torch.stack([each.clone().view(tensor.dtype).view(tensor.shape) for each in gathered])


def joined(tensor, dim):
    return torch.cat(list(of_all(tensor)), dim)


def check(text, got, expected, dtype=None, terms=1):
    """expected is float64, or has got's dtype for a bitwise comparison."""
    assert got.shape == expected.shape, (text, got.shape, expected.shape)
    if dtype is None:
        assert torch.equal(got, expected), text
    elif expected.numel():
        assert got.dtype == dtype, (text, got.dtype)
        scale = max(1.0, expected.abs().max().item()) * max(terms, 1) ** 0.5
        worst = (got.double() - expected).abs().max().item()
        assert worst <= TOLERANCE[dtype] * scale, (text, worst, TOLERANCE[dtype] * scale)


def raises(kind, call, *args):
    try:
        call(*args)
    except kind:
        return
    raise AssertionError(f"{call} raised no {kind}")


def symmetric(values):
    return symm_mem.empty(*values.shape, dtype=values.dtype, device=DEVICE).copy_(values)


def random(*shape, dtype=torch.float32):
    return torch.randn(shape, device=DEVICE).to(dtype)


def handles():
    t = symm_mem.empty(16, 4, device=DEVICE).fill_(ME)
    handle = symm_mem.rendezvous(t, WORLD)
    assert symm_mem.get_backend(DEVICE) == "WEFT" and symm_mem.installed()
    assert (handle.rank, handle.world_size, handle.device) == (ME, N, DEVICE)
    assert handle.buffer_ptrs[ME] + handle.offset == t.data_ptr() and handle.multicast_ptr == 0
    assert symm_mem.rendezvous(torch.empty(4, device=DEVICE), WORLD) is None
    assert symm_mem.is_symm_mem_tensor(t) and not symm_mem.is_symm_mem_tensor(t.clone())
    handle.barrier()
    for peer, copy in enumerate(symm_mem.get_remote_tensors(t, WORLD)):
        check("remote", copy, torch.full_like(copy, peer))
    right, left = (ME + 1) % N, (ME - 1) % N
    handle.barrier()
    symm_mem.put(torch.full((4,), 100. + ME, device=DEVICE), handle, right, offset=8)
    handle.barrier()
    check("put", t.flatten()[8:12], torch.full((4,), 100. + left, device=DEVICE))
    got = torch.full((4,), float("nan"), device=DEVICE)
    symm_mem.get(got, handle, right, 8)
    check("get", got, torch.full((4,), 100. + ME, device=DEVICE))
    handle.barrier()
    symm_mem.put_signal(torch.full((16, 4), 7. + ME, device=DEVICE), handle, right)
    symm_mem.wait_signal(handle, left)
    check("put_signal", t, torch.full((16, 4), 7. + left, device=DEVICE))
    assert symm_mem.get_symm_mem_workspace(NAME, 1 << 20).buffer_size >= 1 << 20
    with torch.cuda.use_mem_pool(symm_mem.get_mem_pool(DEVICE)):
        pooled = torch.full((1000,), float(ME), device=DEVICE)
    check("pool", symm_mem.one_shot_all_reduce(pooled, "sum", WORLD),
          torch.full((1000,), N * (N - 1) / 2, device=DEVICE))
    say("handles, put, get, signals, workspace, pools")


def collectives():
    for dtype, sizes in itertools.product(FLOATS, [(4, 3 * N, 2 * N), (64, 512, N), (0, N)]):
        x = random(*sizes, dtype=dtype)
        for dim in range(-1, len(sizes)):
            check("all_gather", symm_mem.all_gather(x, dim, WORLD), joined(x, dim))
            for op in ("sum", "avg", "max"):
                if sizes[dim] % N == 0 and sizes[dim]:
                    whole = of_all(x).double()
                    whole = {"sum": whole.sum, "avg": whole.mean, "max": whole.amax}[op](0)
                    check("reduce_scatter", symm_mem.reduce_scatter(x, op, dim, WORLD),
                          whole.chunk(N, dim)[ME], dtype, N)
        result = symm_mem.all_reduce(x, "sum", WORLD)
        check("all_reduce", result, of_all(x).double().sum(0), dtype, N)
        assert all(torch.equal(each, result) for each in of_all(result))
    counts = torch.randint(0, 50, (N,), device=DEVICE)
    table = of_all(counts).tolist()
    taken = [row[ME] for row in table]
    x = torch.arange(sum(table[ME]) * 3, device=DEVICE).view(-1, 3) + 100000 * ME
    begins = [[sum(row[:at]) for at in range(N)] for row in table]
    expected = torch.cat([torch.arange(sum(row) * 3, device=DEVICE).view(-1, 3)[
        begin[ME]:begin[ME] + row[ME]] + 100000 * peer
        for peer, (row, begin) in enumerate(zip(table, begins))])
    check("all_to_all", symm_mem.all_to_all(x, WORLD, taken, table[ME]), expected)
    say("all_gather, reduce_scatter, all_reduce, all_to_all")


def products():
    for dtype, sizes in itertools.product(FLOATS, [(N * 4, 32), (2 * N, 4 * N, 64), (256, 512)]):
        for dim in range(len(sizes)):
            x, last = random(*sizes, dtype=dtype), dim == len(sizes) - 1
            bs = [random(sizes[-1] * (N if last else 1), n, dtype=dtype) for n in (48, 8)]
            whole, products = symm_mem.fused_all_gather_matmul(x, bs, dim, WORLD)
            expected = joined(x, dim)
            check("gathered", whole, expected)
            for b, product in zip(bs, products):
                check(f"fused_all_gather_matmul {dtype} {sizes} {dim}", product,
                      expected.double() @ b.double(), dtype, len(b))
            b = random(sizes[-1], 16 * N, dtype=dtype)
            whole = of_all(x.double() @ b.double())
            for op in ("sum", "avg"):
                total = whole.sum(0) if op == "sum" else whole.mean(0)
                check(f"fused_matmul_reduce_scatter {dtype} {sizes} {dim}",
                      symm_mem.fused_matmul_reduce_scatter(x, b, op, dim, WORLD),
                      total.chunk(N, dim)[ME], dtype, N * sizes[-1])
                reduced = symm_mem.fused_matmul_all_reduce(x, b, op, WORLD)
                check(f"fused_matmul_all_reduce {dtype} {sizes}", reduced, total, dtype, N * sizes[-1])
                assert all(torch.equal(each, reduced) for each in of_all(reduced))
    counts = symm_mem.counters()
    assert counts["fused_all_gather_matmul"] and counts["fused_matmul_reduce_scatter"], counts
    raises(ValueError, symm_mem.fused_all_gather_matmul, random(2, 3), [random(3, 4)], 2, WORLD)
    say("fused products, every dimension")


def products_in_graphs():
    x, w, v = random(64 * N, 256), random(256, 96), random(96, 256)

    def layer():
        _, [hidden] = symm_mem.fused_all_gather_matmul(x[:64], [w], 0, WORLD, return_A=False)
        return symm_mem.fused_matmul_reduce_scatter(hidden, v, "sum", 0, WORLD), symm_mem.fused_matmul_all_reduce(x, w, "sum", WORLD)
    layer()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="relaxed"):
        scattered, reduced = layer()
    for turn in range(4):
        x.copy_(random(64 * N, 256))
        scattered.fill_(float("nan")), reduced.fill_(float("nan"))
        if turn == 2:
            layer()
        graph.replay()
        hidden = joined(x[:64], 0).double() @ w.double()
        check("scattered in a graph", scattered, of_all(hidden @ v.double()).sum(0).chunk(N)[ME], torch.float32, 256 * 96)
        check("reduced in a graph", reduced, of_all(x.double() @ w.double()).sum(0), torch.float32, 256 * N)
    say("fused products in graphs")


def beside_nccl(turns=100):
    """Kernels of products, of which some take all multiprocessors, and NCCL's wait for other GPUs at the same time. On each
    turn some ranks are late with the product and the others with NCCL's call."""
    if dist.get_backend() != "nccl":
        return say("products beside NCCL: left out, ranks share a GPU")
    rows, k, n = 2048 * N, 1024, 4096
    x, w = random(rows, k, dtype=torch.bfloat16), random(k, n, dtype=torch.bfloat16)
    by_columns = w.t().contiguous().t()

    def layer():
        _, [first] = symm_mem.fused_all_gather_matmul(x[:rows // N], [w], 0, WORLD, return_A=False)
        _, [second] = symm_mem.fused_all_gather_matmul(x[:rows // N], [by_columns], 0, WORLD, return_A=False)
        return (first, second, symm_mem.fused_matmul_reduce_scatter(x, w, "sum", 0, WORLD),
                symm_mem.fused_matmul_all_reduce(x, by_columns, "sum", WORLD))

    expected, side = layer(), torch.cuda.Stream()
    whole = joined(x[:rows // N], 0).double() @ w.double()
    total = of_all(x.double() @ w.double()).sum(0)
    for result, wanted in zip(expected, (whole, whole, total.chunk(N)[ME], total)):
        check("a product beside NCCL", result, wanted, torch.bfloat16, k * N)
    numbers = torch.empty(1 << 22, device=DEVICE)
    torch.cuda.synchronize()
    for turn in range(turns):
        late = int(torch.randint(0, 1 << 20, ()))  # cycles, different on each rank
        for stream in (side, torch.cuda.current_stream()):
            with torch.cuda.stream(stream):
                if (turn + ME) % 2 == (stream is side):
                    torch.cuda._sleep(late)
                if stream is side:
                    numbers.fill_(ME + turn)
                    dist.all_reduce(numbers, dist.ReduceOp.AVG)
                else:
                    results = layer()
        if turn % 10 == 9:
            for result, wanted in zip(results, expected):
                check("a product beside NCCL", result, wanted)
            side.synchronize()
            check("NCCL beside a product", numbers, torch.full_like(numbers, (N - 1) / 2 + turn))
    say("products beside NCCL's kernels")


def scaled_products():
    if torch.cuda.get_device_capability() < (8, 9):
        return say("fused products of 8-bit floats: left out, this GPU has none")
    narrow = lambda *sizes: random(*sizes).to(torch.float8_e4m3fn)  # noqa: E731
    one = torch.ones((), device=DEVICE)
    for rows in (False, True):
        x, b = narrow(16 * N, 64), narrow(32, 64).t()
        scale = torch.rand((16 * N, 1) if rows else (), device=DEVICE) + .5
        b_scale = torch.rand((1, 32) if rows else (), device=DEVICE) + .5
        if not rows:
            dist.broadcast(scale, 0)
        whole, [product] = symm_mem.fused_all_gather_scaled_matmul(
            x, [b], scale, [b_scale], 0, WORLD, [None], [None], [torch.bfloat16], [False])
        check("gathered", whole.view(torch.uint8), joined(x.view(torch.uint8), 0))
        scales = joined(scale, 0) if rows else scale
        check("fused_all_gather_scaled_matmul", product,
              (joined(x, 0).double() * scales.double()) @ (b.double() * b_scale.double()),
              torch.bfloat16, 64)
        got = symm_mem.fused_scaled_matmul_reduce_scatter(
            x, b, scale, b_scale, "sum", 0, 0, WORLD, [16 * N, 32], None, None, torch.bfloat16)
        partial = (x.double() * scale.double()) @ (b.double() * b_scale.double())
        check("fused_scaled_matmul_reduce_scatter", got, of_all(partial).sum(0).chunk(N)[ME],
              torch.bfloat16, 64 * N)
    narrowed = torch.full((), .25, device=DEVICE)
    _, [got] = symm_mem.fused_all_gather_scaled_matmul(x, [b], one, [one], 0, WORLD, [None], [narrowed], [x.dtype], [False])
    # As PyTorch documents it: torch._scaled_mm of 2.11 leaves the scale out on a GPU.
    wanted = (joined(x, 0).double() @ b.double() * narrowed).to(x.dtype)
    off = (got.float() - wanted.float()).abs().max()
    assert got.dtype == x.dtype and off <= wanted.float().abs().max() / 8, f"result_scale: off by {off}"
    raises(ValueError, lambda: symm_mem.fused_all_gather_scaled_matmul(
        x, [b], one, [one], 0, WORLD, [], [None], [None], [False]))
    say("fused products of 8-bit floats")


def symmetric_tensors():
    for dtype in (torch.float32, torch.bfloat16):
        x = random(N * 1024, dtype=dtype)
        expected, poison = of_all(x).double().sum(0), torch.full_like(x, float("nan"))
        results = [
            symm_mem.one_shot_all_reduce(symmetric(x), "sum", WORLD),
            symm_mem.one_shot_all_reduce_out(symmetric(x), "sum", WORLD, poison.clone()),
            symm_mem.one_shot_all_reduce_copy(symmetric(poison), x, "sum", WORLD),
            symm_mem.one_shot_all_reduce_copy_out(symmetric(poison), x, "sum", WORLD, poison.clone()),
            symm_mem.two_shot_all_reduce_(symmetric(x), "sum", WORLD)]
        if N in (2, 4, 8):
            results.append(symm_mem.two_shot_all_reduce_out(symmetric(x), "sum", WORLD,
                                                            poison.clone()))
            out = poison[:1024].clone()
            symm_mem.reduce_scatter_out(symmetric(x), WORLD, False, out)
            check("reduce_scatter_out", out, expected.chunk(N)[ME], dtype, N)
            out = poison[:1024].clone().view(4, 256)
            symm_mem.reduce_scatter_out(symmetric(x.view(4, -1)), WORLD, True, out)
            check("reduce_scatter_out", out, expected.view(4, -1).chunk(N, 1)[ME], dtype, N)
        for result in results:
            check("all-reduce", result, expected, dtype, N)
        wait = torch.ops._c10d_functional.wait_tensor
        y = x.view(N * 16, -1)
        check("low contention", wait(symm_mem.low_contention_all_gather(y, WORLD)), joined(y, 0))
        check("low contention", wait(symm_mem.low_contention_reduce_scatter(y, "avg", WORLD)),
              of_all(y).double().mean(0).chunk(N)[ME], dtype, N)
    words = torch.zeros(8, dtype=torch.uint32, device=DEVICE)
    symm_mem.stream_write_value32_(words, 2, 0xFFFFFFFF)
    symm_mem.memset32_(words, 4, 3, 2)
    assert words.tolist() == [0, 0, 0xFFFFFFFF, 0, 3, 3, 0, 0]
    say("operators on symmetric tensors")


def by_kernels():
    """Sizes on both sides of the limits below which Weft's kernels run instead of PyTorch's."""
    from weft.torch import _groups, _kernels
    symm_mem.all_reduce(random(4), "sum", WORLD)
    limits = _groups.group_of(NAME).kernels or {}
    able = sorted(operation for operation in limits if limits[operation])
    if not able:
        return say(f"by kernels: left out, {N} ranks have none")
    wait = torch.ops._c10d_functional.wait_tensor
    for operation in able:
        most = limits[operation]
        for nbytes, dtype in itertools.product((4, 1028, most // 4 * 4, most // 4 * 4 + 64), FLOATS):
            numel, before = nbytes // dtype.itemsize, _kernels.taken[operation]
            x = random(N, numel, dtype=dtype)
            if operation == "all_reduce":
                expected = of_all(x[0]).double().sum(0)
                results = [symm_mem.all_reduce(x[0], "sum", WORLD)]
                if dtype != torch.float16:
                    results += [symm_mem.two_shot_all_reduce_(symmetric(x[0]), "sum", WORLD),
                                symm_mem.one_shot_all_reduce_copy(symmetric(x[0]), x[0], "sum", WORLD)] \
                        if numel % 8 == 0 or nbytes <= most else []
                for result in results:
                    check("all-reduce", result, expected, dtype, N)
                    assert all(torch.equal(each, result) for each in of_all(result))
                check("avg", symm_mem.all_reduce(x[0], "avg", WORLD), expected / N, dtype, N)
            elif operation == "reduce_scatter":
                whole = of_all(x).double()
                check("reduce-scatter", symm_mem.reduce_scatter(x, "sum", 0, WORLD), whole.sum(0)[ME:ME + 1], dtype, N)
                got = wait(symm_mem.low_contention_reduce_scatter(x, "avg", WORLD))
                check("reduce-scatter", got, whole.mean(0)[ME:ME + 1], dtype, N)
            elif operation == "all_gather":
                check("all-gather", symm_mem.all_gather(x[0], 0, WORLD), joined(x[0], 0))
                check("all-gather", wait(symm_mem.low_contention_all_gather(x[:1], WORLD)), joined(x[:1], 0))
            else:
                parts = [each[ME:ME + 1] for each in of_all(x)]
                check("all-to-all", symm_mem.all_to_all(x, WORLD), torch.cat(parts))
            assert (_kernels.taken[operation] > before) == (nbytes <= most), (operation, nbytes, dtype)
    x, graph = random(1000), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = symm_mem.all_reduce(x, "sum", WORLD)
    for _ in range(3):
        x.copy_(random(1000))
        graph.replay()
        check("a graph", result, of_all(x).double().sum(0), torch.float32, N)
    say(f"by kernels, around their limits and in a graph: {able}")


def exchanges():
    for turn, align in itertools.product(range(3), (1, 16)):
        experts, width = 4, 8
        splits = torch.randint(0, 9 if turn else 1, (N * experts,), device=DEVICE)
        table = of_all(splits).tolist()
        room = 9 * N * experts
        x = symmetric(random(room, width))
        inputs = of_all(x)
        out = symmetric(torch.full((room * N + align * experts, width), float("nan"), device=DEVICE))
        books = symmetric(torch.full((2, N * experts), -1, device=DEVICE))
        symm_mem.all_to_all_vdev_2d(x, out, symmetric(splits), books, WORLD, align)
        begin = 0
        for expert in range(experts):
            at = begin
            for sender in range(N):
                entry = ME * experts + expert
                first, rows = sum(table[sender][:entry]), table[sender][entry]
                assert books[:, expert * N + sender].tolist() == [rows, at], (turn, align)
                check("2d", out[at:at + rows], inputs[sender][first:first + rows])
                at += rows
            begin = max(-(-at // align) * align, begin + align)
        back = symmetric(torch.full((room, width), float("nan"), device=DEVICE))
        back_books = symmetric(torch.full((2, N * experts), -1, device=DEVICE))
        symm_mem.all_to_all_vdev_2d_offset(out, back, books, back_books, WORLD)
        check("2d back", back[:sum(table[ME])], x[:sum(table[ME])])
        assert back_books[0].tolist() == table[ME]
        out.fill_(float("nan"))
        books = symmetric(torch.full((2, N), -1, device=DEVICE))
        symm_mem.all_to_all_vdev(x, out, symmetric(splits[:N].contiguous()), books, WORLD)
        taken = [table[sender][ME] for sender in range(N)]
        assert books.tolist() == [taken, [sum(taken[:at]) for at in range(N)]]
        check("vdev", out[:sum(taken)], torch.cat([
            inputs[sender][sum(table[sender][:ME]):sum(table[sender][:ME + 1])]
            for sender in range(N)]))
    say("all_to_all_vdev, _2d, _2d_offset")


def blocks():
    """Ranks of one half send blocks to those of the other one; in a graph that is replayed with other tables."""
    half, count, nblocks = N // 2, 5, 16
    peer = -1 if ME >= 2 * half else ME + half if ME < half else ME - half
    pair = torch.tensor([peer, int(ME >= half)], dtype=torch.int32, device=DEVICE)
    caches = [symmetric(torch.zeros(nblocks, 3, 70, dtype=torch.bfloat16, device=DEVICE)) for _ in range(3)]
    tables = torch.zeros(2, count, dtype=torch.int64, device=DEVICE)
    symm_mem.kv_shuffle(caches, pair, *tables, WORLD)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        symm_mem.kv_shuffle(caches, pair, *tables, WORLD)
    for turn in range(6):
        tables.copy_(torch.stack([torch.randperm(nblocks, device=DEVICE)[:count] for _ in range(2)]))
        of_senders, before = of_all(tables), []
        for cache in caches:
            cache.copy_(random(*cache.shape))
            before.append(of_all(cache.clone()))
        dist.barrier()
        graph.replay() if turn % 2 else symm_mem.kv_shuffle(caches, pair, *tables, WORLD)
        for cache, everyone in zip(caches, before):
            expected = everyone[ME].clone()
            if half <= ME < 2 * half:
                expected[of_senders[peer][1]] = everyone[peer][of_senders[peer][0]]
            check("blocks", cache, expected)
    say("kv_shuffle, also in a graph")


def norms():
    """By one kernel, after an all-reduce, and in a graph; in 8 bits, too."""
    for dtype, rows in itertools.product(FLOATS, (3, 40, 2000)):
        if dtype == torch.float64:
            continue
        cols = 1024
        x, weight, residual = random(rows, cols, dtype=dtype), symmetric_draw(cols, dtype), symmetric_draw((rows, cols), dtype)
        y, z, narrow, scales = symm_mem.all_reduce_rms_norm(x, weight, 1e-5, residual=residual, group_size=128, group=WORLD)
        check(f"norm {dtype} {rows}: z", z, of_all(x).double().sum(0) + residual.double(), dtype, N)
        wanted = torch.nn.functional.rms_norm(z.double(), (cols,), weight.double(), 1e-5)
        check(f"norm {dtype} {rows}: y", y, wanted, dtype, 4)
        each = scales.repeat_interleave(128, -1)
        assert ((narrow.double() * each - wanted).abs() <= 0.07 * wanted.abs() + 0.01 * each).all(), (dtype, rows)
    x, graph = random(16, 1024, dtype=torch.bfloat16), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y, z = symm_mem.all_reduce_rms_norm(x, group=WORLD)
    for turn in range(50):
        x.copy_(random(16, 1024, dtype=torch.bfloat16))
        graph.replay()
        check(f"norm in a graph, turn {turn}: z", z, of_all(x).double().sum(0), torch.bfloat16, N)
        check(f"norm in a graph, turn {turn}: y", y, torch.nn.functional.rms_norm(z.double(), (1024,), None, 1e-6), torch.bfloat16, 4)
    say("all_reduce_rms_norm, also in a graph")


def symmetric_draw(sizes, dtype):
    """Returns the same numbers on all ranks."""
    numbers = random(*([sizes] if isinstance(sizes, int) else sizes), dtype=dtype)
    dist.broadcast(numbers, 0)
    return numbers


def gradients():
    x, w, v = (random(*sizes).double().requires_grad_() for sizes in ((8, 16), (16, 12), (12, 16)))
    seeds = of_all(random(8, 16).double())

    def layer(x, w, v):
        _, [hidden] = symm_mem.fused_all_gather_matmul(x, [w], 0, NAME)
        return symm_mem.fused_matmul_reduce_scatter(hidden.tanh(), v, "sum", 0, NAME)
    (layer(x, w, v) * seeds[ME]).sum().backward()
    xs, ws, vs = ([each.requires_grad_() for each in of_all(t)] for t in (x, w, v))
    total = sum(torch.tanh(torch.cat(xs) @ w) @ v for w, v in zip(ws, vs))
    (total * torch.cat(list(seeds))).sum().backward()
    for mine, theirs in ((x, xs), (w, ws), (v, vs)):
        check("gradient", mine.grad, theirs[ME].grad, torch.float64, 1e4)
    for op in (lambda x: symm_mem.all_gather(x, 1, NAME), lambda x: symm_mem.all_reduce(x, "avg", NAME),
               lambda x: symm_mem.reduce_scatter(x.repeat(N, 1), "sum", 0, NAME)):
        x.grad = None
        op(x).sum().backward()
        assert x.grad is not None and x.grad.isfinite().all()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    check("compiled", compiled(x, w, v), layer(x, w, v).detach(), torch.float64, 10)
    say("gradients, torch.compile")


def experts():
    """A layer against float64 on this rank's tokens: results and gradients; and in a graph, with new tokens and routes."""
    cols, top_k, tokens_max = 72, 3, 40
    same = torch.Generator(DEVICE).manual_seed(int(SEED))
    for dtype in FLOATS:
        layer = moe.MoE(2 * N, top_k, cols, tokens_max, rows_max=N * tokens_max * top_k, dtype=dtype, group=WORLD)
        matrices = (torch.randn(2 * N, cols, cols, generator=same, device=DEVICE) / 8).to(dtype)
        mine = matrices[2 * ME:2 * ME + 2].clone().requires_grad_()
        x, ids = random(tokens_max - ME, cols, dtype=dtype), torch.randint(-1, 2 * N, (tokens_max - ME, top_k), device=DEVICE)
        w, grad = torch.rand(ids.shape, device=DEVICE), random(tokens_max - ME, cols, dtype=dtype)
        x.requires_grad_(), w.requires_grad_()
        rows = layer.dispatch(x, ids, w)
        parts = [(part @ matrix).tanh() for part, matrix in zip(rows.split(), mine)]
        y = layer.combine(torch.cat(parts), rows)
        y.backward(grad)
        x64, w64, all64 = (each.detach().double().requires_grad_() for each in (x, w, matrices))
        y64 = sum(w64[:, k, None] * (x64[:, None] @ all64[ids[:, k].clamp(min=0)]).tanh()[:, 0] * (ids[:, k, None] >= 0)
                  for k in range(top_k))
        y64.backward(grad.double())
        dist.all_reduce(all64.grad)
        for name, got, expected in (("results", y, y64), ("gradient of tokens", x.grad, x64.grad),
                                    ("gradient of weights", w.grad, w64.grad),
                                    ("gradient of experts", mine.grad, all64.grad[2 * ME:2 * ME + 2])):
            check(f"experts {dtype}: {name}", got.to(dtype), expected, dtype, cols)
        data, factors, last = rows.data.detach().requires_grad_(), rows.weights.detach().requires_grad_(), rows.offsets[-1]
        y, _ = torch.ops.weft.moe_combine(data, factors, None, rows.experts, rows.sources, rows.offsets, layer._number)
        y.backward(grad)
        assert data.grad[:last].any() and not data.grad[last:].any() and not factors.grad[last:].any(), dtype
        layer.destroy()
    experts_in_a_graph()
    say("experts")


def experts_in_a_graph(turns=200):
    cols, top_k, tokens = 64, 2, 24
    layer = moe.MoE(N, top_k, cols, tokens, rows_max=N * tokens * top_k, dtype=torch.bfloat16, group=WORLD)
    x, w = random(tokens, cols, dtype=torch.bfloat16), torch.rand(tokens, top_k, device=DEVICE)
    ids = torch.randint(0, N, (tokens, top_k), device=DEVICE, dtype=torch.int32)

    def step():
        rows = layer.dispatch(x, ids, w)
        return layer.combine(rows.data * 2, rows)

    step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = step()
    for turn in range(turns):
        x.copy_(random(tokens, cols, dtype=torch.bfloat16))
        w.copy_(torch.rand_like(w))
        ids.copy_(torch.randint(0, N, ids.shape, device=DEVICE))
        y.fill_(float("nan"))
        graph.replay()
        check(f"experts in a graph, turn {turn}", y, 2 * x.double() * w.double().sum(1, keepdim=True), torch.bfloat16, 4)
    del graph
    layer.destroy()


class DeepEP:
    """Tokens of this rank, and two experts of each rank: expert e multiplies by e + 1."""

    def __init__(self, buffer, tokens, hidden=512, top_k=2):
        self.buffer, self.experts, self.most = buffer, 2 * N, 32
        self.x, self.w = random(tokens, hidden, dtype=torch.bfloat16), torch.rand(tokens, top_k, device=DEVICE)
        self.ids = torch.empty(tokens, top_k, dtype=torch.int64, device=DEVICE)
        self.draw()

    def draw(self):
        """New tokens, weights and experts, in place: a token's experts differ, and a fifth of the slots have none."""
        self.x.copy_(torch.randn_like(self.x))
        self.w.copy_(torch.rand_like(self.w))
        self.ids.copy_(torch.rand(len(self.ids), self.experts, device=DEVICE).argsort(1)[:, :self.ids.shape[1]])
        self.ids.masked_fill_(torch.rand_like(self.w) < 0.2, -1)

    def check(self, text, y, looser=1):
        check(text, y, self.x.double() * (self.w.double() * (self.ids + 1)).sum(1, keepdim=True), torch.bfloat16, 4 * looser)

    def normal(self, previous=None, **options):
        per_rank, _, per_expert, in_rank, event = self.buffer.get_dispatch_layout(
            self.ids, self.experts, previous_event=previous, async_finish=True)
        x, ids, w, counts, handle, event = self.buffer.dispatch(
            self.x, None, per_rank, None, in_rank, per_expert, self.ids, self.w, previous_event=event, async_finish=True,
            allocate_on_comm_stream=True, **options)
        event.current_stream_wait()
        factors = (w * (ids + 1 + 2 * ME)).masked_fill(ids < 0, 0).sum(1)
        results = (x.float() * factors[:, None]).bfloat16()
        y, back, event = self.buffer.combine(results, handle, topk_weights=w, async_finish=True)
        event.current_stream_wait()
        return y, back, counts, handle, ids

    def low_latency(self, **options):
        hooks = options.get("return_recv_hook", False)
        narrow = options.get("use_fp8", True)
        x, count, handle, event, hook = self.buffer.low_latency_dispatch(self.x, self.ids, self.most, self.experts, **options)
        hook and hook()
        if narrow:
            data, factors = x
            x = (data.float().view(2, self.most * N, -1, 128) * factors[..., None]).view(data.shape)
        results = (x.float() * (torch.arange(1, 3, device=DEVICE) + 2 * ME)[:, None, None]).bfloat16()
        y, event, hook = self.buffer.low_latency_combine(results, self.ids, self.w, handle, return_recv_hook=hooks)
        hook and hook()
        return y, count, handle


def deep_ep():
    """Both modes against float64 on this rank's tokens; events and hooks beside other work; both in a graph."""
    buffer = Buffer(WORLD, low_latency_mode=True, explicitly_destroy=True)
    for turn, tokens in enumerate((24 + ME % 8, 24, 0 if ME == N - 1 else 5)):
        layer = DeepEP(buffer, tokens)
        every = [None] * N
        dist.all_gather_object(every, layer.ids.tolist())
        mine = [[row for row in ids if any(e // 2 == ME for e in row if e >= 0)] for ids in every]
        exact = [sum(row.count(2 * ME + e) for part in mine for row in part) for e in range(2)]
        for again in range(10):
            torch.cuda._sleep(int(torch.randint(0, 1 << 20, ())))
            y, back, counts, handle, ids = layer.normal(Buffer.capture() if again % 2 else None)
            layer.check(f"DeepEP, normal mode, turn {turn}", y)
            check("weights", back, layer.w * (layer.ids >= 0))
            assert counts == exact and ids.shape[0] == sum(map(len, mine)), (counts, exact, ids.shape)
        got = buffer.dispatch(layer.x, handle=handle)[0]
        assert got.shape[0] == sum(map(len, mine))
        for options in {"use_fp8": False}, {"use_fp8": False, "return_recv_hook": True}, {"use_fp8": True}:
            for _ in range(10):
                torch.cuda._sleep(int(torch.randint(0, 1 << 20, ())))
                y, count, handle = layer.low_latency(**options)
                layer.check(f"DeepEP, {options}, turn {turn}", y, 16 if options["use_fp8"] else 1)
                assert count.tolist() == exact and (handle[1] & 0xFFFFFFFF).sum(1).tolist() == exact
    deep_ep_in_a_graph(buffer)
    buffer.destroy()
    say("DeepEP's Buffer")


def deep_ep_in_a_graph(buffer, turns=100):
    layer = DeepEP(buffer, 32)
    steps = [lambda: layer.low_latency(use_fp8=False)[0], lambda: layer.low_latency(return_recv_hook=True)[0],
             lambda: layer.normal(num_worst_tokens=32 * N)[0]]
    for at, step in enumerate(steps):
        step()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = step()
        for turn in range(turns):
            layer.draw()
            y.fill_(float("nan"))
            graph.replay()
            layer.check(f"DeepEP in graph {at}, turn {turn}", y, 16 if at == 1 else 1)
        torch.cuda.synchronize()
        dist.barrier()
        del graph, y


def groups():
    for ranks in ([0, 1], [N - 1, 0], list(range(1, N))):
        group = dist.new_group(sorted(set(ranks)))
        if ME in ranks and len(set(ranks)) > 1:
            x = torch.full((1024,), float(ME), device=DEVICE)
            check("group", symm_mem.all_reduce(x, "sum", group),
                  torch.full((1024,), float(sum(set(ranks))), device=DEVICE))
            t = symmetric(x)
            handle = symm_mem.rendezvous(t, group)
            handle.barrier()
            for at, rank in enumerate(sorted(set(ranks))):
                assert (handle.get_buffer(at, (1024,), torch.float32) == rank).all()
            handle.barrier()
    say("groups that overlap")


def async_tensor_parallelism():
    """Last, as it sets PyTorch's seed."""
    with torch_async.compiling():
        torch_async.tensor_parallel(WORLD, "cuda")
    say("Inductor's asynchronous tensor parallelism")


handles()
collectives()
products()
products_in_graphs()
beside_nccl()
scaled_products()
symmetric_tensors()
by_kernels()
exchanges()
blocks()
norms()
gradients()
experts()
deep_ep()
groups()
async_tensor_parallelism()
if ME == 0:
    print(f"all checks passed on {N} ranks, {torch.cuda.device_count()} GPUs, seed {int(SEED)}; weft has counted {symm_mem.counters()}")
job.end()
sys.exit(0)
