# SPDX-License-Identifier: BSD-3-Clause
"""Waiting for words and testing them: one, all, any and some, with one value or one for each."""
import _thread
import array
import threading
import time

import pytest
import weft

TYPES = ["int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", TYPES)
def test_one_word(dtype, me, n):
    words = weft.zeros(2, dtype)
    assert weft.test(words, 0) is True and weft.test(words, 1, index=1) is False
    weft.barrier()
    weft.atomic_set(words, 5, (me + 1) % n, index=1)
    assert weft.wait_until(words, 4, ">", index=1) is None
    for cmp, value, met in [("==", 5, True), ("!=", 5, False), (">", 5, False), (">=", 5, True), ("<", 6, True),
                            ("<=", 4, False)]:
        assert weft.test(words, value, cmp, index=1) is met


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_signs(dtype, me):
    words = weft.zeros(1, dtype)
    weft.atomic_set(words, -2, me)
    assert weft.test(words, -1, "<") and not weft.test(words, 0, ">")


@pytest.mark.parametrize("dtype", TYPES)
def test_everyone_reports_to_everyone(dtype, me, n):
    words = weft.zeros(n, dtype)
    for pe in range(n):
        weft.atomic_set(words, pe + 1, pe, index=me)
    weft.wait_until_all(words, me + 1)
    assert weft.test_all(words, me + 1) and not weft.test_all(words, 0)
    assert sorted(weft.wait_until_some(words, 0, ">")) == list(range(n)) == sorted(weft.test_some(words, 0, ">"))
    assert weft.wait_until_any(words, me + 1) in range(n) and weft.test_any(words, 0) is None
    assert weft.test_some(words, 0) == []


def test_every_word_gets_its_turn(me):
    words = weft.zeros(3, "int32")
    assert {weft.wait_until_any(words, 0) for _ in range(9)} == {weft.test_any(words, 0) for _ in range(9)} == {0, 1, 2}


def test_values_for_each(me, n):
    words = weft.zeros(3, "int64")
    memoryview(words)[:] = array.array("q", [1, 2, 3])
    for values in ([1, 2, 3], (1, 2, 3), array.array("h", [1, 2, 3]), memoryview(words)):
        assert weft.test_all(words, values)
        weft.wait_until_all(words, values)
    assert weft.test_some(words, [1, 0, 3]) == [0, 2] == weft.wait_until_some(words, [1, 0, 3])
    assert weft.test_any(words, [0, 2, 0]) == 1 == weft.wait_until_any(words, [0, 2, 0])
    assert weft.test_any(words, [0, 0, 0]) is None


def test_those_that_do_not_count(me):
    words = weft.zeros(3, "int32")
    weft.atomic_set(words, 1, me, index=1)
    for status in ([0, 1, 0], (False, True, False), array.array("i", [0, 1, 0]), bytes([0, 2, 0])):
        weft.wait_until_all(words, 0, status=status)
        assert weft.test_all(words, 0, status=status) and weft.test_some(words, 0, status=status) == [0, 2]
        assert weft.test_any(words, 1, status=status) is None
    assert not weft.test_all(words, 0, status=None)
    none = [1, 1, 1]
    assert weft.wait_until_all(words, 9, status=none) is None and weft.test_all(words, 9, status=none)
    assert weft.wait_until_any(words, 9, status=none) is None and weft.wait_until_some(words, 9, status=none) == []
    empty = weft.zeros(0, "int32")
    assert weft.wait_until_all(empty, 1) is None and weft.wait_until_any(empty, 1) is None and weft.test_all(empty, 1)


def test_with_numpy(me):
    np = pytest.importorskip("numpy")
    view = np.asarray(weft.zeros(4, "int32"))
    view[:] = [4, 3, 2, 1]
    assert weft.test_some(view, np.array([4, 0, 2, 0])) == [0, 2]
    assert weft.test_all(view, np.int64(1), ">=", status=np.array([False] * 4)) and weft.test(view, np.uint8(4))


def test_a_word_that_was_met_counts(me):
    """The first word changes back before the second is met."""
    words = weft.zeros(2, "int32")
    done = []
    waiting = threading.Thread(target=lambda: done.append(weft.wait_until_all(words, 1)))
    weft.atomic_set(words, 1, me)
    waiting.start()
    time.sleep(0.05)
    weft.atomic_set(words, 0, me)
    weft.atomic_set(words, 1, me, index=1)
    waiting.join(30)
    assert done == [None]


@pytest.mark.parametrize("wait", [
    lambda words: weft.wait_until(words, 1), lambda words: weft.wait_until_all(words, 1),
    lambda words: weft.wait_until_any(words, 1), lambda words: weft.wait_until_some(words, [1, 1]),
    lambda words: weft.wait(words.view(1, "uint64"), 1)])
def test_interrupted(wait):
    words = weft.zeros(2, "int32")
    weft.barrier()
    timer = threading.Timer(0.05, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        wait(words)
    timer.join()


def test_signals(me, n):
    word, data = weft.zeros(1, "uint64"), weft.zeros(2)
    assert weft.signal_fetch(word) == 0
    weft.barrier()
    weft.put_signal_nbi(data, array.array("f", [1, 2]), word, 3, (me + 1) % n, op="add")
    weft.quiet()
    weft.wait_until(word, 3)
    assert weft.signal_fetch(word) == 3 and memoryview(data).tolist() == [1, 2]


def test_refused(me):
    words, plain = weft.zeros(2, "int32"), array.array("i", [0, 0])
    for use, kind, message in [
            (lambda: weft.test(plain, 0), ValueError, "test: argument ivar is not symmetric"),
            (lambda: weft.test_all(plain, 0), ValueError, "argument ivars is not symmetric"),
            (lambda: weft.wait_until(words, 0, "=>"), ValueError, "argument cmp is '=>': pass '==', '!='"),
            (lambda: weft.wait_until(words, 0, index=2), ValueError, "argument index is 2: ivar has 2 elements"),
            (lambda: weft.wait_until(words, 2**31), ValueError, "out of the range of int32"),
            (lambda: weft.wait_until_all(words, [1]), ValueError, "argument value has 1 items, and there are 2 words"),
            (lambda: weft.wait_until_all(words, [1, "2"]), TypeError, "argument value is '2': pass a whole number"),
            (lambda: weft.wait_until_any(words, 1.5), TypeError, "argument value is 1.5: pass one item for each"),
            (lambda: weft.wait_until_some(words, 1, status=[0]), ValueError, "argument status has 1 items"),
            (lambda: weft.test_some(words, 1, status=1), TypeError, "argument status is 1"),
            (lambda: weft.test_any(weft.zeros(1), 0), ValueError, "argument ivars is of float32: pass aligned elements"),
            (lambda: weft.signal_fetch(words), ValueError, "argument signal has 2 elements of int32")]:
        with pytest.raises(kind) as raised:
            use()
        assert message in str(raised.value)
