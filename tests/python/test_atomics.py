# SPDX-License-Identifier: BSD-3-Clause
"""Atomics on words of other PEs, of every type, in their non-blocking forms, and what is refused."""
import array
import threading

import pytest
import weft

CODES = {"int32": "i", "uint32": "I", "int64": "q", "uint64": "Q", "float32": "f", "float64": "d"}
WHOLE = ["int32", "uint32", "int64", "uint64"]


def largest(dtype):
    return 2 ** (int(dtype[-2:]) - dtype.startswith("int")) - 1


@pytest.mark.parametrize("dtype", CODES)
def test_fetch_set_swap(dtype, me, n):
    words, right = weft.zeros(3, dtype), (me + 1) % n
    weft.atomic_set(words, me + 1, right, index=1)
    weft.barrier()
    left = (me - 1) % n
    assert memoryview(words).tolist() == [0, left + 1, 0]
    assert weft.atomic_fetch(words, right, index=1) == me + 1
    weft.barrier()
    assert weft.atomic_swap(words.view(1, offset=words.itemsize), 7, me) == left + 1
    assert type(weft.atomic_fetch(words, me)) is (float if dtype[0] == "f" else int)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reals_keep_their_values(dtype, me):
    word = weft.zeros(1, dtype)
    for value in (-0.5, 1e30, float("inf")):
        weft.atomic_set(word, value, me)
        assert weft.atomic_swap(word, 0, me) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("dtype", WHOLE)
def test_every_pe_adds_to_every_pe(dtype, me, n):
    word = weft.zeros(1, dtype)
    for pe in range(n):
        weft.atomic_add(word, me + 1, pe)
        weft.atomic_inc(word, pe)
    weft.barrier()
    assert memoryview(word)[0] == n * (n + 1) // 2 + n


@pytest.mark.parametrize("dtype", WHOLE)
def test_each_gets_its_own_number(dtype, me, n):
    counter, taken = weft.zeros(1, dtype), weft.zeros(2 * n, "int32")
    for fetch in (weft.atomic_fetch_inc, lambda *to: weft.atomic_fetch_add(counter, 1, 0)):
        ticket = fetch(counter, 0)
        weft.put(taken.view(1, offset=4 * ticket), array.array("i", [1]), 0)
    weft.barrier()
    if me == 0:
        assert memoryview(taken).tolist() == [1] * 2 * n


@pytest.mark.parametrize("dtype", WHOLE)
def test_bits(dtype, me):
    word = weft.zeros(1, dtype)
    weft.atomic_or(word, 0b1100, me)
    assert weft.atomic_fetch_or(word, 0b0011, me) == 0b1100
    weft.atomic_and(word, 0b0110, me)
    assert weft.atomic_fetch_and(word, 0b0100, me) == 0b0110
    weft.atomic_xor(word, 0b0101, me)
    assert weft.atomic_fetch_xor(word, 0b1111, me) == 0b0001
    assert weft.atomic_fetch(word, me) == 0b1110


@pytest.mark.parametrize("dtype", WHOLE)
def test_compare_swap(dtype, me):
    word, most = weft.zeros(1, dtype), largest(dtype)
    assert weft.atomic_compare_swap(word, 5, 6, me) == 0
    assert weft.atomic_compare_swap(word, 0, most, me) == 0
    assert weft.atomic_compare_swap(word, most, 1, me) == most
    assert weft.atomic_fetch(word, me) == 1


@pytest.mark.parametrize("dtype", WHOLE)
def test_wrapping_and_signs(dtype, me):
    word = weft.zeros(1, dtype)
    weft.atomic_set(word, largest(dtype), me)
    weft.atomic_inc(word, me)
    assert weft.atomic_fetch(word, me) == (-largest(dtype) - 1 if dtype.startswith("int") else 0)
    if dtype.startswith("int"):
        weft.atomic_set(word, -3, me)
        assert weft.atomic_fetch_add(word, -4, me) == -3 and weft.atomic_fetch(word, me) == -7


