#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the cost of a call from Python, beside the same call through ctypes and comparable calls of numpy and torch,
in one run.

    PYTHONPATH=build/python build/bin/oshrun -n 2 python3 bench/python.py

Prints a Markdown table of microseconds per call: the median of rounds. Calls of PE 0 alone access PE 0's own memory, so
that the copy itself takes next to nothing; collectives are made by all PEs."""
import ctypes
import statistics
import time

import weft

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
    import torch.distributed
except ImportError:
    torch = None

ROUNDS, CALLS = 15, 2000
WORLD = ctypes.c_void_p(1)  # SHMEM_TEAM_WORLD


def measure(call, calls=CALLS):
    """Returns the median microseconds of a call; all PEs take part."""
    rounds = []
    for _ in range(ROUNDS):
        weft.barrier()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        rounds.append((time.perf_counter() - begin) / calls * 1e6)
    return statistics.median(rounds)


def c_library():
    library = ctypes.CDLL(weft.get_library())
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.shmem_putmem.argtypes = library.shmem_getmem.argtypes = [pointer, pointer, size, number]
    library.shmem_putmem.restype = library.shmem_getmem.restype = None
    library.shmem_signal_set.argtypes = [pointer, ctypes.c_uint64, number]
    library.shmem_signal_set.restype = None
    library.shmem_int64_atomic_add.argtypes = library.shmem_int64_atomic_fetch_add.argtypes = [
        pointer, ctypes.c_int64, number]
    library.shmem_int64_atomic_add.restype = None
    library.shmem_int64_atomic_fetch_add.restype = ctypes.c_int64
    library.shmem_int64_atomic_compare_swap.argtypes = [pointer, ctypes.c_int64, ctypes.c_int64, number]
    library.shmem_int64_atomic_compare_swap.restype = ctypes.c_int64
    library.shmem_int64_test.argtypes = [pointer, number, ctypes.c_int64]
    library.shmem_int64_test_all.argtypes = [pointer, size, pointer, number, ctypes.c_int64]
    library.shmem_float_iput.argtypes = [pointer, pointer, ctypes.c_ssize_t, ctypes.c_ssize_t, size, number]
    library.shmem_float_iput.restype = None
    library.shmem_float_p.argtypes, library.shmem_float_p.restype = [pointer, ctypes.c_float, number], None
    library.shmem_float_g.argtypes, library.shmem_float_g.restype = [pointer, number], ctypes.c_float
    library.shmem_float_alltoalls.argtypes = [pointer, pointer, pointer, ctypes.c_ssize_t, ctypes.c_ssize_t, size]
    library.shmem_set_lock.argtypes = library.shmem_clear_lock.argtypes = [pointer]
    library.shmem_set_lock.restype = library.shmem_clear_lock.restype = None
    library.shmem_float_sum_inscan.argtypes = library.shmem_collectmem.argtypes = [pointer, pointer, pointer, size]
    library.weft_all_reduce.argtypes = [pointer, pointer, pointer, size, number, number, pointer]
    return library


def alone(c, me):
    """Yields (row, library, call) for calls that a PE makes by itself."""
    dest, mine, word = weft.zeros(2), weft.zeros(2), weft.zeros(1, "uint64")
    to, source, signal = dest.ptr, mine.ptr, word.ptr
    view = memoryview(bytearray(8)).cast("f")
    yield "a call of nothing", "Weft", weft.my_pe
    yield "a call of nothing", "ctypes", c.shmem_my_pe
    yield "put 8 B", "Weft", lambda: weft.put(dest, mine, me)
    yield "put 8 B", "ctypes", lambda: c.shmem_putmem(to, source, 8, me)
    yield "put 8 B of a memoryview", "Weft", lambda: weft.put(dest, view, me)
    yield "get 8 B", "Weft", lambda: weft.get(view, dest, me)
    yield "get 8 B", "ctypes", lambda: c.shmem_getmem(source, to, 8, me)
    yield "p", "Weft", lambda: weft.p(dest, 0.5, me)
    yield "p", "ctypes", lambda: c.shmem_float_p(to, 0.5, me)
    yield "g", "Weft", lambda: weft.g(dest, me)
    yield "g", "ctypes", lambda: c.shmem_float_g(to, me)
    yield "put_nbi 8 B", "Weft", lambda: weft.put_nbi(dest, mine, me)
    ctx = weft.Ctx()
    yield "put 8 B by a context", "Weft", lambda: weft.put(dest, mine, me, ctx=ctx)
    yield "iput of 2 elements", "Weft", lambda: weft.iput(dest, mine, me)
    yield "iput of 2 elements", "ctypes", lambda: c.shmem_float_iput(to, source, 1, 1, 2, me)
    yield "signal", "Weft", lambda: weft.signal(word, 1, me)
    yield "signal", "ctypes", lambda: c.shmem_signal_set(signal, 1, me)
    yield "wait that is met", "Weft", lambda: weft.wait(word, 1)
    yield from elements(mine)
    if numpy:
        array, window = numpy.ones(2, "float32"), numpy.asarray(dest)
        yield "put 8 B of a numpy array", "Weft", lambda: weft.put(dest, array, me)
        yield "put 8 B of a numpy array", "ctypes", lambda: c.shmem_putmem(to, array.ctypes.data, 8, me)
        yield "put 8 B of a numpy array", "numpy: window[:] = array", lambda: window.__setitem__(slice(None), array)
    if torch:
        tensor, there = torch.ones(2), torch.from_dlpack(dest)
        yield "put 8 B of a torch tensor", "Weft", lambda: weft.put(dest, tensor, me)
        yield "put 8 B of a torch tensor", "ctypes", lambda: c.shmem_putmem(to, tensor.data_ptr(), 8, me)
        yield "put 8 B of a torch tensor", "torch: window.copy_(tensor)", lambda: there.copy_(tensor)


def elements(buffer):
    """A Buffer as an array, beside ctypes' array and numpy's over the same memory."""
    kinds = {"Weft": buffer, "ctypes": (ctypes.c_float * 2).from_buffer(buffer)}
    if numpy:
        kinds["numpy"] = buffer.numpy()
    for way, array in kinds.items():
        yield "an element, b[1]", way, lambda array=array: array[1]
        yield "an element, b[1] = 0.5", way, lambda array=array: array.__setitem__(1, 0.5)
        if way != "ctypes":
            yield "a slice, b[0:2]", way, lambda array=array: array[0:2]
            yield "two elements, b[:] = 0.5", way, lambda array=array: array.__setitem__(slice(None), 0.5)
        yield "two elements to a list", way, array.tolist if way != "ctypes" else lambda array=array: list(array)


def words(c, me):
    """Atomics, waits and tests, locks."""
    counts, lock = weft.zeros(8, "int64"), weft.Lock()
    at, lock_at = counts.ptr, lock.word.ptr
    yield "atomic_add", "Weft", lambda: weft.atomic_add(counts, 0, me)
    yield "atomic_add", "ctypes", lambda: c.shmem_int64_atomic_add(at, 0, me)
    yield "atomic_fetch_add", "Weft", lambda: weft.atomic_fetch_add(counts, 0, me)
    yield "atomic_fetch_add", "ctypes", lambda: c.shmem_int64_atomic_fetch_add(at, 0, me)
    yield "atomic_compare_swap", "Weft", lambda: weft.atomic_compare_swap(counts, 0, 0, me)
    yield "atomic_compare_swap", "ctypes", lambda: c.shmem_int64_atomic_compare_swap(at, 0, 0, me)
    yield "test", "Weft", lambda: weft.test(counts, 0)
    yield "test", "ctypes", lambda: c.shmem_int64_test(at, 1, 0)
    yield "test_all of 8 words", "Weft", lambda: weft.test_all(counts, 0)
    yield "test_all of 8 words", "ctypes", lambda: c.shmem_int64_test_all(at, 8, None, 1, 0)
    yield "wait_until_any that is met", "Weft", lambda: weft.wait_until_any(counts, 0)
    yield "set_lock and clear_lock", "Weft", lambda: (weft.set_lock(lock.word), weft.clear_lock(lock.word))
    yield "set_lock and clear_lock", "ctypes", lambda: (c.shmem_set_lock(lock_at), c.shmem_clear_lock(lock_at))


def together(c):
    """Calls of all PEs."""
    mine = weft.zeros(2)
    at = mine.ptr
    yield "barrier", "Weft", weft.barrier
    yield "barrier", "ctypes", c.shmem_barrier_all
    yield "all_reduce 8 B", "Weft", lambda: weft.all_reduce(mine)
    yield "all_reduce 8 B", "ctypes", lambda: c.weft_all_reduce(WORLD, at, at, 2, 1, 1, -1)
    scanned, gathered = weft.zeros(2), weft.zeros(2 * weft.n_pes())
    to, all_of_it = scanned.ptr, gathered.ptr
    yield "inscan 8 B", "Weft", lambda: weft.inscan(scanned, mine)
    yield "inscan 8 B", "ctypes", lambda: c.shmem_float_sum_inscan(WORLD, to, at, 2)
    yield "collect 8 B", "Weft", lambda: weft.collect(gathered, mine)
    yield "collect 8 B", "ctypes", lambda: c.shmem_collectmem(WORLD, all_of_it, at, 8)
    received, sent = weft.zeros(2 * weft.n_pes()), weft.zeros(2 * weft.n_pes())
    into, out_of = received.ptr, sent.ptr
    yield "all_to_alls 8 B", "Weft", lambda: weft.all_to_alls(received, sent)
    yield "all_to_alls 8 B", "ctypes", lambda: c.shmem_float_alltoalls(WORLD, into, out_of, 1, 1, 2)
    if torch:
        tensor = torch.ones(2)
        yield "all_reduce 8 B of a torch tensor", "Weft", lambda: weft.all_reduce(tensor)
        if weft.n_pes() > 1:
            yield "all_reduce 8 B of a torch tensor", "torch.distributed, gloo", \
                lambda: torch.distributed.all_reduce(tensor)


def start_torch():
    """Makes torch's own process group, with a store on PE 0."""
    port = weft.zeros(1, "int64")
    if weft.my_pe() == 0:
        store = torch.distributed.TCPStore("127.0.0.1", 0, weft.n_pes(), True, wait_for_workers=False)
        memoryview(port)[0] = store.port
    weft.broadcast(port)
    if weft.my_pe() != 0:
        store = torch.distributed.TCPStore("127.0.0.1", memoryview(port)[0], weft.n_pes(), False)
    torch.distributed.init_process_group("gloo", store=store, rank=weft.my_pe(), world_size=weft.n_pes())


def main():
    weft.init()
    me, c = weft.my_pe(), c_library()
    if torch and weft.n_pes() > 1:
        torch.set_num_threads(1)
        start_torch()
    print(f"| call, {weft.n_pes()} PEs | by | us |\n|---|---|---:|") if me == 0 else None
    for row, way, call in [*alone(c, me), *words(c, me)]:
        took = measure(call) if me == 0 else [weft.barrier() for _ in range(ROUNDS)]
        print(f"| {row} | {way} | {took:.2f} |", flush=True) if me == 0 else None
    for row, way, call in together(c):
        took = measure(call, CALLS // 4)
        print(f"| {row} | {way} | {took:.2f} |", flush=True) if me == 0 else None
    if torch and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    weft.finalize()


main()
