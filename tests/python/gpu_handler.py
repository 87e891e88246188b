#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weft.torch.hyperparallel on CUDA tensors:

    torchrun --standalone --nproc-per-node 4 tests/python/gpu_handler.py
    oshrun -n 2 python tests/python/gpu_handler.py

Data is new in every run (HANDLER_SEED repeats one), outputs are poisoned and lie between guard words,
ranks come at different times, and everything is checked on every rank. A line for each scene; the
first that goes wrong ends the run with status 1. Without a GPU the scenes run on CPU tensors, except
those of streams and graphs: a trial of this program.

    gpu_handler.py [--only TEXT]
"""
import argparse
import faulthandler
import os
import pathlib
import random
import sys
import time
import traceback

import torch

GPU = torch.cuda.is_available()
DEVICE = torch.device("cpu")
if GPU:
    DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", os.environ.get("WEFT_PE", "0"))) % torch.cuda.device_count())
    torch.cuda.set_device(DEVICE)
    torch.backends.cuda.matmul.allow_tf32 = False

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import weft  # noqa: E402
import torch_handler  # noqa: E402
from torch_handler import ALL_TYPES, SEED, bits, same, symm  # noqa: E402
from weft.torch.hyperparallel import acquire_symmetric_memory  # noqa: E402

ME, N = weft.my_pe(), weft.n_pes()
RIGHT, LEFT = (ME + 1) % N, (ME - 1) % N
SET, ADD = 0, 1
EQUAL, GREATER, LESS = 0, 1, 2
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
SCENES = []
PATIENCE = 180


def scene(function):
    SCENES.append(function)
    return function


def on_gpu(function):
    function.on_gpu = True
    return scene(function)


def data(key, shape, dtype):
    return torch_handler.data(key, shape, dtype, DEVICE)


def empty(shape, dtype):
    return symm.empty(shape, dtype, DEVICE)


def Guarded(shape, dtype):
    return torch_handler.Guarded(shape, dtype, DEVICE)


def wait():
    if GPU:
        torch.cuda.synchronize()


def late(key):
    """This rank's stream comes up to 2 ms later, its host up to 1 ms."""
    draw = random.Random(f"{SEED} {key} {ME}")
    if GPU and draw.random() < 0.7:
        torch.cuda._sleep(int(draw.random() * 4e6))
    if draw.random() < 0.3:
        time.sleep(draw.random() * 1e-3)


def meet():
    wait()
    weft.barrier()


def expect(right, *what):
    assert right, what


def refuses(pattern, call):
    try:
        call()
    except ValueError as error:
        assert pattern in str(error), (pattern, str(error))
    else:
        raise AssertionError(f"nobody complained: {pattern}")


def number(value, kind):
    return value if kind == "python" else torch.tensor([value], dtype=getattr(torch, kind), device=DEVICE)


KINDS = ["python", "int64", "int32"]


def streams(count):
    """Streams of its own for each turn, the default one first; on a CPU there is one."""
    return [torch.cuda.default_stream(DEVICE), *(torch.cuda.Stream(DEVICE) for _ in range(count - 1))] if GPU else [None]


class using:
    def __init__(self, stream):
        self.stream = stream
        self.context = torch.cuda.stream(stream) if stream is not None else None

    def __enter__(self):
        if self.context:
            self.context.__enter__()

    def __exit__(self, *error):
        if self.context:
            self.context.__exit__(*error)


# --- Put, get, signals ---------------------------------------------------------------------------

@scene
def hyperparallels_own_tests():
    target, signal = empty((16,), torch.int64).zero_(), empty(2, torch.int32).zero_()
    ones = torch.ones(16, dtype=torch.int64, device=DEVICE)
    symm.barrier()
    if ME == N - 1:
        symm.shmem_put(target, 0, ones, 0, 4, 0)
    symm.barrier()
    expect(target.tolist() == ([1] * 4 + [0] * 12 if ME == 0 else [0] * 16))
    symm.barrier()
    if ME == N - 1:
        symm.shmem_put_with_signal(target, 0, ones, 0, 16, signal, 0, 1, SET, 0)
    if ME == 0:
        symm.shmem_wait_for_signal(target, signal, 0, 1, EQUAL)
        expect(target.tolist() == [1] * 16 and signal.tolist() == [1, 0])
    for kind in KINDS:
        slots = empty((6,), torch.int32).zero_()
        symm.barrier()
        for slot, value in enumerate([1, 1, -1, -1, 2, 2]):
            symm.shmem_signal_op(slots, number(slot, kind), number(value, kind), slot % 2, RIGHT)
        for slot, (bound, cmp) in enumerate([(1, EQUAL)] * 2 + [(0, LESS)] * 2 + [(1, GREATER)] * 2):
            symm.shmem_wait_for_signal(None, slots, number(slot, kind), number(bound, kind), cmp)
        expect(slots.tolist() == [1, 1, -1, -1, 2, 2], kind)


