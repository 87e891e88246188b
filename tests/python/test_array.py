# SPDX-License-Identifier: BSD-3-Clause
"""A Buffer works like an array: elements by keys, views by slices, assignment, lists, text, numpy. On memory of the
host; test_device.py tests GPU memory.
"""
import array
import contextlib
import math
import random
import struct
import subprocess
import sys

import pytest
import weft

try:
    import numpy
except ImportError:
    numpy = None
WHOLE = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-2**15, 2**15 - 1),
         "uint32": (0, 2**32 - 1), "int32": (-2**31, 2**31 - 1), "uint64": (0, 2**64 - 1),
         "int64": (-2**63, 2**63 - 1)}
REAL = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def counting(shape, dtype="float32"):
    buffer = weft.empty(shape, dtype)
    buffer.reshape(-1)[:] = range(buffer.size)
    return buffer


# --- Elements ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", WHOLE)
def test_whole_numbers(dtype):
    first, last = WHOLE[dtype]
    buffer = weft.zeros(3, dtype)
    buffer[0], buffer[-1] = first, last
    assert buffer.tolist() == [first, 0, last] and type(buffer[0]) is int
    for wrong in (first - 1, last + 1, 10**30):
        with pytest.raises(OverflowError, match=f"out of range: {first} to {last} for {dtype}"):
            buffer[1] = wrong
    with pytest.raises(TypeError, match=f"1.5 cannot be stored as {dtype}: pass a whole number"):
        buffer[1] = 1.5
    assert buffer[1] == 0


@pytest.mark.parametrize("dtype", REAL)
def test_real_numbers(dtype):
    buffer = weft.zeros(5, dtype)
    buffer[:] = [1, -1.5, math.nan, -0.0, 2**-3]
    assert buffer[0] == 1 and buffer[1] == -1.5 and math.isnan(buffer[2]) and buffer[4] == 0.125
    assert math.copysign(1, buffer[3]) == -1 and type(buffer[0]) is float
    buffer[0] = math.inf
    assert buffer[0] == math.inf or dtype == "float8_e4m3fn" and math.isnan(buffer[0])
    for wrong in ("1", 1j, None, b"1"):
        with pytest.raises((TypeError, ValueError)):
            buffer[0] = wrong


def test_float16_is_that_of_struct():
    bits, values = weft.zeros(2**16, "uint16"), [struct.unpack("<e", struct.pack("<H", i))[0] for i in range(2**16)]
    bits[:] = range(2**16)
    halves = bits.view(dtype="float16")
    assert all(a == b or a != a and b != b for a, b in zip(halves.tolist(), values))
    written = weft.zeros(2**16, "float16")
    written[:] = values
    assert all(a == b or v != v for a, b, v in zip(written.view(dtype="uint16"), bits, values))
    for value in (65519.9, 2**-25, 2**-24 * 1.5, 1.0009765625 + 2**-12, 1 + 2**-11, 1 + 3 * 2**-11, 3e-6, 1 / 3):
        written[0] = value
        assert written[0] == struct.unpack("<e", struct.pack("<e", value))[0], value
    written[0] = 65520.0
    assert written[0] == math.inf


def test_narrow_floats_come_back():
    """Every bit pattern reads as the number that it was written from; a number halfway between two is rounded to the
    even one."""
    for dtype, bits in ("bfloat16", "uint16"), ("float8_e4m3fn", "uint8"), ("float8_e5m2", "uint8"):
        patterns = weft.zeros(256 if bits == "uint8" else 2**16, bits)
        patterns[:] = range(patterns.size)
        values = patterns.view(dtype=dtype).tolist()
        again = weft.zeros(patterns.size, dtype)
        again[:] = values
        assert all(a == b or v != v for a, b, v in zip(again.view(dtype=bits), patterns, values)), dtype
    for dtype, largest, next_one in ("bfloat16", 255 * 2.0**120, 2.0**128), ("float8_e5m2", 57344, 65536), \
            ("float8_e4m3fn", 448, 480):
        one = weft.zeros(1, dtype)
        one[0] = math.nextafter((largest + next_one) / 2, 0)
        assert one[0] == largest
        one[0] = next_one
        assert one[0] == math.inf or math.isnan(one[0]), dtype


def test_bool_and_complex():
    flags = weft.zeros(3, "bool")
    flags[:] = [True, 0, 1]
    assert flags.tolist() == [True, False, True] and flags[0] is True
    with pytest.raises(OverflowError, match="out of range: 0 to 1 for bool"):
        flags[0] = 2
    for dtype in ("complex64", "complex128"):
        waves = weft.zeros(2, dtype)
        waves[0], waves[1] = 1 + 2j, 3
        assert waves.tolist() == [1 + 2j, 3 + 0j]
        with pytest.raises(TypeError, match="pass a number"):
            waves[0] = "1"


