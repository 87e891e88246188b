# SPDX-License-Identifier: BSD-3-Clause
"""Scans, reductions by bits, and collect; a wrong argument on one member raises on all."""
import array

import pytest
import weft

np = pytest.importorskip("numpy")


def filled(values, dtype):
    buffer = weft.zeros(len(values), dtype)
    np.asarray(buffer)[:] = values
    return buffer


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64", "float32", "float64", "complex64"])
@pytest.mark.parametrize("nelems", [0, 1, 7, 3000])
def test_scans(dtype, nelems, me, n):
    of = lambda pe: np.arange(nelems) % 5 + pe  # noqa: E731
    source, dest = filled(of(me), dtype), weft.zeros(nelems, dtype)
    upto = [sum((of(pe) for pe in range(k)), np.zeros(nelems)) for k in range(n + 1)]
    weft.inscan(dest, source)
    np.testing.assert_array_equal(np.asarray(dest), upto[me + 1].astype(dtype))
    weft.exscan(np.asarray(dest), source)
    np.testing.assert_array_equal(np.asarray(dest), upto[me].astype(dtype))
    weft.inscan(source)
    np.testing.assert_array_equal(np.asarray(source), upto[me + 1].astype(dtype))


def test_scans_of_teams(me, n):
    dest = filled([me + 1], "int32")
    with weft.world.split(n - 1, -1, n) as backwards:
        weft.exscan(dest, team=backwards)
        assert memoryview(dest)[0] == sum(range(me + 2, n + 1))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64", "complex64", "complex128"])
def test_short_scans_have_the_bits_of_long_ones(dtype, me, n):
    """Short sources, which travel with the members' agreement, are added in C's order: sums round and wrap in the same
    way."""
    rng = np.random.default_rng(me)
    kind = np.dtype(dtype).kind
    value = rng.integers(100, 127, 1).astype(dtype) << (8 * np.dtype(dtype).itemsize - 8) if kind == "i" \
        else (rng.standard_normal(1) * 10.0 ** rng.integers(-3, 9)).astype(dtype) * (1 - 3j if kind == "c" else 1)
    short, long = weft.zeros(1, dtype), weft.zeros(1000, dtype)
    for scan in (weft.inscan, weft.exscan):
        short.numpy()[:] = long.numpy()[:] = value
        scan(short)
        scan(long)
        assert short.numpy().tobytes() == long.numpy()[999:].tobytes()


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64"])
def test_bits(dtype, me, n):
    source, dest = filled([1 << me, 7, 6 if me else 12], dtype), weft.zeros(3, dtype)
    for op, expected in [("or", [2**n - 1, 7, 14 if n > 1 else 12]), ("and", [1 if n == 1 else 0, 7, 4 if n > 1 else 12]),
                         ("xor", [2**n - 1, 7 * (n % 2), 12 ^ 6 * ((n - 1) % 2)])]:
        weft.all_reduce(dest, source, op)
        assert np.asarray(dest).tolist() == expected
    with pytest.raises(NotImplementedError, match="which streams do not support"):
        weft.all_reduce(dest, source, "or", stream=0)


def test_bits_on_a_stream_meet_the_others(me, n):
    """A member with a wrong array does not wait for a member that passes a stream."""
    dest, source = weft.zeros(4, "int32"), weft.zeros(4, "int32")
    if n == 1:
        return
    with pytest.raises((NotImplementedError, ValueError)) as raised:
        weft.all_reduce(dest, np.ones(4, "int32") if me else source, "and", stream=None if me else 0)
    assert ("source is not symmetric" if me else "which streams do not support") in str(raised.value)


def test_members_make_different_calls(me, n):
    dest, source = weft.zeros(4, "int32"), filled([me + 1] * 4, "int32")
    if n == 1:
        return
    for call in [lambda: weft.all_reduce(dest, source, "and" if me else "or"),
                 lambda: (weft.inscan if me else weft.exscan)(dest, source)]:
        with pytest.raises(ValueError, match="some make a different call, or pass a different op, than others"):
            call()
        assert memoryview(dest).tolist() == [0] * 4


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
def test_collect(dtype, me, n):
    counts = [(3 * pe) % 5 for pe in range(n)]
    dest = np.full(sum(counts) + 1, 99, dtype)
    assert weft.collect(dest, np.full(counts[me], me, dtype)) == tuple(counts)
    assert dest.tolist() == [pe for pe in range(n) for _ in range(counts[pe])] + [99]
    symmetric = weft.zeros(100000 * n, dtype)
    counts = weft.collect(symmetric, np.full(100000 - me, me + 1, dtype))
    assert counts == tuple(100000 - pe for pe in range(n))
    assert np.asarray(symmetric)[sum(counts) - 1] == n


