# SPDX-License-Identifier: BSD-3-Clause
"""Parts of arrays and signals of 32 bits, by the calling thread on host memory and by a
stream on GPU memory, where there is one; and what is refused."""
import array
import random
import struct

import pytest
import weft

FORMATS = {"uint8": "B", "int16": "h", "int32": "i", "float64": "d"}


def _gpu():
    try:
        weft.zeros(1, space="device")
    except (MemoryError, RuntimeError):
        return False
    return True


PLACES = {"host": None, "device": 0}  # the stream that works there: CUDA's default one
if not _gpu():
    del PLACES["device"]


@pytest.fixture(params=PLACES)
def space(request):
    return request.param


class Vector:
    """A symmetric array that is read and written as a list."""

    def __init__(self, values, dtype, space):
        self.buffer = weft.zeros(len(values), dtype, space=space)
        self.format, self.me = FORMATS.get(dtype, "q"), weft.my_pe()
        self.write(values)

    def write(self, values):
        weft.put(self.buffer, array.array(self.format, values), self.me)
        weft.quiet()

    def read(self):
        values = array.array(self.format, [0] * self.buffer.size)
        weft.get(values, self.buffer, self.me)
        return values.tolist()


def settle(space):
    """Completes everything that the PEs have begun: the stream sets a word of the host at the end."""
    if space == "device":
        told = weft.zeros(1, "int32")
        weft.barrier(stream=0)
        weft.signal32(told, 1, weft.my_pe(), stream=0)
        weft.wait32(told, 1)
    weft.barrier()


def numbers(space, *values):
    """Yields the same numbers in every accepted form."""
    yield values
    yield [weft_number(value, "int64", space) for value in values]
    yield [weft_number(value, "int32", space) for value in values]
    yield [array.array("q", [value]) for value in values]


def weft_number(value, dtype, space):
    buffer = weft.zeros(1, dtype, space=space)
    weft.put(buffer, array.array("q" if dtype == "int64" else "i", [value]), weft.my_pe())
    weft.quiet()  # other streams see it
    return buffer


@pytest.mark.parametrize("dtype", FORMATS)
def test_puts_and_gets(space, dtype, me, n):
    stream, right, left = PLACES[space], (me + 1) % n, (me - 1) % n
    draw = random.Random(dtype)
    for turn in range(6):
        count, to, start = draw.randrange(20), draw.randrange(10), draw.randrange(10)
        for kind, (nelems, dest_begin, source_begin) in enumerate(numbers(space, count, to, start)):
            source = Vector([(me * 40 + turn + i) % 100 for i in range(30)], dtype, space)
            dest = Vector([101] * 30, dtype, space)
            settle(space)
            if (turn + kind) % 2:
                weft.put_slice(dest.buffer, source.buffer, nelems, right, dest_begin, source_begin, stream=stream)
            else:
                weft.get_slice(dest.buffer, source.buffer, nelems, left, dest_begin, source_begin, stream=stream)
            settle(space)
            expected = [101] * 30
            expected[to:to + count] = [(left * 40 + turn + i) % 100 for i in range(start, start + count)]
            assert dest.read() == expected
            settle(space)


@pytest.mark.parametrize("bytes_", [0, 1, 16 << 10, (16 << 10) + 1, 1 << 20])
def test_data_before_the_signal(space, bytes_, me, n):
    stream, right = PLACES[space], (me + 1) % n
    source, dest = Vector([me + 1] * (bytes_ + 1), "uint8", space), Vector([0] * (bytes_ + 1), "uint8", space)
    words = Vector([0] * 3, "int32", space)
    settle(space)
    weft.put_slice_signal(dest.buffer, source.buffer, bytes_, right, 0, 1, words.buffer, -me - 5, index=2,
                          stream=stream)
    weft.wait32(words.buffer, -4, "<", index=2, stream=stream)
    settle(space)
    assert dest.read() == [(me - 1) % n + 1] * bytes_ + [0]
    assert words.read() == [0, 0, -((me - 1) % n) - 5]