# --- Keys ----------------------------------------------------------------------------------------------

KEYS = [0, -1, slice(None), slice(1, 3), slice(None, None, -1), slice(5, 1, -2), slice(9, 20), ..., None, (0, 1),
        (slice(None), 2), (slice(None), slice(None, None, 2)), (1, ..., -1), (..., 0), (None, 2), (slice(None, None, -1), None, 1),
        (0, 0, 0), (slice(2), slice(1, None), slice(None, None, -2)), ()]


@pytest.mark.skipif(numpy is None, reason="numpy is not installed")
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_keys_are_those_of_numpy(key):
    for shape in ((4, 3, 5), (7,), (0, 4)):
        buffer, expected = weft.empty(shape, "int32"), numpy.arange(math.prod(shape), dtype="int32").reshape(shape)
        buffer[...] = expected
        try:
            there = expected[key]
        except IndexError:
            with pytest.raises(IndexError):
                buffer[key]
            continue
        here = buffer[key]
        if isinstance(here, int):
            assert here == there
            continue
        assert here.shape == there.shape and here.tolist() == there.tolist() and here.size == there.size
        assert here.numpy().tolist() == there.tolist()
        if there.size < 2 or all(step > 0 or dim == 1 for step, dim in zip(there.strides, there.shape)):
            assert numpy.from_dlpack(here).tolist() == there.tolist()
        here[...] = -1
        expected[key] = -1
        assert buffer.tolist() == expected.tolist()


def random_key(draw, ndim):
    """Generates keys, most of them valid: integers, slices, an Ellipsis, None."""
    choices = [lambda: draw.randint(-5, 5), lambda: None, lambda: ...] + 3 * [lambda: slice(
        draw.choice([None, *range(-6, 7)]), draw.choice([None, *range(-6, 7)]), draw.choice([None, 1, 2, -1, -2, 3]))]
    return tuple(draw.choice(choices)() for _ in range(draw.randint(0, ndim + 1)))


@pytest.mark.skipif(numpy is None, reason="numpy is not installed")
def test_random_keys_and_values():
    """Reads and writes parts of parts, compared with numpy; values are broadcast as in numpy."""
    draw, compared = random.Random(7), 0
    for shape in [(5,), (4, 3), (2, 3, 4), (3, 1, 2, 2), (0, 3)] * 40:
        buffer, expected = counting(shape, "int32"), numpy.arange(math.prod(shape), dtype="int32").reshape(shape)
        key, inner = random_key(draw, len(shape)), random_key(draw, len(shape))
        try:
            there = expected[key]
        except IndexError:
            with pytest.raises(IndexError):
                buffer[key]
            continue
        here = buffer[key]
        if isinstance(here, weft.Buffer):
            value = numpy.full([d if draw.random() < 0.7 else 1 for d in there.shape[draw.randint(0, there.ndim):]], 70)
            value[...] += numpy.arange(value.size).reshape(value.shape)
            here[...] = value if draw.random() < 0.5 or not value.size else value.tolist()
            there[...] = value
            assert buffer.tolist() == expected.tolist(), (shape, key, value.shape)
            with contextlib.suppress(IndexError):
                there = there[inner]
                here = here[inner]
        compared += 1
        assert there.tolist() == (here.tolist() if isinstance(here, weft.Buffer) else here), (shape, key, inner)
    assert compared > 80


def test_slices_share_memory():
    buffer = counting((3, 4))
    part = buffer[1:, ::2]
    part[0, 1] = 70
    assert buffer.tolist() == [[0, 1, 2, 3], [4, 5, 70, 7], [8, 9, 10, 11]] and part.tolist() == [[4, 70], [8, 10]]
    assert part.ptr == buffer.ptr + 16 and part.nbytes == 16 and memoryview(part).strides == (16, 8)
    with pytest.raises(ValueError, match="is not contiguous"):
        part.view()
    with pytest.raises(ValueError, match="not contiguous"):
        weft.put(part, part, weft.my_pe())
    with pytest.raises(BufferError, match="not in the requested order"):
        struct.unpack_from("f", part)
    row = buffer[2]
    buffer.free()
    with pytest.raises(ValueError, match="was freed"):
        row[0]