@scene
def units_are_elements_of_all_types():
    draw = random.Random(SEED)
    for dtype in ALL_TYPES:
        for turn in range(8):
            room = draw.choice([30, 5000, 200_000])
            count, to, start = draw.randrange(room * 2 // 3), draw.randrange(room // 3), draw.randrange(room // 3)
            kind = KINDS[turn % 3]
            target, source = Guarded((room,), dtype), Guarded((room,), dtype)
            source.inside.copy_(data((turn, ME), (room,), dtype))
            symm.barrier()
            arguments = target.inside, number(to, kind), source.inside, number(start, kind), number(count, kind)
            if turn % 2:
                symm.shmem_put(*arguments, RIGHT)
            else:
                symm.shmem_get(*arguments, LEFT)
            symm.barrier()
            expected = torch.empty(room, dtype=dtype, device=DEVICE)
            bits(expected).fill_(0xee)
            bits(expected[to:to + count]).copy_(bits(data((turn, LEFT), (room,), dtype)[start:start + count]))
            expect(same(target.inside, expected) and target.intact() and source.intact(), dtype, turn)
            symm.barrier()


@scene
def data_before_signals_of_all_sizes():
    """Pieces of 0 bytes to 32 MiB, by multiprocessors and by copy engines; set and added signals."""
    for turn, nelems in enumerate([0, 1, 1000, 8191, 8192, 8193, 300_000, 2 << 20, 3 << 20, 8 << 20]):
        for kind in KINDS:
            target, signal = Guarded((nelems + 1,), torch.float32), empty(3, torch.int32).zero_()
            symm.barrier()
            late((turn, kind))
            source = data((turn, kind, ME), (nelems + 5,), torch.float32)
            symm.shmem_put_with_signal(target.inside, number(1, kind), source, number(5, kind), number(nelems, kind), signal,
                                       number(2, kind), number(-7 - turn, kind), turn % 2, RIGHT)
            symm.shmem_wait_for_signal(target.inside, signal, number(2, kind), number(-7 - turn, kind), EQUAL)
            got = target.inside[1:].clone()
            expect(same(got, data((turn, kind, LEFT), (nelems + 5,), torch.float32)[5:]), nelems, kind)
            expect(target.intact() and signal.tolist() == [0, 0, -7 - turn])
            symm.barrier()


@scene
def no_addition_is_lost():
    signal = empty(1, torch.int32).zero_()
    symm.barrier()
    for value in range(-300, 600):
        symm.shmem_signal_op(signal, 0, value, ADD, 0)
    symm.barrier()
    expect(ME != 0 or signal.item() == N * sum(range(-300, 600)))


@scene
def a_relay_of_data_and_signals():
    turns, width = 200, 500
    box, signal = empty((turns, width), torch.int64).zero_(), empty(turns, torch.int32).zero_()
    symm.barrier()
    for turn in range(turns):
        value = torch.full((width,), turn + 1, device=DEVICE)
        if ME != 0:
            symm.shmem_wait_for_signal(box, signal, turn, 1, EQUAL)
            value = box[turn] + 0
        symm.shmem_put_with_signal(box, turn * width, value, 0, width, signal, turn, 1, SET, RIGHT)
        if ME == 0:
            symm.shmem_wait_for_signal(box, signal, turn, 1, EQUAL)
    expect(torch.equal(box, torch.arange(1, turns + 1, device=DEVICE).view(-1, 1).expand(turns, width)))


@scene
def the_barrier_completes_puts_of_all_streams():
    box, work = empty((N, 4, 70_000), torch.float32), streams(4)
    for turn in range(20):
        kept = []
        for i in range(4):
            with using(work[i % len(work)]):
                late((turn, i))
                for peer in range(N):
                    kept.append(data((turn, i, ME, peer), (70_000,), torch.float32))
                    symm.shmem_put(box, (ME * 4 + i) * 70_000, kept[-1], 0, 70_000, peer)
        symm.barrier()
        for peer in range(N):
            for i in range(4):
                expect(same(box[peer, i], data((turn, i, peer, ME), (70_000,), torch.float32)), turn, peer, i)
        symm.barrier()
        wait()  # until then the other streams keep the allocator's memory


@on_gpu
def numbers_are_read_when_the_stream_gets_there():
    target, signal = empty(100, torch.int64).fill_(-1), empty(4, torch.int32).zero_()
    numbers = {name: torch.full((1,), -99, device=DEVICE, dtype=torch.int32 if name == "value" else torch.int64)
               for name in ("to", "start", "count", "index", "value")}
    symm.barrier()
    torch.cuda._sleep(50_000_000)
    for name, value in {"to": 10, "start": 20, "count": 30, "index": 3, "value": -5}.items():
        numbers[name].fill_(value)
    source = torch.arange(100, device=DEVICE) + 1000 * ME
    symm.shmem_put_with_signal(target, numbers["to"], source, numbers["start"], numbers["count"], signal, numbers["index"],
                               numbers["value"], SET, RIGHT)
    symm.shmem_wait_for_signal(target, signal, numbers["index"], numbers["value"], EQUAL)
    symm.barrier()
    expected = torch.full((100,), -1, device=DEVICE)
    expected[10:40] = torch.arange(20, 50, device=DEVICE) + 1000 * LEFT
    expect(torch.equal(target, expected) and signal.tolist() == [0, 0, 0, -5])


@on_gpu
def no_call_waits_for_the_gpu():
    """Calls enqueued after a second of sleep return long before its end. All-to-all is not tested, because its hosts
    synchronise."""
    m, k, cols = 64, 64, 32
    target, signal = empty(100, torch.float32), empty(4 * N, torch.int32).zero_()
    output, room = empty((N, 50), torch.float32), empty(10 * N, torch.float32)
    gathered, c = empty((m * N, k), torch.float32), torch.empty(m * N, cols, device=DEVICE)
    parts = empty((m * N, cols), torch.float32)
    a, b, x = (torch.ones(shape, device=DEVICE) for shape in ((m, k), (k, cols), (m * N, k)))
    one = torch.ones(1, dtype=torch.int64, device=DEVICE)
    for _ in range(2):  # the first call initialises streams and libraries
        meet()
        torch.cuda._sleep(2_000_000_000)
        begun = time.perf_counter()
        symm.shmem_put(target, one, a, 0, 1, RIGHT)
        symm.shmem_get(target, 5, output, one, one, RIGHT)
        symm.shmem_put_with_signal(target, 0, a, one, one, signal, 0, one, SET, RIGHT)
        symm.shmem_wait_for_signal(target, signal, 0, one, EQUAL)
        symm.shmem_signal_op(signal, 0, 0, SET, ME)
        symm.shmem_allgather(output, a.view(-1)[:50])
        symm.shmem_alltoall([a.view(-1)[:10]] * N, room, [10] * N)
        symm.fused_all_gather_matmul(a, b, c, gathered, signal)
        symm.fused_matmul_reduce_scatter(x, b, parts, signal)
        symm.barrier()
        spent, done = time.perf_counter() - begun, torch.cuda.current_stream().query()
        meet()
    expect(spent < 0.4 and not done, spent, done)


@scene
def what_is_refused():
    box, other, signal = empty(8, torch.float32), empty(8, torch.float64), empty(2, torch.int32)
    private = torch.zeros(8, device=DEVICE)
    for text, call, arguments in [
            (f"target_rank must be in range [0, {N - 1}], but get {N}", symm.shmem_put, (box, 0, private, 0, 1, N)),
            (f"target_rank must be in range [0, {N - 1}], but get -1", symm.shmem_get, (box, 0, box, 0, 1, -1)),
            ("float32, but src is of float64", symm.shmem_put, (box, 0, other, 0, 1, ME)),
            ("target is not symmetric", symm.shmem_put, (private, 0, box, 0, 1, ME)),
            ("src is not symmetric", symm.shmem_get, (box, 0, private, 0, 1, ME)),
            ("8 elements: there are no 4 from element 5 on", symm.shmem_put, (box, 5, private, 0, 4, ME)),
            ("not contiguous", symm.shmem_put, (box[::2], 0, private, 0, 1, ME)),
            ("signal is of float32", symm.shmem_signal_op, (box, 0, 1, SET, ME)),
            ("signal is not symmetric", symm.shmem_signal_op, (torch.zeros(1, dtype=torch.int32, device=DEVICE), 0, 1, SET, ME)),
            ("there are no 1 from element 2 on", symm.shmem_wait_for_signal, (None, signal, 2, 1, EQUAL)),
            ("signal_op 2", symm.shmem_signal_op, (signal, 0, 1, 2, ME)),
            ("compare_op 3", symm.shmem_wait_for_signal, (None, signal, 0, 1, 3)),
            ("32 bits", symm.shmem_signal_op, (signal, 0, 1 << 31, SET, ME))]:
        refuses(text, lambda: call(*arguments))
    if GPU:
        refuses("got src on cpu", lambda: symm.shmem_put(box, 0, torch.zeros(8), 0, 1, ME))
        refuses("1 elements of float32", lambda: symm.shmem_put(box, 0, private, 0, private[:1], ME))


# --- Collectives ---------------------------------------------------------------------------------

@scene
def all_gather():
    work = streams(3)
    for case, (dtype, nelems) in enumerate([*[(dtype, 77) for dtype in ALL_TYPES], (torch.float32, 1), (torch.bfloat16, 100_001),
                                            (torch.float32, 3 << 20), (torch.int8, 11 << 20)]):
        output = Guarded((N, nelems), dtype)
        for turn in range(6):
            with using(work[turn % len(work)]):
                late((case, turn))
                given = data((turn, ME), (nelems,), dtype)
                if turn % 3 == 2:
                    output.inside[ME].copy_(given)
                    symm.shmem_allgather(output.inside, output.inside[ME])
                else:
                    symm.shmem_allgather(output.inside, given)
                    given.zero_()
                for rank in range(N):
                    expect(same(output.inside[rank], data((turn, rank), (nelems,), dtype)), dtype, nelems, turn, rank)
                expect(output.intact(), dtype, nelems, turn)


@scene
def all_gathers_back_to_back():
    """A hundred, and nobody looks before the end."""
    output, kept = empty((N, 5000), torch.float32), []
    for turn in range(100):
        if turn % 9 == 0:
            late(turn)
        symm.shmem_allgather(output, data((turn, ME), (5000,), torch.float32))
        kept.append(output.clone())
    for turn, got in enumerate(kept):
        expect(same(got, torch.stack([data((turn, rank), (5000,), torch.float32) for rank in range(N)])), turn)


@scene
def all_to_all():
    for dtype in (torch.float32, torch.int8, torch.bfloat16, torch.complex128):
        largest = 60_000
        room = empty(largest * N + 16, dtype)
        for turn in range(8):
            draw = random.Random(f"{SEED} {turn}")
            counts = [[draw.choice([0, 0, 1, 17, draw.randrange(largest)]) for _ in range(N)] for _ in range(N)]
            sends = [data((turn, ME, d), (counts[ME][d],), dtype) for d in range(N)]
            numbers = [counts[s][ME] for s in range(N)]
            bits(room).fill_(0xee)
            receive = room[8:8 + sum(numbers)]
            late(turn)
            symm.shmem_alltoall(sends, receive, [list, tuple, torch.tensor, lambda c: torch.tensor(c, device=DEVICE)][turn % 4](numbers))
            for tensor in sends:
                tensor.zero_()
            expect(same(receive, torch.cat([data((turn, s, ME), (counts[s][ME],), dtype) for s in range(N)])), dtype, turn)
            expect((bits(room[:8]) == 0xee).all() and (bits(room[8 + len(receive):]) == 0xee).all(), dtype, turn)


@scene
def errors_of_one_rank_in_all_to_all_are_those_of_all():
    receive, sends = empty(4 * N, torch.float32), [torch.ones(4, device=DEVICE) for _ in range(N)]
    for wrong in ({"numbers": [4] * (N + 1)}, {"sends": sends + sends[:1]}, {"sends": [*sends[:-1], torch.ones(5, device=DEVICE)]},
                  {"numbers": [5] + [4] * (N - 1)}, {"sends": [sends[0].int(), *sends[1:]]}):
        given = {"sends": sends, "numbers": [4] * N, **(wrong if ME == N - 1 else {})}
        refuses("" if ME == N - 1 else f"rank {N - 1} got",
                lambda: symm.shmem_alltoall(given["sends"], receive, given["numbers"]))
        symm.shmem_alltoall(sends, receive, [4] * N)


# --- Products ------------------------------------------------------------------------------------

def close(found, exact, k, *what):
    tolerance = 16 * torch.finfo(found.dtype).eps * max(1, k) ** 0.5
    worst = ((found.double() - exact).abs() / (exact.abs() + k ** 0.5)).max().item()
    expect(worst < tolerance, worst, tolerance, *what)


class Gathered:
    def __init__(self, m, k, cols, dtype, signals=1):
        self.gather_out, self.c = Guarded((m * N, k), dtype), torch.empty(m * N, cols, dtype=dtype, device=DEVICE)
        self.signal = empty(N * signals, torch.int32).fill_(1)
        self.m, self.k, self.cols, self.dtype = m, k, cols, dtype

    def inputs(self, turn, rank):
        return data((turn, rank, "a"), (self.m, self.k), self.dtype), data((turn, rank, "b"), (self.k, self.cols), self.dtype)

    def check(self, turn, result):
        whole = torch.cat([self.inputs(turn, rank)[0] for rank in range(N)])
        expect(same(self.gather_out.inside, whole) and self.gather_out.intact(), turn, "gather_out")
        close(result[1], whole.double() @ self.inputs(turn, ME)[1].double(), self.k, turn)


SHAPES = [(7, 16, 3, 1), (256, 512, 384, 4), (1000, 1024, 512, 2), (2048, 4096, 1024, 4)]


@scene
def all_gather_matmul():
    work = streams(3)
    for dtype in FLOATS:
        for m, k, cols, signals in SHAPES if GPU else SHAPES[:2]:
            product = Gathered(m, k, cols, dtype, signals)
            for turn in range(6):
                with using(work[turn % len(work)]):
                    late((dtype, m, turn))
                    a, b = product.inputs(turn, ME)
                    product.c.fill_(float("nan"))
                    if turn == 3:
                        own = product.gather_out.inside[ME * m:(ME + 1) * m]
                        own.copy_(a)
                        a = own
                    block = [None, m, max(1, m // 2)][turn % 3] if signals > 1 else None
                    result = symm.fused_all_gather_matmul(a, b, product.c, product.gather_out.inside, product.signal, block)
                    if turn != 3:
                        a.fill_(float("nan"))
                    b.fill_(float("nan"))
                    product.check(turn, result)


class Scattered:
    def __init__(self, rows, k, cols, dtype):
        self.room, self.signal = Guarded((rows * N, cols), dtype), empty(N, torch.int32).fill_(1)
        self.rows, self.k, self.cols, self.dtype = rows, k, cols, dtype

    def inputs(self, turn, rank):
        return (data((turn, rank, "x1"), (self.rows * N, self.k), self.dtype),
                data((turn, rank, "x2"), (self.k, self.cols), self.dtype))

    def check(self, turn, output, reduce_op):
        expect(output.shape == (self.rows, self.cols) and output.dtype == self.dtype and self.room.intact())
        exact = torch.zeros(self.rows, self.cols, dtype=torch.float64, device=DEVICE)
        for rank in range(N):
            x1, x2 = self.inputs(turn, rank)
            exact += x1[ME * self.rows:(ME + 1) * self.rows].double() @ x2.double()
        close(output, exact / (N if reduce_op == "avg" else 1), self.k * N, turn, reduce_op)


@scene
def matmul_reduce_scatter():
    work = streams(3)
    for dtype in FLOATS:
        for rows, k, cols, _ in SHAPES if GPU else SHAPES[:2]:
            product = Scattered(rows, k, cols, dtype)
            for turn in range(6):
                with using(work[turn % len(work)]):
                    late((dtype, rows, turn))
                    x1, x2 = product.inputs(turn, ME)
                    reduce_op = ["sum", "avg"][turn % 2]
                    output = symm.fused_matmul_reduce_scatter(x1, x2, product.room.inside, product.signal, reduce_op)
                    x1.fill_(float("nan"))
                    x2.fill_(float("nan"))
                    product.check(turn, output, reduce_op)


@scene
def products_back_to_back():
    """Alternates both products with one signal, and checks at the end; the same data gives the same bits."""
    gathered, scattered = Gathered(128, 256, 192, torch.bfloat16, 4), Scattered(128, 256, 192, torch.bfloat16)
    kept = []
    for turn in range(30):
        if turn % 7 == 0:
            late(turn)
        a, b = gathered.inputs(turn % 3, ME)
        x1, x2 = scattered.inputs(turn % 3, ME)
        whole, c = symm.fused_all_gather_matmul(a, b, gathered.c, gathered.gather_out.inside, gathered.signal)
        kept.append((whole.clone(), c.clone(), symm.fused_matmul_reduce_scatter(x1, x2, scattered.room.inside, gathered.signal)))
    for turn, (whole, c, output) in enumerate(kept):
        expect(same(whole, torch.cat([gathered.inputs(turn % 3, rank)[0] for rank in range(N)])), turn)
        close(c, whole.double() @ gathered.inputs(turn % 3, ME)[1].double(), 256, turn)
        scattered.check(turn % 3, output, "sum")
        expect(same(c, kept[turn % 3][1]) and same(output, kept[turn % 3][2]), turn)


@scene
def wrong_matrices():
    m, k, cols = 4, 5, 6
    gathered, signal = empty((m * N, k), torch.float32), empty(N, torch.int32)
    a, b, c = (torch.ones(shape, device=DEVICE) for shape in ((m, k), (k, cols), (m * N, cols)))
    call = symm.fused_all_gather_matmul
    refuses("gather_out shape mismatch", lambda: call(a[:3].contiguous(), b, c, gathered, signal))
    refuses("b shape mismatch", lambda: call(a, b.T, c, gathered, signal))
    refuses("c shape mismatch", lambda: call(a, b, c[1:], gathered, signal))
    refuses("got a of torch.float64", lambda: call(a.double(), b, c, gathered, signal))
    refuses(f"got signal with {N} elements of torch.int32", lambda: call(a, b, c, gathered, signal, 1))
    x = torch.ones(m * N, k, device=DEVICE)
    parts = empty((m * N, cols), torch.float32)
    call = symm.fused_matmul_reduce_scatter
    refuses("'sum' or 'avg'", lambda: call(x, b, parts, signal, "max"))
    refuses("x2 shape mismatch", lambda: call(x, b.T, parts, signal))
    if N > 1:
        refuses(f"expected a multiple of {N}", lambda: call(x[1:], b, parts, signal))


# --- Graphs --------------------------------------------------------------------------------------

def captured(work):
    """A graph of it; it has run once before, as libraries want."""
    side = torch.cuda.Stream(DEVICE)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)
    meet()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = work()
    meet()
    return graph, kept


@on_gpu
def graphs_of_puts_with_numbers_of_the_gpu():
    target, source = Guarded((5000,), torch.float32), torch.empty(5000, device=DEVICE)
    signal = empty(5, torch.int32).zero_()
    to, start, count, index = (torch.zeros(1, dtype=torch.int64, device=DEVICE) for _ in range(4))
    value = torch.ones(1, dtype=torch.int32, device=DEVICE)

    def work():
        symm.shmem_put_with_signal(target.inside, to, source, start, count, signal, index, value, SET, RIGHT)
        symm.shmem_wait_for_signal(target.inside, signal, index, value, EQUAL)
        symm.shmem_signal_op(signal, index, 0, SET, ME)
        symm.shmem_get(source, start, source_there, start, count, LEFT)

    source_there = empty(5000, torch.float32)
    symm.barrier()
    graph, _ = captured(work)
    draw = random.Random(SEED)
    for turn in range(60):
        numbers = draw.randrange(2000), draw.randrange(2000), draw.randrange(3000), draw.randrange(5), turn * 7 - 201
        for tensor, n in zip((to, start, count, index, value), numbers):
            tensor.fill_(n)
        source.copy_(data((turn, ME), (5000,), torch.float32))
        source_there.copy_(data((turn, ME, "there"), (5000,), torch.float32))
        target.poison()
        symm.barrier()
        if draw.random() < 0.2:
            work()
        else:
            graph.replay()
        symm.barrier()
        t, s, n = numbers[:3]
        expected = torch.empty(5000, device=DEVICE)
        bits(expected).fill_(0xee)
        expected[t:t + n] = data((turn, LEFT), (5000,), torch.float32)[s:s + n]
        expect(same(target.inside, expected) and target.intact() and not signal.any(), turn)
        expect(same(source[s:s + n], data((turn, LEFT, "there"), (5000,), torch.float32)[s:s + n]), turn)
        symm.barrier()


@on_gpu
def graphs_of_collectives():
    for nelems in (100, 40_000, 3 << 20):
        output, given = Guarded((N, nelems), torch.float32), torch.empty(nelems, device=DEVICE)
        graph, _ = captured(lambda: symm.shmem_allgather(output.inside, given))
        for turn in range(25):
            given.copy_(data((turn, ME), (nelems,), torch.float32))
            output.poison()
            late(turn)
            graph.replay() if turn % 5 else symm.shmem_allgather(output.inside, given)
            expect(same(output.inside, torch.stack([data((turn, rank), (nelems,), torch.float32) for rank in range(N)])), turn)
            expect(output.intact())
    counts = [[100 * ((s + d) % 3) for d in range(N)] for s in range(N)]
    numbers = [counts[s][ME] for s in range(N)]
    room, sends = empty(300 * N, torch.int32), [torch.empty(n, dtype=torch.int32, device=DEVICE) for n in counts[ME]]
    graph, _ = captured(lambda: symm.shmem_alltoall(sends, room[:sum(numbers)], numbers))
    for turn in range(25):
        for d in range(N):
            sends[d].copy_(data((turn, ME, d), (counts[ME][d],), torch.int32))
        room.fill_(-1)
        late(turn)
        graph.replay()
        expect(same(room[:sum(numbers)], torch.cat([data((turn, s, ME), (counts[s][ME],), torch.int32) for s in range(N)])), turn)
    graph, _ = captured(lambda: (symm.barrier(), symm.shmem_put(room, ME, sends[0].new_full((1,), ME), 0, 1, RIGHT), symm.barrier()))
    for _ in range(10):
        graph.replay()
    expect(room[LEFT].item() == LEFT)


@on_gpu
def graphs_of_products():
    for m, k, cols, signals in [(64, 128, 96, 1), (512, 512, 256, 4)]:
        gathered, scattered = Gathered(m, k, cols, torch.float32, signals), Scattered(m, k, cols, torch.float32)
        a, b = gathered.inputs(0, ME)
        x1, x2 = scattered.inputs(0, ME)

        def work():
            _, c = symm.fused_all_gather_matmul(a, b, gathered.c, gathered.gather_out.inside, gathered.signal)
            output = symm.fused_matmul_reduce_scatter(x1, x2, scattered.room.inside, scattered.signal, "avg")
            return c, output

        graph, (c, output) = captured(work)
        for turn in range(30):
            for tensor, values in zip((a, b, x1, x2), (*gathered.inputs(turn, ME), *scattered.inputs(turn, ME))):
                tensor.copy_(values)
            c.fill_(float("nan"))
            output.fill_(float("nan"))
            late(turn)
            if turn % 6 == 5:
                gathered.check(turn, (None, work()[0]))
                continue
            for _ in range(1 + turn % 3):
                graph.replay()
            gathered.check(turn, (None, c))
            scattered.check(turn, output, "avg")


# --- Handles, memory -----------------------------------------------------------------------------

@scene
def rendezvous():
    box = empty((3, 50), torch.float32)
    box.copy_(data(ME, (3, 50), torch.float32))
    handle = symm.rendezvous(box, None)
    expect((handle.rank, handle.world_size, handle.device) == (ME, N, DEVICE), handle.rank, handle.world_size, handle.device)
    expect(handle.signal_pad_size == symm.get_signal_pad_size())
    handle.barrier()
    for peer in range(N):
        expect(same(handle.get_buffer(peer, (3, 50), torch.float32), data(peer, (3, 50), torch.float32)), peer)
        expect(handle.get_buffer(peer, (3, 50), torch.float32).device == DEVICE)
    handle.barrier(1)
    for turn in range(20):
        handle.get_buffer(RIGHT, (3, 50), torch.float32).fill_(100 * turn + ME)
        handle.put_signal(RIGHT, 2)
        handle.wait_signal(LEFT, 2)
        expect(bool((box == 100 * turn + LEFT).all()), turn)
        handle.barrier()
    symm.barrier()
    expect(not handle.get_signal_pad(ME).view(torch.int32).any())
    symm.barrier()


@scene
def memory_in_use_is_nobody_elses():
    """Tensors that are dropped while streams still work on them, of this rank and of others."""
    draw = random.Random(f"{SEED} memory")
    outputs = []
    for turn in range(60):
        nelems = draw.choice([1000, 50_000, 500_000])
        box = empty((N, nelems), torch.float32)
        late(turn)
        given = data((turn, ME), (nelems,), torch.float32)
        symm.shmem_allgather(box, given)
        outputs.append((turn, nelems, box.clone()))
        del box
        if len(outputs) == 10:
            for then, size, got in outputs:
                expect(same(got, torch.stack([data((then, rank), (size,), torch.float32) for rank in range(N)])), then)
            outputs.clear()


@scene
def memory_comes_back():
    seen = set()
    for turn in range(100):
        box = empty(40 << 20, torch.uint8)
        box[0] = turn
        seen.add(box.data_ptr())
        del box
        if turn % 3 == 0:
            wait()
    expect(len(seen) < 40, len(seen))


@scene
def owners():
    owner = acquire_symmetric_memory()
    plain, aligned = owner.empty((100,), torch.float32, DEVICE), owner.aligned_empty((100,), torch.float32, 4096, DEVICE)
    expect(aligned.data_ptr() % 4096 == 0)
    symm.shmem_put(aligned, 0, data(ME, (100,), torch.float32), 0, 100, RIGHT)
    owner.barrier()
    expect(same(aligned, data(LEFT, (100,), torch.float32)))
    owner.free(plain)
    expect(plain.untyped_storage().nbytes() == 0)
    refuses("this owner has not made", lambda: owner.free(torch.zeros(1, device=DEVICE)))
    owner.close()
    expect(owner.closed and aligned.numel() == 0)


@on_gpu
def tensors_of_cpus_beside():
    here, there = symm.empty(100, torch.float32, "cpu"), empty(100, torch.float32)
    for turn in range(10):
        symm.shmem_put(here, 0, torch.full((100,), 10.0 * turn + ME), 0, 100, RIGHT)
        symm.shmem_put(there, 0, torch.full((100,), -10.0 * turn - ME, device=DEVICE), 0, 100, RIGHT)
        symm.barrier()
        expect(here.tolist() == [10.0 * turn + LEFT] * 100 and there.tolist() == [-10.0 * turn - LEFT] * 100, turn)
        symm.barrier()
    output = symm.empty((N, 4), torch.float32, "cpu")
    symm.shmem_allgather(output, torch.full((4,), float(ME)))
    expect(output[:, 0].tolist() == list(range(N)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="scenes with this in their names")
    options = parser.parse_args()
    if ME == 0:
        print(f"# {N} ranks on {torch.cuda.get_device_name() if GPU else 'CPUs'}, torch {torch.__version__}", flush=True)
    for function in SCENES:
        if options.only not in function.__name__ or (hasattr(function, "on_gpu") and not GPU):
            continue
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        begun = time.perf_counter()
        try:
            function()
            meet()
        except Exception:
            print(f"not ok - {function.__name__}, rank {ME}\n{traceback.format_exc()}", flush=True)
            os._exit(1)
        if ME == 0:
            print(f"ok - {function.__name__} ({time.perf_counter() - begun:.1f} s)", flush=True)
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    meet()
    faulthandler.cancel_dump_traceback_later()
    symm.close()
    if ME == 0:
        print("# all right", flush=True)


main()
