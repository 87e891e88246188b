# SPDX-License-Identifier: BSD-3-Clause
"""Put, get, signals, waits and order, from and to every kind of array; and what is refused."""
import array
import ctypes
import threading

import pytest
import weft


def numbers(view):
    return memoryview(view).tolist()


def sources(values):
    """The same four floats in every kind of array that is at hand."""
    yield "array", array.array("f", values)
    yield "bytes", bytes(array.array("f", values))
    yield "bytearray", bytearray(array.array("f", values))
    yield "memoryview", memoryview(array.array("f", values))
    yield "ctypes", (ctypes.c_float * 4)(*values)
    try:
        import numpy
    except ImportError:
        return
    yield "numpy", numpy.array(values, "float32")
    yield "numpy, part", numpy.arange(100, dtype="float32")[int(values[0]):][:4]
    yield "numpy, little-endian", numpy.array(values, "<f4")


def test_put_from_anything(me, n):
    dest = weft.zeros(4)
    for name, source in sources([me, me + 1, me + 2, me + 3]):
        memoryview(dest)[:] = array.array("f", [-1] * 4)
        weft.barrier()
        weft.put(dest, source, (me + 1) % n)
        weft.barrier()
        left = (me - 1) % n
        assert numbers(dest) == [left, left + 1, left + 2, left + 3], name
        weft.barrier()


def test_get_into_anything(me, n):
    source = weft.zeros(4)
    memoryview(source)[:] = array.array("f", [me] * 4)
    weft.barrier()
    for name, dest in sources([9, 9, 9, 9]):
        if memoryview(dest).readonly:
            with pytest.raises(ValueError, match="argument dest is read-only, but this call writes it"):
                weft.get(dest, source, (me + 1) % n)
            continue
        weft.get(dest, source, (me + 1) % n)
        assert array.array("f", bytes(dest)).tolist() == [(me + 1) % n] * 4, name


def test_buffers_and_parts_of_them(me, n):
    buffer = weft.zeros(8, "int32")
    memoryview(buffer)[:4] = memoryview(array.array("i", [me + 1] * 4))
    weft.barrier()
    weft.put(buffer.view(4, offset=16), buffer.view(4), (me + 1) % n)
    weft.barrier()
    assert numbers(buffer) == [me + 1] * 4 + [(me - 1) % n + 1] * 4
    weft.put(memoryview(buffer)[6:], array.array("i", [-5, -6]), me)
    assert numbers(buffer)[6:] == [-5, -6]


@pytest.mark.parametrize("bytes_", [1, 7, 16 << 10, (16 << 10) + 1, 3 << 20])
def test_sizes(bytes_, me, n):
    dest = weft.zeros(bytes_, "uint8")
    weft.put(dest, bytes([me + 1]) * bytes_, (me + 1) % n)
    weft.barrier()
    assert bytes(memoryview(dest)) == bytes([(me - 1) % n + 1]) * bytes_
    got = bytearray(bytes_)
    weft.get(got, dest, (me + 1) % n)
    assert got == bytes([me + 1]) * bytes_
    weft.barrier()


def test_nothing_is_moved_by_empty_arrays(me):
    weft.put(weft.zeros(0), b"", me)
    weft.get(bytearray(), weft.zeros(0), me)


def test_signals_round_the_ring(me, n):
    data, arrived = weft.zeros(4), weft.zeros(1, "uint64")
    for turn in range(1, 20):
        weft.put_signal(data, array.array("f", [turn * 10 + me] * 4), arrived, turn, (me + 1) % n)
        assert weft.wait(arrived, turn, ">=") >= turn
        assert numbers(data) == [turn * 10 + (me - 1) % n] * 4
        weft.barrier()