def test_wrong_keys():
    buffer = weft.zeros((2, 3))
    for key, error, message in [(2, IndexError, "index 2 is out of range: dimension 0 has 2"),
                                ((0, -4), IndexError, "index -4 is out of range: dimension 1 has 3"),
                                ((0, 0, 0), IndexError, "3 indices for 2 dimensions"),
                                ((..., ...), IndexError, "one Ellipsis"), ("a", TypeError, "'a' is not an index"),
                                ([0, 1], TypeError, r"numpy\(\) returns an array"), (1.0, TypeError, "1.0 is not an index"),
                                (2**70, IndexError, "cannot fit"), (slice(None, None, 0), ValueError, "zero"),
                                ((None,) * 15, IndexError, "more than 16 dimensions"),
                                ((0,) * 40, IndexError, "40 indices")]:
        with pytest.raises(error, match=message):
            buffer[key]
        with pytest.raises(error, match=message):
            buffer[key] = 1
    with pytest.raises(TypeError, match="cannot be deleted"):
        del buffer[0]


def test_iteration():
    buffer = counting((2, 3), "int16")
    assert [row.tolist() for row in buffer] == [[0, 1, 2], [3, 4, 5]]
    assert list(buffer[1]) == [3, 4, 5] and list(reversed(buffer[0])) == [2, 1, 0]
    assert 4 in buffer[1] and 9 not in buffer[1] and sum(buffer[1]) == 12
    alone = weft.zeros((), "int16")
    alone[()] = 5
    assert alone[()] == 5 == alone.tolist() and alone[...].shape == ()
    for use in (iter, len):
        with pytest.raises(TypeError, match="without dimensions"):
            use(alone)


def test_reshape():
    buffer = counting(12)
    assert buffer.reshape(3, 4).shape == buffer.reshape((3, 4)).shape == buffer.reshape([3, -1]).shape == (3, 4)
    assert buffer.reshape(3, 4)[1].tolist() == [4, 5, 6, 7] and buffer.reshape(-1, 1, 2).shape == (6, 1, 2)
    assert buffer[:1].reshape(()).tolist() == 0 and weft.zeros(0).reshape(-1, 3).shape == (0, 3)
    for wrong in ((5,), (5, -1), (-1, -1), (-2,), (2**62, 4)):
        with pytest.raises(ValueError, match="shape"):
            buffer.reshape(*wrong)


# --- Assignment ----------------------------------------------------------------------------------------

def test_assignment():
    buffer = weft.zeros((2, 3))
    buffer[:] = 7
    assert buffer.tolist() == [[7] * 3] * 2
    buffer[0] = range(3)
    buffer[:, 1] = [8, 9]
    assert buffer.tolist() == [[0, 8, 2], [7, 9, 7]]
    buffer[...] = [[1], [2]]
    assert buffer.tolist() == [[1] * 3, [2] * 3]
    buffer[:] = array.array("d", [1, 2, 3])
    buffer[1] = array.array("h", [4, 5, 6])
    assert buffer.tolist() == [[1, 2, 3], [4, 5, 6]]
    buffer[:] = buffer[::-1, ::-1]
    assert buffer.tolist() == [[6, 5, 4], [3, 2, 1]]
    buffer[0] = [True, array.array("f", [2])[0], weft.my_pe()]
    assert buffer[0].tolist() == [1, 2, weft.my_pe()]
    buffer[:] = [buffer[1], (0, 0, 0)]
    assert buffer.tolist() == [[3, 2, 1], [0, 0, 0]]
    buffer[0, :0] = []
    buffer.fill(0.5)
    assert buffer.tolist() == [[0.5] * 3] * 2
    buffer[:, ::2].fill(1)
    assert buffer.tolist() == [[1, 0.5, 1]] * 2


def test_overlapping_parts():
    buffer = counting(10, "int64")
    buffer[2:] = buffer[:-2]
    assert buffer.tolist() == [0, 1, 0, 1, 2, 3, 4, 5, 6, 7]
    buffer[::2] = buffer[5:]
    assert buffer.tolist() == [3, 1, 4, 1, 5, 3, 6, 5, 7, 7]


def test_large_parts():
    """Sizes that are copied without the GIL."""
    buffer = weft.empty((1000, 1000), "int32")
    buffer.fill(-3)
    buffer[1::2] = 9
    buffer[0] = range(1000)
    buffer[2:4] = buffer[:2]
    assert buffer[3].tolist() == [9] * 1000 and buffer[2].tolist() == list(range(1000)) and buffer[4, 999] == -3
    assert sum(memoryview(buffer[::, 7])) == 500 * 9 + 498 * -3 + 14


