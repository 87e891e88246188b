# SPDX-License-Identifier: BSD-3-Clause
"""Strided and block-strided, and non-blocking puts and gets."""
import array

import pytest
import weft

CODES = {"uint8": "B", "int16": "h", "float32": "f", "float64": "d"}


def put_here(dest, source, dst, sst, bsize, nblocks):
    for block in range(nblocks):
        for i in range(bsize):
            dest[block * dst + i] = source[block * sst + i]


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("dst, sst, nelems", [(1, 1, None), (2, 1, None), (1, 3, None), (3, 2, 2), (2, 2, 0)])
def test_elements(dtype, dst, sst, nelems, me, n):
    right, left = (me + 1) % n, (me - 1) % n
    numbers = [list(range(10 * pe, 10 * pe + 7)) for pe in range(n)]
    count = min(-(-9 // dst), -(-7 // sst)) if nelems is None else nelems
    dest = weft.zeros(9, dtype)
    weft.iput(dest, array.array(CODES[dtype], numbers[me]), right, dst, sst, nelems)
    weft.barrier()
    expected = [0] * 9
    put_here(expected, numbers[left], dst, sst, 1, count)
    assert memoryview(dest).tolist() == expected
    source, got = weft.zeros(7, dtype), array.array(CODES[dtype], [0] * 9)
    memoryview(source)[:] = array.array(CODES[dtype], numbers[me])
    weft.barrier()
    weft.iget(got, source, right, dst, sst, nelems)
    expected = [0] * 9
    put_here(expected, numbers[right], dst, sst, 1, count)
    assert got.tolist() == expected


@pytest.mark.parametrize("bsize, dst, sst, nblocks, count", [(2, 3, 4, None, 3), (3, 3, 5, 2, 2), (2, 9, 2, None, 2),
                                                             (12, 1, 1, None, 0)])
def test_blocks(bsize, dst, sst, nblocks, count, me, n):
    right, left = (me + 1) % n, (me - 1) % n
    dest, source = weft.zeros(11, "int32"), weft.zeros(11, "int32")
    memoryview(source)[:] = array.array("i", range(100 * me, 100 * me + 11))
    weft.barrier()
    weft.ibput(dest, source, right, bsize, dst, sst, nblocks)
    weft.barrier()
    expected = [0] * 11
    put_here(expected, range(100 * left, 100 * left + 11), dst, sst, bsize, count)
    assert memoryview(dest).tolist() == expected
    got = array.array("i", [0] * 11)
    weft.ibget(got, source, right, bsize=bsize, dst=dst, sst=sst, nblocks=nblocks)
    expected = [0] * 11
    put_here(expected, range(100 * right, 100 * right + 11), dst, sst, bsize, count)
    assert got.tolist() == expected


def test_wide_elements_and_large_arrays(me, n):
    np = pytest.importorskip("numpy")
    dest, right = weft.zeros(60000, "complex128"), (me + 1) % n
    weft.iput(dest, np.arange(30000) + 1j * me, right, dst=2)
    weft.barrier()
    assert (np.asarray(dest)[::2] == np.arange(30000) + 1j * ((me - 1) % n)).all()
    assert not np.asarray(dest)[1::2].any()


def test_refused_strides(me, n):
    dest, four = weft.zeros(4), array.array("f", [1] * 4)
    for use, message in [
            (lambda: weft.iput(dest, four, me, 2, 1, 3), "iput: argument nelems is 3: dest has 4 elements and source 4"),
            (lambda: weft.iput(dest, four, me, 0), "argument dst is 0: pass 1 or more"),
            (lambda: weft.iget(four, dest, me, 1, -1), "argument sst is -1"),
            (lambda: weft.iput(dest, four, me, nelems=2**63), "argument nelems"),
            (lambda: weft.iput(dest, four, me, 2**62, 2**62, 2), "argument nelems is 2"),
            (lambda: weft.ibput(dest, four, me, 3, 2, 2, 2), "argument nblocks is 2: dest has 4 elements"),
            (lambda: weft.ibget(four, dest, me, 0, 1, 1), "argument bsize is 0"),
            (lambda: weft.iput(four, four, me), "argument dest is not symmetric"),
            (lambda: weft.iget(dest, four, me), "argument source is not symmetric"),
            (lambda: weft.iput(dest, array.array("d", [1]), me), "dest is of float32, but source is of float64"),
            (lambda: weft.iput(dest, four, n), f"argument pe is {n}")]:
        with pytest.raises(ValueError) as raised:
            use()
        assert message in str(raised.value)
    assert memoryview(dest).tolist() == [0] * 4


@pytest.mark.parametrize("nelems", [1, 1000, 100000])
def test_non_blocking(nelems, me, n):
    dest, right, left = weft.zeros(nelems), (me + 1) % n, (me - 1) % n
    weft.put_nbi(dest, array.array("f", [me + 1]) * nelems, right)
    weft.barrier()
    assert memoryview(dest)[nelems - 1] == left + 1
    got = array.array("f", [0]) * nelems
    weft.get_nbi(got, dest, right)
    weft.quiet()
    assert got[0] == me + 1
    with pytest.raises(ValueError, match="put_nbi: argument dest is not symmetric"):
        weft.put_nbi(got, got, me)
    with pytest.raises(TypeError, match="get_nbi: there is no argument 'stream'"):
        weft.get_nbi(got, dest, me, stream=None)


# --- all_to_alls -----------------------------------------------------------------------------------------


def strided_parts(n, me, source_of, dst, sst, nelems, size):
    """Returns dest's expected content after all_to_alls."""
    dest = [0] * size
    for rank in range(n):
        for i in range(nelems):
            dest[(rank * nelems + i) * dst] = source_of(rank)[(me * nelems + i) * sst]
    return dest


@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("dst, sst, nelems", [(1, 1, None), (2, 3, 1), (3, 1, 2), (1, 2, 0)])
def test_all_to_alls(dtype, dst, sst, nelems, me, n):
    size = 12 * n
    source, dest = weft.zeros(size, dtype), weft.zeros(size, dtype)
    of = lambda pe: [(3 * pe + i) % 100 for i in range(size)]  # noqa: E731
    source[:] = of(me)
    weft.all_to_alls(dest, source, dst, sst, nelems)
    count = size // n if nelems is None else nelems
    assert dest.tolist() == strided_parts(n, me, of, dst, sst, count, size)
    backwards = weft.world.split(n - 1, -1, n)
    dest.fill(0)
    weft.all_to_alls(dest, source, dst=2, sst=2, team=backwards)
    assert dest.tolist() == strided_parts(n, n - 1 - me, lambda rank: of(n - 1 - rank), 2, 2, 6, size)
    backwards.destroy()


def wrong_all_to_alls(n):
    source, dest, plain = weft.zeros(4 * n, "int32"), weft.zeros(4 * n, "int32"), array.array("i", [0] * 4 * n)
    return [((dest, plain), {}, "all_to_alls: argument source is not symmetric"),
            ((dest, source, 0), {}, "all_to_alls: argument dst is 0: pass 1 or more"),
            ((dest, source, 1, -1), {}, "all_to_alls: argument sst is -1"),
            ((dest, source, 2, 1, 3), {}, f"nelems is 3: dest has {4 * n} elements and source {4 * n}, enough for 2"),
            ((dest, weft.zeros(4 * n)), {}, "dest is of int32, but source is of float32"),
            ((dest, dest), {}, "arguments dest and source overlap: pass arrays that are apart"),
            ((dest,), {}, "argument source is missing"),
            ((dest, source), {"stream": None}, "stream"),
            ((dest, source, 1, 1, 1), {}, None), ((dest, source, 2), {}, None), ((source, dest), {}, None)], dest, source


@pytest.mark.parametrize("case", range(11))
def test_one_member_is_wrong_in_all_to_alls(case, me, n):
    cases, dest, source = wrong_all_to_alls(n)
    (wrong, names, message), culprit = cases[case], case % n
    if message is None and n == 1:
        return
    with pytest.raises((ValueError, TypeError)) as raised:
        weft.all_to_alls(*wrong, **names) if me == culprit else weft.all_to_alls(dest, source)
    if message:
        assert (message if me == culprit else f"PE {culprit} cannot take part") in str(raised.value)
    else:
        assert "the members' arguments differ: some pass a different" in str(raised.value)
    weft.all_to_alls(dest, source)


def test_different_calls_do_not_meet(me, n):
    """Calls in which members first compare their arguments detect different calls."""
    dest, source = weft.zeros(4 * n, "int32"), weft.zeros(4 * n, "int32")
    calls = [lambda: weft.all_to_alls(dest, source), lambda: weft.inscan(dest, source), lambda: weft.collect(dest, source[:4])]
    for i in range(3 if n > 1 else 0):
        with pytest.raises(ValueError, match="some make a different call, or pass a different op, than others"):
            calls[(i + (me > 0)) % 3]()