def test_signals_set_and_added(space, me, n):
    """Six words: 1, -1 and 2, set and added, as the comparisons want them."""
    stream, right = PLACES[space], (me + 1) % n
    words = Vector([0] * 6, "int32", space)
    settle(space)
    for index, value in enumerate([1, 1, -1, -1, 2, 2]):
        weft.signal32(words.buffer, value, right, op="add" if index % 2 else "set", index=index, stream=stream)
    kept = []  # until the stream has read them
    for cmp, value, first in [("==", 1, 0), ("<", 0, 2), (">", 1, 4), ("!=", 0, 0), (">=", 2, 4), ("<=", -1, 2)]:
        for index in (first, first + 1):
            for bound, word in numbers(space, value, index):
                weft.wait32(words.buffer, bound, cmp, index=word, stream=stream)
                kept += [bound, word]
    settle(space)
    assert words.read() == [1, 1, -1, -1, 2, 2]


def test_no_addition_is_lost(space, me, n):
    stream, words = PLACES[space], Vector([0], "int32", space)
    settle(space)
    for i in range(100):
        weft.signal32(words.buffer, i - 40, 0, op="add", stream=stream)
    if me == 0:
        weft.wait32(words.buffer, n * sum(range(-40, 60)), stream=stream)
    settle(space)


def test_what_is_refused(space, me):
    stream = PLACES[space]
    dest, source = weft.zeros(10, space=space), weft.zeros(10, space=space)
    words = weft.zeros(4, "int32", space=space)
    refusals = [
        ("dest has 10 elements: there are no 5 from element 6 on", weft.put_slice, (dest, source, 5, me, 6)),
        ("source has 10 elements: there are no 5 from element -1 on", weft.put_slice, (dest, source, 5, me, 0, -1)),
        ("no -2 from element 0", weft.get_slice, (dest, source, -2, me)),
        ("dest is of float32, but source is of int32", weft.put_slice, (dest, words, 1, me)),
        ("pe is", weft.put_slice, (dest, source, 1, weft.n_pes())),
        ("dest is not symmetric", weft.put_slice, (array.array("f", [0] * 4), source, 1, me)),
        ("source is not symmetric", weft.get_slice, (dest, array.array("f", [0] * 4), 1, me)),
        ("nelems has 2 elements of int64", weft.put_slice, (dest, source, array.array("q", [1, 2]), me)),
        ("nelems has 1 elements of float64", weft.put_slice, (dest, source, array.array("d", [1]), me)),
        ("integer of 64 bits", weft.put_slice, (dest, source, 1 << 70, me)),
        ("pass an integer", weft.put_slice, (dest, source, "1", me)),
        ("signals is of float32", weft.signal32, (dest, 1, me)),
        ("value is 2147483648: a signal has 32 bits", weft.signal32, (words, 1 << 31, me)),
        ("value is -2147483649", weft.wait32, (words, -(1 << 31) - 1)),
        ("'set', 'add'", weft.signal32, (words, 1, me), {"op": "or"}),
        ("'==', '!='", weft.wait32, (words, 1, "=")),
        ("signals has 4 elements: there are no 1 from element 4 on", weft.signal32, (words, 1, me), {"index": 4}),
        ("signals is not symmetric", weft.wait32, (array.array("i", [1]), 1)),
    ]
    for text, call, arguments, *more in refusals:
        with pytest.raises(ValueError) as refused:
            call(*arguments, stream=stream, **(more[0] if more else {}))
        assert text in str(refused.value) and str(refused.value).startswith(call.__name__ + ": ")


def test_numbers_on_a_gpu_want_a_stream(me):
    if "device" not in PLACES:
        pytest.skip("there is no GPU")
    count = weft_number(1, "int64", "device")
    with pytest.raises(ValueError, match="nelems is in GPU memory: pass a stream"):
        weft.put_slice(weft.zeros(4), weft.zeros(4), count, me)


def test_numbers_are_read_by_the_gpu(me, n):
    """Values are read when the stream gets there, not when the call is made."""
    if "device" not in PLACES:
        pytest.skip("there is no GPU")
    gate, words = Vector([0], "int32", "device"), Vector([0], "int32", "device")
    value, other = weft_number(7, "int32", "device"), weft_number(-9, "int32", "device")
    settle("device")
    weft.wait32(gate.buffer, 1, stream=0)
    weft.put(value, other, me, stream=0)
    weft.signal32(words.buffer, value, (me + 1) % n, stream=0)
    weft.put(gate.buffer, struct.pack("i", 1), me)
    weft.wait32(words.buffer, -9, stream=0)
    settle("device")
    assert words.read() == [-9]


def test_a_wait_can_be_interrupted(me):
    import signal
    words = weft.zeros(1, "int32")

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            weft.wait32(words, 1)
    finally:
        signal.signal(signal.SIGALRM, before)