@pytest.mark.parametrize("value, error, message", [
    ([1, 2], ValueError, r"shape \(2,\) cannot be broadcast to shape \(3,\)"),
    ([[1, 2, 3], [4, 5, 6]], ValueError, r"\(2, 3\) cannot"), ([1, "2", 3], TypeError, "'2' cannot be stored as"),
    ([1, [2], 3], ValueError, "different lengths"), ([[1], 2, 3], ValueError, "different lengths"),
    ([1, 2, 1.5], TypeError, "1.5 cannot be stored as"), ([1, 2, 2**31], OverflowError, "out of range: -2147483648"),
    (array.array("d", [1, 2, 3]), TypeError, "elements of float64 cannot be stored as int32"),
    (array.array("q", [1, 2, 2**40]), OverflowError, "out of range"), ("abc", TypeError, "'abc' cannot be stored as"),
    ({1: 2}, TypeError, "cannot be stored as"), (memoryview(b"abcdef")[::2], None, None)], ids=str)
def test_wrong_values_change_nothing(value, error, message):
    buffer = weft.zeros(3, "int32")
    if error is None:
        buffer[:] = value
        assert buffer.tolist() == [97, 99, 101]
        return
    with pytest.raises(error, match=message):
        buffer[:] = value
    assert buffer.tolist() == [0, 0, 0]
    nested = []
    nested.append(nested)
    with pytest.raises(ValueError, match="nested more than 16 times"):
        buffer[:] = nested
    with pytest.raises(TypeError, match="cannot be stored as"):
        buffer.fill([1])


def test_values_of_numpy():
    if numpy is None:
        pytest.skip("numpy is not installed")
    buffer = weft.zeros((2, 3))
    buffer[:] = numpy.arange(6).reshape(3, 2).T
    assert buffer.tolist() == [[0, 2, 4], [1, 3, 5]]
    buffer[0, 0] = numpy.float32(9)
    buffer[1] = numpy.float64(2)
    assert buffer.tolist() == [[9, 2, 4], [2, 2, 2]]
    window = buffer[:, ::2].numpy()
    window[:] = 8
    assert buffer.tolist() == [[8, 2, 8], [8, 2, 8]] and window.ctypes.data == buffer.ptr
    table = numpy.zeros(2, [("a", "u1"), ("b", "<f4")])
    with pytest.raises(ValueError, match="strides that are no multiple"):
        buffer[0, :2] = table["b"]
    narrow = weft.zeros(3, "bfloat16")
    for use in (narrow.numpy, lambda: numpy.asarray(narrow), lambda: numpy.array(narrow)):
        with pytest.raises(BufferError, match="no format for bfloat16"):
            use()