def test_signal_add_and_set(me, n):
    word = weft.zeros(1, "uint64")
    for pe in range(n):
        weft.signal(word, me + 1, pe, op="add")
    assert weft.wait(word, n * (n + 1) // 2) == n * (n + 1) // 2
    weft.barrier()
    weft.signal(word, 2**64 - 1, me)
    assert weft.wait(word, 2**64 - 1) == 2**64 - 1
    weft.put_signal(weft.zeros(0, "uint8"), b"", word, 1, me, op="add")
    assert weft.wait(word, 5, "<") == 0


@pytest.mark.parametrize("cmp, value", [("==", 5), ("!=", 4), (">", 4), (">=", 5), ("<", 6), ("<=", 5)])
def test_comparisons(cmp, value, me):
    word = weft.zeros(1, "uint64")
    weft.signal(word, 5, me)
    assert weft.wait(word, value, cmp) == 5


def test_a_waiting_thread_lets_others_run(me):
    word = weft.zeros(1, "uint64")
    answer = []
    thread = threading.Thread(target=lambda: answer.append(weft.wait(word, 1)))
    thread.start()
    weft.signal(word, 1, me)
    thread.join(30)
    assert answer == [1]


def test_order(me, n):
    a, b = weft.zeros(1, "uint64"), weft.zeros(1, "uint64")
    right = (me + 1) % n
    weft.put(a, array.array("Q", [7]), right)
    weft.fence()
    weft.signal(b, 1, right)
    weft.wait(b, 1)
    assert numbers(a) == [7]
    weft.barrier()
    weft.put(a, array.array("Q", [8]), right)
    weft.quiet()
    weft.sync()
    assert numbers(a) == [8]


# --- What is refused --------------------------------------------------------------------------------

def test_refused(me, n, far):
    np = pytest.importorskip("numpy")
    buffer, word = weft.zeros(4), weft.zeros(2, "uint64")
    four = array.array("f", [1] * 4)
    strided = np.zeros((4, 2), "float32")[:, 0]
    cases = [
        (lambda: weft.put(buffer, four, n), f"put: argument pe is {n}: the job has PEs 0 to {n - 1}"),
        (lambda: weft.put(buffer, four, -1), "argument pe is -1"),
        (lambda: weft.put(four, four, 0), "argument dest is not symmetric"),
        (lambda: weft.get(four, four, 0), "argument source is not symmetric"),
        (lambda: weft.put(buffer, array.array("f", [1]), 0), "dest has 4 elements of float32, 16 bytes, but source has 1"),
        (lambda: weft.put(buffer, array.array("i", [1] * 4), 0), "dest is of float32, but source is of int32"),
        (lambda: weft.put(buffer, strided, 0), "argument source is not contiguous"),
        (lambda: weft.put(buffer, np.zeros(4, ">f4"), 0), "elements of format >f, a type that Weft does not support"),
        (lambda: weft.put(buffer, np.zeros(4, "f4,f4"), 0), "a type that Weft does not support"),
        (lambda: weft.signal(buffer, 1, 0), "argument signal has 4 elements of float32: pass one element of uint64"),
        (lambda: weft.signal(word, 1, 0), "argument signal has 2 elements of uint64"),
        (lambda: weft.signal(word.view(1), -1, 0), "argument value is -1: pass a number from 0"),
        (lambda: weft.signal(word.view(1), 1, 0, op="or"), "argument op is 'or': pass 'set', 'add'"),
        (lambda: weft.wait(word.view(1), 0, "=>"), "argument cmp is '=>'"),
        (lambda: weft.signal(np.zeros(1, "uint64"), 1, 0), "argument signal is not symmetric"),
        (lambda: weft.put(buffer, four, 0, stream="x"), "argument stream is 'x'"),
    ]
    if n > 1 and (me + 1) % n not in far:
        cases.append((lambda: weft.put(buffer.peer((me + 1) % n), four, 0), "not a view of a peer's"))
    for use, message in cases:
        with pytest.raises(ValueError) as raised:
            use()
        assert message in str(raised.value)
    assert numbers(buffer) == [0] * 4


def test_wrong_kinds():
    buffer = weft.zeros(4)
    for use, message in [
            (lambda: weft.put(buffer, [1, 2, 3, 4], 0), "argument source is [1, 2, 3, 4]: pass an array"),
            (lambda: weft.put(buffer, buffer, "0"), "argument pe is '0': pass a whole number"),
            (lambda: weft.put(buffer, buffer), "argument pe is missing"),
            (lambda: weft.put(buffer, buffer, 0, None), "at most 3 may be given without their names"),
            (lambda: weft.put(buffer, buffer, 0, pe=0), "argument 'pe' is given twice"),
            (lambda: weft.put(buffer, buffer, 0, to=0), "there is no argument 'to'"),
            (lambda: weft.Buffer(), "cannot create"), (lambda: weft.Team(), "cannot create")]:
        with pytest.raises(TypeError) as raised:
            use()
        assert message in str(raised.value)
