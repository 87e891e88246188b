# SPDX-License-Identifier: BSD-3-Clause
"""Contexts of all PEs and of teams; locks; teams as grids; queries of accessible memory."""
import array
import gc
import os
import threading

import pytest
import weft


def test_calls_by_a_context(me, n):
    right, left = (me + 1) % n, (me - 1) % n
    four, word, data = weft.zeros(4), weft.zeros(1, "uint64"), array.array("f", [me] * 4)
    with weft.Ctx() as ctx:
        assert ctx.team is weft.world and ctx.handle
        weft.put(four, data, right, ctx=ctx)
        ctx.fence()
        weft.signal(word, 1, right, ctx=ctx)
        weft.wait(word, 1)
        assert memoryview(four).tolist() == [left] * 4
        weft.barrier()
        weft.put_nbi(four, data, right, ctx=ctx)
        weft.put_signal_nbi(four, data, word, 1, right, op="add", ctx=ctx)
        weft.iput(four, data, right, ctx=ctx)
        weft.quiet(ctx=ctx)
        weft.fence(ctx=ctx)
        assert weft.atomic_fetch_inc(word, me, ctx=ctx) >= 1
        weft.get(data, four, me, ctx=ctx)
    weft.barrier()
    assert memoryview(word)[0] == 3


def test_sessions(me):
    """A session promises; it completes and changes nothing."""
    word = weft.zeros(1, "int64")
    with weft.Ctx() as ctx:
        for which in (None, ctx):
            weft.session_start(ctx=which, batch=True, total_ops=3)
            weft.p(word, 7, me, ctx=which)
            assert weft.g(word, me, ctx=which) == 7
            weft.session_stop(ctx=which)
            weft.session_start(ctx=which)
            weft.session_stop(ctx=which)
        with pytest.raises(ValueError, match="session_start: argument total_ops is -1"):
            weft.session_start(ctx=ctx, total_ops=-1)
    for call in (weft.session_start, weft.session_stop):
        with pytest.raises(ValueError, match="this context was destroyed"):
            call(ctx=ctx)
        with pytest.raises(TypeError, match="argument ctx is 3: pass a weft.Ctx"):
            call(ctx=3)


def test_a_context_counts_in_its_team(me, n):
    backwards = weft.world.split(n - 1, -1, n)
    word = weft.zeros(1, "int32")
    with weft.Ctx(backwards, serialized=True, nostore=True) as ctx:
        assert ctx.team is backwards
        for rank in range(n):
            weft.atomic_set(word, rank + 1, rank, ctx=ctx)
        weft.barrier()
        assert memoryview(word)[0] == n - me
        got = array.array("i", [0])
        weft.get(got, word, 0, ctx=ctx)
        assert got[0] == 1
        with pytest.raises(ValueError, match=f"pe is {n}: the context's team has ranks 0 to {n - 1}"):
            weft.get(got, word, n, ctx=ctx)
    weft.barrier()
    late = weft.Ctx(backwards)
    backwards.destroy()
    for use in (late.quiet, late.destroy, lambda: weft.put(word, word, 0, ctx=late)):
        with pytest.raises(ValueError, match="this context was destroyed, or its team was"):
            use()
    assert "gone" in repr(late)
    with pytest.raises(ValueError, match="Ctx: this team was destroyed"):
        weft.Ctx(backwards)


def test_contexts_end(me):
    ctx = weft.Ctx()
    ctx.destroy()
    for use in (ctx.fence, ctx.quiet, ctx.destroy, lambda: ctx.handle, lambda: weft.quiet(ctx=ctx)):
        with pytest.raises(ValueError, match="context was destroyed"):
            use()
    for _ in range(3000):  # there is room for 1022 at once
        weft.Ctx()
    gc.collect()
    held = []
    with pytest.raises(RuntimeError, match="no room for another context"):
        while True:
            held.append(weft.Ctx())
    assert len(held) > 1000


def test_private_contexts(me):
    word = weft.zeros(1, "int32")
    ctx = weft.Ctx(private=True)
    weft.atomic_inc(word, me, ctx=ctx)
    errors = []

    def use():
        try:
            weft.atomic_inc(word, me, ctx=ctx)
        except ValueError as error:
            errors.append(str(error))
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert "private to the thread that made it" in errors[0]


def test_refused(me):
    word = weft.zeros(1, "int32")
    with weft.Ctx() as ctx:
        for use, kind, message in [
                (lambda: weft.put(word, word, me, ctx=1), TypeError, "put: argument ctx is 1: pass a weft.Ctx"),
                (lambda: weft.put(word, word, me, ctx=ctx, stream=0), ValueError, "ctx and stream are both given"),
                (lambda: weft.quiet(ctx=ctx, stream=0), ValueError, "ctx and stream are both given"),
                (lambda: weft.Ctx("world"), TypeError, "argument team is 'world'"),
                (lambda: weft.Ctx(private=1, fast=2), TypeError, "fast")]:
            with pytest.raises(kind) as raised:
                use()
            assert message in str(raised.value)


# --- Locks ------------------------------------------------------------------------------------------

def test_a_lock_excludes(me, n):
    lock, count = weft.Lock(), weft.zeros(1, "int64")
    weft.barrier()
    got = array.array("q", [0])
    for _ in range(50):
        with lock:
            weft.get(got, count, 0)
            weft.put(count, array.array("q", [got[0] + 1]), 0)
    weft.barrier()
    if me == 0:
        assert memoryview(count)[0] == 50 * n


