# SPDX-License-Identifier: BSD-3-Clause
"""Calls keep nothing: neither those that succeed nor those that fail at any of their arguments."""
import array
import gc
import pathlib
import sys

import pytest
import weft


class Dlpack:
    """A library's array that fails sometimes."""

    def __init__(self, buffer, fails=False):
        self.buffer, self.fails = buffer, fails

    def __dlpack__(self, *, stream=None, max_version=None):
        if self.fails:
            raise ValueError("not now")
        return self.buffer.__dlpack__(stream=stream, max_version=max_version)

    def __dlpack_device__(self):
        return self.buffer.__dlpack_device__()


def memory_kib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4


def shapes_of_calls(me):
    buffer, word, team = weft.zeros(4), weft.zeros(1, "uint64"), weft.world
    f, d = array.array("f", [1] * 4), array.array("d", [1] * 4)
    matrix = memoryview(bytearray(64)).cast("f", (4, 4))
    ctx, lock, words, values = weft.Ctx(team), weft.Lock(), weft.zeros(2, "int32"), [0, 0]
    return [buffer, word, f, d, matrix, team, ctx, lock, words, values], [
        lambda: weft.put(buffer, f, me, ctx=ctx), lambda: weft.put(buffer, f, me, ctx=f), lambda: weft.Ctx(team, private=True),
        lambda: weft.Ctx(f), lambda: weft.put_nbi(buffer, f, me), lambda: weft.put_signal_nbi(buffer, f, word, f, me),
        lambda: weft.iput(buffer, f, me, 2), lambda: weft.iget(f, buffer, me, 9, 9, 9), lambda: ctx.team, lambda: repr(ctx),
        lambda: weft.atomic_fetch_add(words, 0, me), lambda: weft.atomic_set(words, f, me), lambda: weft.atomic_inc(f, me),
        lambda: weft.atomic_fetch_nbi(array.array("i", [0]), words, me), lambda: weft.atomic_fetch_nbi(f, words, me),
        lambda: weft.test(words, 0), lambda: weft.test_some(words, values), lambda: weft.test_all(words, values, status=f),
        lambda: weft.wait_until_any(words, values, status=values), lambda: weft.test_any(words, [0, f]),
        lambda: lock.acquire(False) and lock.release(), lambda: weft.set_lock(f), lambda: team.translate_pe(me, team),
        lambda: weft.inscan(buffer), lambda: weft.exscan(f, buffer), lambda: weft.all_reduce(words, op="or"),
        lambda: weft.collect(array.array("f", [0] * 4 * weft.n_pes()), f), lambda: weft.collect(f, d),
        lambda: weft.ptr(buffer, me), lambda: weft.addr_accessible(f, me), lambda: [made.destroy() for made in team.split_2d(2)],
        lambda: weft.put(buffer, f, me), lambda: weft.put(buffer, d, me), lambda: weft.put(buffer, f, 99),
        lambda: weft.put(f, f, me), lambda: weft.put(buffer, f, me, stream=f), lambda: weft.get(f, buffer, me),
        lambda: weft.put_signal(buffer, f, word, 1, me), lambda: weft.put_signal(buffer, f, buffer, 1, me),
        lambda: weft.put_signal(buffer, f, word, f, me), lambda: weft.signal(word, 1, me, op=f),
        lambda: weft.wait(word, 0, "!="), lambda: buffer.view(2, f), lambda: buffer.view(2), lambda: buffer.peer(me),
        lambda: memoryview(buffer).release(), lambda: buffer.__dlpack__(), lambda: buffer.__dlpack__(copy=True),
        lambda: weft.all_reduce(f, team=team), lambda: weft.all_reduce(f, d, team=team),
        lambda: weft.all_reduce(f, team=f), lambda: weft.all_gather(f, f[:1] if weft.n_pes() == 4 else d),
        lambda: weft.matmul_all_reduce(matrix, matrix, f), lambda: weft.all_gather_matmul([matrix], matrix, (matrix, f)),
        lambda: weft.put(buffer, Dlpack(buffer), me), lambda: weft.put(buffer, Dlpack(buffer, True), me),
        lambda: weft.all_gather_scaled_matmul(matrix, f, f, 1, 1), lambda: weft.team([me, me]),
        lambda: weft.Block("host", 64).share([me]).view(0), lambda: weft.Block("host", 64).share("x"),
        lambda: repr(buffer), lambda: (buffer.shape, buffer.dtype, team.pes), lambda: weft.empty(f), lambda: weft.empty("x")]


def call_all(calls):
    for call in calls:
        try:
            call()
        except (ValueError, TypeError, BufferError, NotImplementedError):
            pass


def test_references(me):
    objects, calls = shapes_of_calls(me)
    call_all(calls)
    before = [sys.getrefcount(thing) for thing in objects]
    for _ in range(20):
        call_all(calls)
    gc.collect()
    assert [sys.getrefcount(thing) for thing in objects] == before


def test_memory(me, far):
    if "asan" in pathlib.Path("/proc/self/maps").read_text():
        pytest.skip("the sanitizer keeps freed memory")
    _, calls = shapes_of_calls(me)
    for _ in range(300 if far else 100):  # until the engine has touched every page of its rings
        call_all(calls)
    before = memory_kib()
    for _ in range(700):
        call_all(calls)
    assert memory_kib() - before < 200