def test_without_numpy():
    code = "import sys; sys.modules['numpy'] = None; import weft; weft.init(); weft.zeros(3).numpy()"
    environment = {name: value for name, value in __import__("os").environ.items() if not name.startswith("WEFT_")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert "ModuleNotFoundError: Buffer.numpy: numpy is not installed: pip install numpy" in done.stderr


def test_comparison_is_identity():
    buffer = weft.zeros(2)
    assert buffer == buffer and buffer != buffer[:] and buffer[:].tolist() == [0, 0] and {buffer: 1}[buffer] == 1
    with pytest.raises(TypeError):
        buffer < buffer


# --- A source that is the destination, too -------------------------------------------------------------

def test_overlapping_assignment():
    buffer = counting(4, "int32")
    buffer[::-1] = buffer
    assert buffer.tolist() == [3, 2, 1, 0]
    buffer[1::2] = buffer[0:2]
    assert buffer.tolist() == [3, 3, 1, 2]
    buffer[::2] = memoryview(buffer)[2:4]
    assert buffer.tolist() == [1, 3, 2, 2]
    buffer[1:] = buffer[:3]
    assert buffer.tolist() == [1, 1, 3, 2]
    table = counting((3, 3), "int32")
    table[:, 1] = table[0]
    assert table.tolist() == [[0, 0, 2], [3, 1, 5], [6, 2, 8]]
    stretched = counting((3, 2), "int32")
    stretched[:] = stretched.reshape(-1)[1:3]
    assert stretched.tolist() == [[1, 2]] * 3


def test_overlapping_assignment_at_a_peer(me, n, mapped):
    buffer = counting(4, "int32")
    weft.barrier()
    right = buffer.peer((me + 1) % n)
    right[::-1] = right
    weft.barrier()
    assert buffer.tolist() == [3, 2, 1, 0]


# --- Values that are too large, and those that free ----------------------------------------------------

def test_too_many_elements():
    buffer = weft.zeros(4, "float64")
    for many in (range(2**61), range(10**10), [range(2**62)] * 4):
        with pytest.raises(ValueError, match="cannot be broadcast to shape|more elements than memory"):
            buffer[:] = many
    assert buffer.tolist() == [0] * 4


class Freeing:
    """Frees a Buffer while its number is read, and makes another one at its address."""

    def __init__(self, buffer):
        self.buffer = buffer

    def __float__(self):
        self.buffer.free()
        self.made = weft.zeros(4, "float64")
        return 7.0

    def __index__(self):
        return int(float(self))


@pytest.mark.parametrize("way", ("element", "list", "fill", "key"))
def test_free_in_the_middle(way):
    buffer = weft.zeros(4, "float64")
    value = Freeing(buffer)
    if way == "element":
        buffer[0] = value
    elif way == "list":
        buffer[:] = [1, value, 3, 4]
    elif way == "fill":
        buffer.fill(value)
    else:
        with pytest.raises(IndexError):
            buffer[value] = 1
    assert value.made.tolist() == [0] * 4
    with pytest.raises(ValueError, match="was freed"):
        buffer[0]


@pytest.mark.skipif(numpy is None, reason="numpy is not installed")
@pytest.mark.parametrize("dtype", ("float64", "float16"))
def test_complex_numbers_of_numpy(dtype):
    buffer = weft.zeros(2, dtype)
    for number in (numpy.complex128(1 + 2j), numpy.complex64(1 + 2j), numpy.clongdouble(1 + 2j)):
        with pytest.raises(TypeError):
            buffer[:] = [1, number]
        with pytest.raises(TypeError):
            buffer.fill(number)
    with pytest.raises(TypeError):
        buffer[0] = numpy.complex128(1 + 2j)
    with pytest.raises(TypeError):
        buffer[:] = [numpy.complex64(1 + 2j), 2]
    assert buffer.tolist() == [0, 0]
    buffer[:] = [numpy.float32(1), numpy.longdouble(2)]
    assert buffer.tolist() == [1, 2]


def test_reversed_by_dlpack():
    table = counting((2, 3))
    for view in (table[::-1], table[:, ::-1], table[0, ::-1]):
        with pytest.raises(BufferError, match="is reversed"):
            view.__dlpack__()
    assert table[:1][::-1].__dlpack__() and table[::2].__dlpack__() and table[:0][::-1].__dlpack__()


# --- Text ----------------------------------------------------------------------------------------------

def test_values_in_text():
    buffer = weft.zeros((2, 2))
    buffer[:] = [[0.1, 1e30], [-3, math.nan]]
    assert repr(buffer) == "<weft.Buffer of float32, shape (2, 2), in host memory: [[0.1, 1e+30], [-3.0, nan]]>"
    assert repr(buffer[1, ::-1]).endswith(": [nan, -3.0]>") and repr(weft.zeros(())).endswith("(), in host memory: 0.0>")
    assert repr(counting(100, "int16")).endswith(": [0, 1, 2, ..., 97, 98, 99]>")
    assert repr(counting((50, 2), "uint8")).endswith(": [[0, 1], [2, 3], [4, 5], ..., [94, 95], [96, 97], [98, 99]]>")
    assert repr(weft.zeros(0)).endswith(": []>") and repr(weft.zeros((10,) * 4)).endswith("in host memory>")
    narrow = weft.zeros(3, "float8_e4m3fn")
    narrow[:] = [448, 0.1, 1 / 64]
    assert repr(narrow).endswith(": [448.0, 0.1, 0.016]>")
    waves = weft.zeros(2, "complex64")
    waves[:] = [0.1 - 1j, complex(0, math.inf)]
    assert repr(waves).endswith(": [0.1-1.0j, 0.0+infj]>")
    buffer.free()
    assert repr(buffer) == "<weft.Buffer of float32, shape (2, 2), in host memory, freed>"


# --- Peers ---------------------------------------------------------------------------------------------

def test_peers_index_too(me, n, mapped):
    buffer = counting((2, 3), "int32")
    weft.barrier()
    right = buffer.peer((me + 1) % n)
    right[1, me % 3] = 100 + me
    right[0, ::2] = [me, -me]
    weft.barrier()
    left = (me - 1) % n
    expected = [[left, 1, -left], [3, 4, 5]]
    expected[1][left % 3] = 100 + left
    assert buffer.tolist() == expected
    assert buffer[1:].peer((me + 1) % n).tolist() == right[1:].tolist() and right[1:].reshape(3)[me % 3] == 100 + me
    weft.barrier()
    buffer[:, 1:].peer((me + 1) % n)[:] = -7
    weft.barrier()
    assert buffer[:, 1:].tolist() == [[-7, -7]] * 2