def test_a_lock_among_threads(me, n):
    lock, count, here = weft.Lock(), weft.zeros(1, "int64"), [0]

    def work():
        for _ in range(20):
            with lock:
                before = here[0]
                weft.atomic_inc(count, 0)
                here[0] = before + 1
    threads = [threading.Thread(target=work) for _ in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    weft.barrier()
    assert here[0] == 60 and (me or memoryview(count)[0] == 60 * n)


def test_taken_or_not(me, n):
    lock = weft.Lock()
    weft.barrier()
    if me == 0:
        assert lock.acquire(blocking=False) is True and lock.acquire(blocking=False) is False
    weft.barrier()
    assert weft.test_lock(lock.word) is True
    weft.barrier()
    if me == 0:
        lock.release()
        assert weft.test_lock(lock.word) is False
        weft.clear_lock(lock.word)
    lock.free()


def test_locks_refused(me):
    lock, words = weft.Lock(), weft.zeros(2, "int64")
    with pytest.raises(RuntimeError, match="clear_lock: this PE does not hold the lock"):
        lock.release()
    mine = weft.zeros(1, "int64")
    if me == 0:
        weft.set_lock(mine)
        with pytest.raises(RuntimeError, match="this thread holds the lock already"):
            weft.set_lock(mine)
        weft.clear_lock(mine)
    for wrong, message in [(words, "has 2 elements of int64"), (weft.zeros(1), "has 1 elements of float32"),
                           (array.array("q", [0]), "argument lock is not symmetric")]:
        for call in (weft.set_lock, weft.test_lock, weft.clear_lock):
            with pytest.raises(ValueError) as raised:
                call(wrong)
            assert message in str(raised.value)


def test_a_lock_freed_while_held(me):
    """The next lock may be at the same address, and must not be held."""
    places = set()
    for _ in range(20):
        lock = weft.Lock()
        places.add(lock.word.ptr)
        weft.barrier()
        if me == 0:
            lock.acquire()
        lock.free()
    assert len(places) < 20


def test_a_lock_gone_while_held(me):
    """Nobody can clear it any more. No other lock lies there."""
    for _ in range(5):
        lock = weft.Lock()
        weft.barrier()
        if me == 0:
            lock.acquire()
        del lock
        gc.collect()


def test_a_lock_is_let_go_behind_an_exception(me, n):
    lock = weft.Lock()
    with pytest.raises(KeyError):
        with lock:
            raise KeyError
    with lock:
        pass


# --- Teams, and what is in reach --------------------------------------------------------------------

def test_grids(me, n):
    row, column = weft.world.split_2d(2)
    assert row.pes == tuple(pe for pe in range(n) if pe // 2 == me // 2)
    assert column.pes == tuple(range(me % 2, n, 2))
    row.barrier()
    column.barrier()
    assert row.translate_pe(row.rank) == me and weft.world.translate_pe(me, row) == row.rank
    other = (me + 2) % n
    assert weft.world.translate_pe(other, row) is (None if n > 2 and other // 2 != me // 2 else row.pes.index(other))
    with pytest.raises(ValueError, match="argument pe is 9: the team has ranks"):
        row.translate_pe(9)
    column.destroy()
    row.destroy()


def test_wrong_grids(me, n):
    with pytest.raises(ValueError, match="xrange is 0: pass 1 or more"):
        weft.world.split_2d(0)
    with pytest.raises((ValueError, TypeError)):
        weft.world.split_2d("2" if me == 0 else 2)
    if n > 1:
        with pytest.raises(ValueError, match="the members pass different arguments"):
            weft.world.split_2d(1 + (me == 0))


def test_reach(me, n, far):
    buffer, plain = weft.zeros(4, "int32"), array.array("i", [0])
    assert weft.pe_accessible(n - 1) and not weft.pe_accessible(n) and not weft.pe_accessible(-1)
    assert weft.addr_accessible(buffer, n - 1) and not weft.addr_accessible(plain, me)
    assert not weft.addr_accessible(buffer, n)
    assert weft.ptr(buffer, me) == buffer.ptr
    for pe in set(range(n)).difference(far):
        assert weft.ptr(buffer, pe) == buffer.peer(pe).ptr
    with weft.world.split(n - 1, -1, n) as backwards:
        assert weft.ptr(buffer, 0, team=backwards) == (None if n - 1 in far else buffer.peer(n - 1).ptr)
        with pytest.raises(ValueError, match=f"argument pe is {n}"):
            weft.ptr(buffer, n, team=backwards)
    with pytest.raises(ValueError, match="argument array is not symmetric"):
        weft.ptr(plain, me)


def test_names():
    assert weft.network() == os.environ.get("WEFT_INTERFACE")
    assert weft.info_get_version() == (1, 6) and weft.info_get_name() == f"Weft {weft.__version__}"


def test_what_locks_and_shares_show(me, n, mapped):
    lock, share = weft.Lock(), weft.Block("host", 8).share(range(n))
    assert repr(lock) == "<weft.Lock>"
    lock.free()
    assert repr(lock) == "<weft.Lock, gone>"
    assert repr(share) == f"<weft.Share of {n} member{'s' * (n > 1)}, {share.nbytes} bytes each>"