@pytest.mark.parametrize("longest", [1, 12, 13, 200])
def test_collect_of_short_and_long_sources(longest, me, n):
    """Sizes at which elements travel with the sizes, and sizes at which they do not; nothing is written past the end.
    """
    counts = [longest if pe == n - 1 else pe % 3 for pe in range(n)]
    dest = np.full(sum(counts) + 2, -1, "float32")
    assert weft.collect(dest[:-2], np.full(counts[me], me, "float32")) == tuple(counts)
    assert dest.tolist() == [pe for pe in range(n) for _ in range(counts[pe])] + [-1, -1]


@pytest.mark.parametrize("nelems", [1, 100])
def test_collect_without_room_on_one(nelems, me, n):
    source, dest = np.ones(nelems), np.zeros(nelems * n - (me == 0))
    with pytest.raises(ValueError) as raised:
        weft.collect(dest, source)
    whose = "dest has" if me == 0 else "dest of PE 0 has"
    assert f"{whose} {nelems * n - 1} elements, but the members contribute {nelems * n}" in str(raised.value)
    assert not dest.any()


def test_collect_of_different_types(me, n):
    if n > 1:
        dest = np.zeros(2 * n, "float32" if me else "int32")
        with pytest.raises(ValueError, match="some pass arrays of a different type than others"):
            weft.collect(dest, np.ones(2, dest.dtype))
        assert not dest.any()


def test_collect_nothing_and_teams(me, n):
    assert weft.collect(b"" if me else bytearray(), b"") == (0,) * n if n == 1 else True
    members = weft.world.split(0, 1, 1)
    if members:
        dest = array.array("i", [0, 0])
        assert weft.collect(dest, array.array("i", [1, 2]), team=members) == (2,)
        assert dest.tolist() == [1, 2]
        members.destroy()


def wrong_calls(n):
    symmetric, other, plain = filled([1] * 4, "int32"), filled([2] * 4, "int32"), np.ones(4, "int32")
    room = np.zeros(4 * n, "int32")
    part, half = symmetric.view(2), weft.zeros(4, "float16")
    good = (other, symmetric)
    return [
        ("inscan", good, (other, plain), "argument source is not symmetric"),
        ("exscan", good, (plain, symmetric), "argument dest is not symmetric"),
        ("inscan", good, (other, part), "dest has 4 elements, expected 2"),
        ("inscan", good, (half,), "argument dest is of float16: pass whole numbers, float32"),
        ("inscan", (symmetric,), (symmetric, [1]), "pass an array"),
        ("exscan", good, (other,), None),
        ("exscan", (part,), (symmetric.view(2, offset=8),), None),
        ("inscan", (part, other.view(2)), (part, symmetric.view(2, offset=4)), "dest and source overlap"),
        ("exscan", good, (other, symmetric, 3), "at most 2 may be given without their names"),
        ("all_reduce", (other, symmetric, "or"), (other, plain, "or"), "argument source is not symmetric"),
        ("all_reduce", (other, symmetric, "and"), (other, symmetric, "sum"), None),
        ("all_reduce", (other, symmetric, "xor"), (weft.zeros(4), weft.zeros(4), "xor"), "dest is of float32"),
        ("collect", (room, plain), (room[:2], plain), "members contribute"),
        ("collect", (room, plain), (room, np.ones(4)), "dest is of int32, but source is of float64"),
        ("collect", (room, plain), (room,), "argument source is missing"),
    ]


@pytest.mark.parametrize("case", range(15))
def test_one_member_is_wrong(case, me, n):
    name, right, wrong, message = wrong_calls(n)[case]
    call, culprit = getattr(weft, name), case % n
    if message is None and n == 1:
        return
    # If a member makes a different call, every member raises RuntimeError.
    with pytest.raises((ValueError, TypeError, RuntimeError)) as raised:
        call(*(wrong if me == culprit else right))
    if message and me == culprit:
        assert message in str(raised.value)
    elif message:
        assert f"PE {culprit}" in str(raised.value)
    call(*right)