@pytest.mark.parametrize("dtype", WHOLE)
def test_non_blocking(dtype, me, n):
    word, fetch, right = weft.zeros(n, dtype), array.array(CODES[dtype], [99]), (me + 1) % n
    seen = []
    for call, more in [(weft.atomic_fetch_nbi, ()), (weft.atomic_swap_nbi, (6,)), (weft.atomic_fetch_inc_nbi, ()),
                       (weft.atomic_fetch_add_nbi, (3,)), (weft.atomic_fetch_and_nbi, (0b1110,)),
                       (weft.atomic_fetch_or_nbi, (1,)), (weft.atomic_fetch_xor_nbi, (0b11,)),
                       (weft.atomic_compare_swap_nbi, (0b1000, 2)), (weft.atomic_fetch_nbi, ())]:
        call(fetch, word, *more, right, index=me)
        weft.quiet()
        seen.append(fetch[0])
    assert seen == [0, 0, 6, 7, 10, 10, 11, 8, 2]


def test_threads_and_numpy(me, n):
    np = pytest.importorskip("numpy")
    words = weft.zeros((2, 3), "int64")
    view = np.asarray(words)
    many = [threading.Thread(target=lambda: [weft.atomic_inc(view, me, index=4) for _ in range(500)]) for _ in range(3)]
    [thread.start() for thread in many]
    [thread.join() for thread in many]
    assert view.tolist() == [[0, 0, 0], [0, 1500, 0]]
    weft.atomic_add(view, np.int32(-1), me, index=np.int64(4))
    assert view[1, 1] == 1499


def test_refused(me, n):
    word, real, wide = weft.zeros(2, "int32"), weft.zeros(1, "float64"), weft.zeros(1, "uint64")
    plain, frozen = array.array("i", [0]), memoryview(word).toreadonly()
    for use, kind, message in [
            (lambda: weft.atomic_add(word, 1, n), ValueError, f"argument pe is {n}: the job has PEs 0 to {n - 1}"),
            (lambda: weft.atomic_add(plain, 1, me), ValueError, "argument dest is not symmetric"),
            (lambda: weft.atomic_fetch(plain, me), ValueError, "argument source is not symmetric"),
            (lambda: weft.atomic_add(real, 1, me), ValueError, "dest is of float64: pass aligned elements of int32"),
            (lambda: weft.atomic_compare_swap(real, 1, 2, me), ValueError, "argument dest is of float64"),
            (lambda: weft.atomic_set(weft.zeros(1, "int16"), 1, me), ValueError, "dest is of int16"),
            (lambda: weft.atomic_set(word, 2**31, me), ValueError, "value is 2147483648: out of the range of int32"),
            (lambda: weft.atomic_set(wide, -1, me), ValueError, "value is -1: out of the range of uint64"),
            (lambda: weft.atomic_set(wide, 2**64, me), ValueError, "out of the range of uint64"),
            (lambda: weft.atomic_add(word, 1.5, me), TypeError, "argument value is 1.5: pass a whole number"),
            (lambda: weft.atomic_set(real, "1", me), TypeError, "argument value is '1': pass a number"),
            (lambda: weft.atomic_inc(word, me, index=2), ValueError, "argument index is 2: dest has 2 elements"),
            (lambda: weft.atomic_inc(word, me, index=-1), ValueError, "argument index is -1"),
            (lambda: weft.atomic_inc(frozen, me), ValueError, "argument dest is read-only"),
            (lambda: weft.atomic_fetch_nbi(array.array("q", [0]), word, me), ValueError, "fetch is of int64, but dest"),
            (lambda: weft.atomic_fetch_nbi(array.array("i", [0, 0]), word, me), ValueError, "fetch has 2 elements"),
            (lambda: weft.atomic_inc([1], me), TypeError, "argument dest is [1]: pass an array"),
            (lambda: weft.atomic_inc(word), TypeError, "atomic_inc: argument pe is missing"),
            (lambda: weft.atomic_inc(weft.zeros(0, "int32"), me), ValueError, "dest has 0 elements")]:
        with pytest.raises(kind) as raised:
            use()
        assert message in str(raised.value)
    weft.barrier()
    assert weft.atomic_fetch(frozen, me) == 0
