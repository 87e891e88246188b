# SPDX-License-Identifier: BSD-3-Clause
"""Collectives and matrix products on arrays: values against plain arithmetic, and a wrong argument on
one member, which raises on all.
"""
import array

import pytest
import weft

np = pytest.importorskip("numpy")

FLOATS = ["float32", "float64", "float16"]
OPS = {"sum": np.sum, "avg": np.mean, "max": np.max, "min": np.min, "prod": np.prod}


def of_pe(pe, shape, dtype="float32"):
    """Returns PE pe's input: small integers, so that every order of addition gives the same result."""
    return np.random.default_rng(1000 + pe).integers(-4, 5, shape).astype(dtype)


def of_all(n, shape, dtype="float32"):
    return np.stack([of_pe(pe, shape, dtype) for pe in range(n)])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", OPS)
def test_all_reduce(op, dtype, me, n):
    for nelems in (0, 1, 5, 3000):
        dest = np.full(nelems, 77, dtype)
        weft.all_reduce(dest, of_pe(me, nelems, dtype), op)
        np.testing.assert_allclose(dest, OPS[op](of_all(n, nelems, "float64"), axis=0), rtol=1e-3)


def test_all_reduce_in_place_of_any_shape(me, n):
    for dest in (of_pe(me, (3, 4)), weft.zeros((3, 4))):
        np.asarray(dest)[:] = of_pe(me, (3, 4))
        weft.all_reduce(dest)
        np.testing.assert_array_equal(dest, of_all(n, (3, 4)).sum(0))


def test_all_reduce_without_numpy(me, n):
    values = array.array("d", [me, 1])
    weft.all_reduce(values)
    assert values.tolist() == [n * (n - 1) / 2, n]


def test_all_gather(me, n):
    dest = np.zeros((n, 2, 3), "float32")
    weft.all_gather(dest, of_pe(me, (2, 3)))
    np.testing.assert_array_equal(dest, of_all(n, (2, 3)))
    dest[me] = of_pe(me, (2, 3)) + 1
    weft.all_gather(dest, dest[me])
    np.testing.assert_array_equal(dest, of_all(n, (2, 3)) + 1)


def test_reduce_scatter(me, n):
    for op in OPS:
        dest = np.zeros(5, "float64")
        weft.reduce_scatter(dest, of_pe(me, (n, 5), "float64"), op)
        np.testing.assert_allclose(dest, OPS[op](of_all(n, (n, 5), "float64")[:, me], axis=0))


def test_teams(me, n):
    if n < 3:
        pytest.skip("needs three PEs")
    odd = weft.world.split(1, 2, n // 2)
    even = weft.world.split(0, 2, (n + 1) // 2)
    mine = odd or even
    assert (odd is None) == (me % 2 == 0) and mine.pes == tuple(range(me % 2, n, 2))
    assert (mine.rank, mine.size) == (me // 2, len(mine.pes))
    values = np.array([me], "float32")
    weft.all_reduce(values, team=mine)
    assert values[0] == sum(mine.pes)
    mine.barrier()
    mine.sync()
    handle = mine.handle
    mine.destroy()
    assert handle != 0
    for use in (lambda: mine.rank, mine.sync, lambda: weft.all_reduce(values, team=mine), mine.destroy):
        with pytest.raises(ValueError, match="team was destroyed"):
            use()


def test_split_is_wrong(me, n):
    with pytest.raises(ValueError, match=f"start {n}, stride 1 and size 1 exceed the team's ranks 0 to {n - 1}"):
        weft.world.split(n, 1, 1)
    with pytest.raises(ValueError):
        weft.world.split(0, 1, 1 if me else n + 1)
    with pytest.raises(ValueError, match="the world ends with finalize"):
        weft.world.destroy()
    with weft.world.split(0, 1, n) as team:
        assert team.size == n
    assert "gone" in repr(team)


def test_reserve(me, n):
    weft.reserve(weft.world, 1 << 20)
    with pytest.raises(MemoryError):
        weft.reserve(weft.world, 1 << 60)
    with pytest.raises((ValueError, MemoryError)):
        weft.reserve(weft.world, -1 if me == n - 1 else 10)


# --- Matrix products --------------------------------------------------------------------------------

def test_all_gather_matmul(me, n):
    a, b1, b2 = of_pe(me, (3, 4)), of_pe(7, (4, 5)), of_pe(8, (4, 2))
    whole = of_all(n, (3, 4)).reshape(-1, 4)
    c1, c2, full = np.zeros((3 * n, 5), "f"), np.zeros((3 * n, 2), "f"), np.zeros((3 * n, 4), "f")
    weft.all_gather_matmul([c1, c2], a, [b1, b2], full)
    np.testing.assert_allclose(c1, whole @ b1)
    np.testing.assert_allclose(c2, whole @ b2)
    np.testing.assert_array_equal(full, whole)
    c1[:] = 0
    weft.all_gather_matmul(c1, a, b1)
    np.testing.assert_allclose(c1, whole @ b1)


def test_rows_apart(me, n):
    """Parts of larger matrices: rows are contiguous, the next begins further on."""
    a = np.zeros((3, 10), "f")[:, 2:6]
    a[:] = of_pe(me, (3, 4))
    c = np.zeros((3 * n, 8), "f")
    weft.all_gather_matmul(c[:, 1:6], a, of_pe(7, (4, 5)))
    np.testing.assert_allclose(c[:, 1:6], of_all(n, (3, 4)).reshape(-1, 4) @ of_pe(7, (4, 5)))
    assert (c[:, 0] == 0).all() and (c[:, 6:] == 0).all()
    c = np.zeros((3 * n, 5), "f")
    for wrong in (of_pe(me, (3, 4))[::-1], of_pe(me, (3, 8))[:, ::2], of_pe(me, (4, 3)).T[:, ::-1],
                  np.broadcast_to(of_pe(me, (3, 1)), (3, 4)), np.broadcast_to(of_pe(me, 4), (3, 4))):
        with pytest.raises(ValueError, match="argument a_shard does not have contiguous rows or columns"):
            weft.all_gather_matmul(c, wrong, of_pe(7, (4, 5)))
    with pytest.raises(ValueError, match="argument c does not have contiguous rows, one"):
        weft.all_gather_matmul(np.zeros((5, 3 * n), "f").T, of_pe(me, (3, 4)), of_pe(7, (4, 5)))


def layouts(values):
    """Returns the matrix in each layout that a factor may have."""
    rows, cols = values.shape
    wide, high = np.full((rows, cols + 3), np.nan, values.dtype), np.full((cols, rows + 2), np.nan, values.dtype)
    wide[:, 1:-2] = values
    high[:, 2:] = values.T
    symmetric = np.asarray(weft.zeros((cols, rows), str(values.dtype)))
    symmetric[:] = values.T
    return [values, wide[:, 1:-2], np.asfortranarray(values), values.T.copy().T, high[:, 2:].T, symmetric.T]


@pytest.mark.parametrize("rows, k, cols", [(3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1), (0, 4, 5), (3, 0, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_transposed_factors(dtype, rows, k, cols, me, n):
    """Factors in all layouts, other ones on other PEs; those of one row or column have several meanings."""
    a, b = of_pe(me, (rows, k)).astype(dtype), of_pe(7, (k, cols)).astype(dtype)
    whole = np.concatenate([of_pe(pe, (rows, k)) for pe in range(n)]).astype(dtype)
    lefts, rights = layouts(a), layouts(b)
    for i in range(6):
        left, right = lefts[(i + me) % 6], rights[5 - i]
        c, full = np.full((rows * n, cols), np.nan, dtype), np.full((rows * n, k), np.nan, dtype)
        weft.all_gather_matmul(c, left, right, full)
        np.testing.assert_allclose(c, whole @ b, rtol=1e-3)
        np.testing.assert_array_equal(full, whole)
        c = np.full((rows, cols), np.nan, dtype)
        weft.matmul_all_reduce(c, left, right)
        expected = sum(of_pe(pe, (rows, k)).astype(dtype) @ b for pe in range(n))
        np.testing.assert_allclose(c, expected, rtol=1e-2)


def test_columns_of_one_row(me, n):
    """A row whose elements are apart is a transposed matrix; a column is one in any case."""
    values, c = of_pe(me, (4, 6)), np.zeros((n, 1), "f")
    weft.all_gather_matmul(c, values[1:2, ::2], values[:3, 2:3])
    np.testing.assert_allclose(c, of_all(n, (4, 6))[:, 1, ::2] @ values[:3, 2:3])


@pytest.mark.parametrize("op", ["sum", "avg"])
def test_reduced_products(op, me, n):
    a, b = of_all(n, (2 * n, 3)), of_all(n, (3, 5))
    expected = OPS[op](a @ b, axis=0)
    c = np.zeros((2, 5), "f")
    weft.matmul_reduce_scatter(c, a[me], b[me], op)
    np.testing.assert_allclose(c, expected[2 * me:2 * me + 2], rtol=1e-6)
    c = np.zeros((2 * n, 5), "f")
    weft.matmul_all_reduce(c, a[me], b[me], op)
    np.testing.assert_allclose(c, expected, rtol=1e-6)


# --- Products of 8 bits ------------------------------------------------------------------------------

# The bytes of small whole numbers in float8_e4m3fn.
EIGHT = {0: 0x00, 1: 0x38, 2: 0x40, 3: 0x44, 4: 0x48, -1: 0xb8, -2: 0xc0, -3: 0xc4, -4: 0xc8}


def eight_bits(values):
    """The same numbers as a Buffer of float8_e4m3fn."""
    buffer = weft.empty(values.shape, "float8_e4m3fn")
    np.asarray(buffer.view(values.shape, "uint8"))[:] = np.vectorize(EIGHT.get, otypes=["uint8"])(values)
    return buffer


def test_all_gather_scaled_matmul(me, n):
    a, b1, b2 = of_pe(me, (2, 4)), of_pe(7, (4, 3)), of_pe(8, (4, 2))
    whole = of_all(n, (2, 4)).reshape(-1, 4)
    rows, cols = np.arange(2, dtype="f") + me + 1, np.arange(3, dtype="f") + 1
    all_rows = np.concatenate([np.arange(2) + pe + 1 for pe in range(n)])[:, None]
    c1, c2, full = np.zeros((2 * n, 3), "f"), np.zeros((2 * n, 2), "f"), weft.empty((2 * n, 4), "float8_e4m3fn")
    bias = np.array([10, 20], "f")
    shards = eight_bits(a), [eight_bits(b1), eight_bits(b2)]
    weft.all_gather_scaled_matmul([c1, c2], *shards, rows, [cols, 0.5], [None, bias], full)
    np.testing.assert_allclose(c1, whole @ b1 * all_rows * cols)
    np.testing.assert_allclose(c2, whole @ b2 * all_rows * 0.5 + bias)
    assert bytes(memoryview(full.view(dtype="uint8")))[8 * me:8 * me + 8] == bytes(memoryview(shards[0].view(dtype="uint8")))
    weft.all_gather_scaled_matmul(c1, shards[0], shards[1][0], 1, cols.reshape(1, 3), np.ones((1, 3), "f"))
    np.testing.assert_allclose(c1, whole @ b1 * cols + 1)


def test_scaled_matmul_reduce_scatter(me, n):
    a, b = of_all(n, (2 * n, 3)), of_all(n, (3, 5))
    bias = np.arange(5, dtype="f")
    c = np.zeros((2, 5), "f")
    weft.scaled_matmul_reduce_scatter(c, eight_bits(a[me]), eight_bits(b[me]), 0.5, 2.0, bias if me == 0 else None)
    np.testing.assert_allclose(c, ((a @ b).sum(0) + bias)[2 * me:2 * me + 2])
    weft.scaled_matmul_reduce_scatter(c, eight_bits(a[me]), eight_bits(b[me]), np.full((2 * n, 1), 2, "f"), 1, op="avg")
    np.testing.assert_allclose(c, 2 * (a @ b).mean(0)[2 * me:2 * me + 2], rtol=1e-6)


def test_scaled_products_are_wrong(me, n):
    a, b = eight_bits(of_pe(me, (2 * n, 3))), eight_bits(of_pe(7, (3, 5)))
    c, plain = np.zeros((2, 5), "f"), np.zeros((3, 5), "f")
    for wrong, message in [((c, a, plain, 1, 1), "argument b is of float32: pass float8_e4m3fn or float8_e5m2"),
                           ((c, a, b, np.ones(1), 1), "argument a_scale is of float64: pass float32"),
                           ((c, a, b, "1", 1), "argument a_scale is '1'"),
                           ((c, a, b, np.ones(3, "f"), 1), "a_scale"), ((c, a, b, 1, np.ones(2, "f")), "b_scale"),
                           ((c, a, b, 1, 1, np.ones(2, "f")), "bias"), ((c, a, b, None, 1), "a_scale")]:
        with pytest.raises((ValueError, TypeError)) as raised:
            weft.scaled_matmul_reduce_scatter(*(wrong if me == 0 else (c, a, b, 1, 1)))
        assert (message if me == 0 or n == 1 else "PE 0") in str(raised.value)
    with pytest.raises(ValueError, match="got 1 matrices b and 2 b_scale"):
        weft.all_gather_scaled_matmul(np.zeros((2 * n * n, 5), "f"), a, b, 1, [1, 1])


# --- A wrong argument on one member -----------------------------------------------------------------

def wrong_calls():
    f, d, i = np.ones(4, "f"), np.ones(4, "d"), np.ones(4, "i")
    m = np.ones((4, 4), "f")
    frozen = np.ones(4, "f")
    frozen.flags.writeable = False
    return [
        ("all_reduce", (f,), (f, d), "dest is of float32, but source is of float64"),
        ("all_reduce", (f,), (f, f, "nand"), "argument op is 'nand'"),
        ("all_reduce", (f,), (f, f[:2]), "dest has 4 elements, expected 2"),
        ("all_reduce", (f,), (frozen,), "argument dest is read-only"),
        ("all_reduce", (f,), ([1, 2],), "pass an array"),
        ("all_gather", (np.ones(4 * weft.n_pes(), "f"), f), (np.ones(3, "f"), f), "argument dest has 3 elements"),
        ("reduce_scatter", (f, np.ones(4 * weft.n_pes(), "f")), (f, np.ones(5, "f")), "argument source has 5"),
        ("matmul_all_reduce", (m, m, m), (m, m, f), "argument b has 1 dimensions: pass a matrix"),
        ("matmul_all_reduce", (m, m, m), (m, m, m[:3]), "b->rows is 3"),
        ("matmul_reduce_scatter", (m, np.ones((4 * weft.n_pes(), 4), "f"), m), (m, m, m.astype("i")),
         "argument b is of int32: pass float32"),
        ("all_gather_matmul", (np.ones((4 * weft.n_pes(), 4), "f"), m, m), ([m, m], m, [m]), "got 1 matrices b and 2 c"),
        ("all_reduce", (f,), (i[::2],), "not contiguous"),
    ]


@pytest.mark.parametrize("case", range(12))
def test_one_member_is_wrong(case, me, n):
    name, right, wrong, message = wrong_calls()[case]
    call = getattr(weft, name)
    culprit = case % n
    with pytest.raises((ValueError, TypeError)) as raised:
        call(*(wrong if me == culprit else right))
    if me == culprit:
        assert message in str(raised.value)
    else:
        assert raised.type is ValueError and f"PE {culprit}" in str(raised.value)
    call(*right)


# --- Random shapes ----------------------------------------------------------------------------------

try:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
except ImportError:
    @pytest.mark.skip(reason="hypothesis is not installed")
    def test_random_shapes():
        pass
else:
    # The same examples on all PEs; a failing example is not shrunk, because the other PEs would not follow.
    alike = settings(derandomize=True, database=None, deadline=None, max_examples=40,
                     phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))

    @alike
    @given(nelems=st.integers(0, 5000), dtype=st.sampled_from(FLOATS), op=st.sampled_from(sorted(OPS)),
           symmetric=st.booleans(), start=st.integers(0, 7))
    def test_random_shapes(nelems, dtype, op, symmetric, start):
        me, n = weft.my_pe(), weft.n_pes()
        members = range(start % n, n)
        team = weft.world.split(start % n, 1, len(members))
        if team is not None:
            source = np.asarray(weft_like(nelems, dtype, team)) if symmetric and len(members) == n \
                else np.empty(nelems, dtype)
            source[:] = of_pe(me, nelems, dtype)
            dest = np.zeros(nelems, dtype)
            weft.all_reduce(dest, source, op, team=team)
            expected = OPS[op](np.stack([of_pe(pe, nelems, "float64") for pe in members]), axis=0)
            np.testing.assert_allclose(dest, expected, rtol=1e-3)
            gathered = np.zeros((len(members), nelems), dtype)
            weft.all_gather(gathered, source, team=team)
            np.testing.assert_array_equal(gathered, np.stack([of_pe(pe, nelems, dtype) for pe in members]))
            team.destroy()

    def weft_like(nelems, dtype, team):
        assert team.size == weft.n_pes()
        return weft.empty(nelems, dtype)

    @alike
    @given(rows=st.integers(0, 9), inner=st.integers(1, 9), cols=st.integers(1, 9), pad=st.integers(0, 3),
           dtype=st.sampled_from(["float32", "float64"]))
    def test_random_products(rows, inner, cols, pad, dtype):
        me, n = weft.my_pe(), weft.n_pes()
        a = np.zeros((rows, inner + pad), dtype)[:, :inner]
        a[:] = of_pe(me, (rows, inner), dtype)
        b = of_pe(50, (inner, cols), dtype)
        c = np.zeros((rows * n, cols + pad), dtype)
        weft.all_gather_matmul(c[:, :cols], a, b)
        np.testing.assert_allclose(c[:, :cols], of_all(n, (rows, inner), dtype).reshape(-1, inner) @ b)
        partial = of_pe(me, (rows * n, inner), dtype)
        piece = np.zeros((rows, cols), dtype)
        weft.matmul_reduce_scatter(piece, partial, b)
        expected = of_all(n, (rows * n, inner), dtype).sum(0) @ b
        np.testing.assert_allclose(piece, expected[rows * me:rows * (me + 1)])


# --- All to all -------------------------------------------------------------------------------------

def test_broadcast(me, n):
    for root in range(n):
        dest = np.full((2, 3), -1, "int16")
        weft.broadcast(dest, of_pe(root, (2, 3), "int16") if me == root else None, root)
        np.testing.assert_array_equal(dest, of_pe(root, (2, 3), "int16"))
        dest[:] = me
        weft.broadcast(dest, root=root)
        assert (dest == root).all()
    with pytest.raises(ValueError, match=f"argument root is {n}" if me == 0 else f"root is {n}|PE 0"):
        weft.broadcast(dest, root=n if me == 0 else 0)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64", "bool", "complex128", "float32"])
def test_every_type_moves(dtype, me, n):
    mine = of_pe(me, (n, 3), dtype)
    dest = np.zeros((n, 3), dtype)
    weft.all_to_all(dest, mine)
    np.testing.assert_array_equal(dest, of_all(n, (n, 3), dtype)[:, me])
    gathered = np.zeros((n, n, 3), dtype)
    weft.all_gather(gathered, mine)
    np.testing.assert_array_equal(gathered, of_all(n, (n, 3), dtype))


def test_integers_add_up(me, n):
    for dtype in ("int8", "int64", "uint32"):
        values = np.array([me + 1, 2, 3], dtype)
        weft.all_reduce(values)
        assert values.tolist() == [n * (n + 1) // 2, 2 * n, 3 * n]
    with pytest.raises(ValueError):
        weft.all_reduce(np.ones(3, "int32"), op="avg")


def test_an_op_is_wrong(me, n):
    """The error lists the values that the call accepts."""
    five = "'sum', 'avg', 'max', 'min', 'prod'"
    for op in ("mean", 3):
        with pytest.raises(ValueError, match=f"argument op is {op!r}: pass {five}, 'and', 'or', 'xor'$"):
            weft.all_reduce(np.ones(3, "int32"), op=op)
        with pytest.raises(ValueError, match=f"argument op is {op!r}: pass {five}$"):
            weft.reduce_scatter(np.ones(1, "f"), np.ones(n, "f"), op=op)


def test_all_to_all_is_wrong(me, n):
    with pytest.raises(ValueError, match=f"dest has 1 elements, expected {2 * n}"):
        weft.all_to_all(np.zeros(1, "f"), np.zeros(2 * n, "f"))
    if n > 1:
        with pytest.raises(ValueError, match=f"source has {n + 1} elements, which cannot be divided by {n} members"):
            weft.all_to_all(np.zeros(n + 1, "f"), np.zeros(n + 1, "f"))


def counts(n):
    """counts[r][s]: the number of elements that r sends to s."""
    return np.array([[(3 * r + 5 * s) % 4 for s in range(n)] for r in range(n)])


def test_all_to_allv(me, n):
    sends = counts(n)
    source = np.concatenate([np.full(sends[me][s], 100 * me + s, "int32") for s in range(n)])
    dest = np.full(sends[:, me].sum() + 2, -1, "int32")
    weft.all_to_allv(dest, source, sends[:, me], sends[me].tolist())
    expected = np.concatenate([np.full(sends[r][me], 100 * r + me, "int32") for r in range(n)])
    np.testing.assert_array_equal(dest, [*expected, -1, -1])


def test_all_to_allv_with_offsets_and_parts(me, n):
    """Two parts for each pair; those of dest are in reverse order."""
    sizes = np.tile([1, 2], n)
    source = np.arange(3 * n, dtype="float64") + 1000 * me
    dest = np.zeros(3 * n, "float64")
    ends = 3 * n - np.cumsum(sizes)
    weft.all_to_allv(dest, source, sizes, sizes, dest_offsets=ends, nparts=2)
    for r in range(n):
        for k in range(2):
            begin, size = 3 * me + k, k + 1
            at = ends[2 * r + k]
            np.testing.assert_array_equal(dest[at:at + size], 1000 * r + np.arange(begin, begin + size))


def test_all_to_allv_is_wrong(me, n):
    f = np.zeros(n, "f")
    ones, twos = [1] * n, [2] * n
    for wrong, message in [
            ((f, f.copy(), ones, twos[:-1]), "source_nelems has"), ((f, f.copy(), ones, twos), "of source has 2 elements"),
            ((f, f.copy(), [n + 1] * n, ones), "of dest has"), ((f, f.copy(), [-1] * n, ones), "dest_nelems is -1"),
            ((f, f.copy(), ones, 3), "argument source_nelems is 3")]:
        with pytest.raises((ValueError, TypeError)) as raised:
            weft.all_to_allv(*(wrong if me == 0 else (f, f.copy(), ones, ones)))
        assert (message if me == 0 else "PE 0") in str(raised.value)
    with pytest.raises(ValueError):
        weft.all_to_allv(f, f.copy(), [0] + ones[1:] if me == n - 1 else ones, ones)


def test_all_to_allv_on_device(me, n):
    """Two parts for each pair; dest by part, with alignment."""
    sends = np.array([[[(3 * r + 5 * s + k) % 4 for k in range(2)] for s in range(n)] for r in range(n)])
    rows = sends[me].sum()
    source = np.arange(3 * rows, dtype="float64").reshape(rows, 3) + 1000 * me
    dest = np.full((8 * n + 16, 3), -1.0)
    splits, offsets = np.zeros((2, n), "int64"), np.zeros((2, n), "int64")
    weft.all_to_allv_on_device(dest, source, splits, offsets, sends[me].astype("int64"), nparts=2, dest_by_part=True,
                               align=4)
    np.testing.assert_array_equal(splits, sends[:, me].T)
    at = 0
    for k in range(2):
        begin = at
        for r in range(n):
            first = sends[r].reshape(-1)[:2 * me + k].sum()
            count = sends[r, me, k]
            assert offsets[k, r] == at
            expected = np.arange(3 * first, 3 * (first + count)).reshape(count, 3) + 1000 * r
            np.testing.assert_array_equal(dest[at:at + count], expected)
            at += count
        at = begin + max(4, -(-(at - begin) // 4) * 4)
    assert (dest[at:] == -1).all()


def test_all_to_allv_on_device_is_wrong(me, n):
    rows, ones = np.zeros((n, 2), "f"), np.ones(n, "int64")
    right = (rows.copy(), rows, ones.copy(), ones.copy(), ones)
    for wrong, message in [((rows.copy(), rows[:, :1].copy(), *right[2:]), "dest has rows of 2 elements, but source"),
                           ((*right[:4], ones.astype("int32")), "source_splits has elements of type int32: pass int64"),
                           ((*right[:4], np.ones(n + 1, "int64")), "source_splits has"),
                           ((*right[:4], 2 * ones), "but source has")]:
        with pytest.raises(ValueError) as raised:
            weft.all_to_allv_on_device(*(wrong if me == 0 else right))
        assert (message if me == 0 else "PE 0") in str(raised.value)
    with pytest.raises(RuntimeError, match="receives rows up to row"):
        weft.all_to_allv_on_device(right[0][:n - 1] if me == 0 else right[0], *right[1:])
    weft.all_to_allv_on_device(*right)


def test_all_reduce_rms_norm(me, n):
    draw = [np.random.default_rng(r) for r in range(n)]
    sources = [each.standard_normal((3, 2, 16)).astype("f") for each in draw]
    same = np.random.default_rng(99)
    bias, weight, residual = (same.standard_normal(shape).astype("f") for shape in ((16,), (16,), (3, 2, 16)))
    out, z = np.zeros_like(residual), np.zeros_like(residual)
    weft.all_reduce_rms_norm(out, sources[me], z, bias=bias, residual=residual, weight=weight, epsilon=1e-3)
    wanted = sum(source.astype("d") for source in sources) + bias + residual
    np.testing.assert_allclose(z, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out, wanted / np.sqrt((wanted ** 2).mean(-1, keepdims=True) + 1e-3) * weight, rtol=1e-4,
                               atol=1e-5)
    narrow, scales = weft.zeros((3, 2, 16), "float8_e4m3fn"), np.zeros((3, 2, 2), "f")
    weft.all_reduce_rms_norm(out, sources[me], z, quantized=narrow, scales=scales, group=8)
    np.testing.assert_allclose(scales, np.abs(out).reshape(3, 2, 2, 8).max(-1) / 448, rtol=1e-5)
    for wrong, message in [((out[:, :, :8].copy(), sources[me], z), "out has 48 elements"),
                           ((out, sources[me].astype("d"), z), "float64")]:
        with pytest.raises(ValueError) as raised:
            weft.all_reduce_rms_norm(*(wrong if me == 0 else (out, sources[me], z)))
        assert (message if me == 0 else "PE 0") in str(raised.value)
    with pytest.raises(ValueError, match="quantized is given without scales" if me == 0 else "PE 0"):
        weft.all_reduce_rms_norm(out, sources[me], z, quantized=narrow if me == 0 else None)


def test_kv_shuffle(me, n):
    """Each PE with an even number sends to the next one."""
    caches = [weft.zeros((4, 5), "int32") for _ in range(2)]
    for i, cache in enumerate(caches):
        cache[:] = (np.arange(20, dtype="int32") + 100 * i + 1000 * me).reshape(4, 5)
    peer = me - 1 if me % 2 else me + 1 if me + 1 < n else -1
    weft.kv_shuffle(caches, np.array([peer, me % 2], "int32"), np.array([3, 0]), np.array([0, 2]))
    for i, cache in enumerate(caches):
        expected = (np.arange(20, dtype="int32") + 100 * i + 1000 * me).reshape(4, 5)
        if me % 2:
            sent = (np.arange(20, dtype="int32") + 100 * i + 1000 * peer).reshape(4, 5)
            expected[0], expected[2] = sent[3], sent[0]
        np.testing.assert_array_equal(np.asarray(cache), expected)
    other = weft.zeros(3)
    with pytest.raises(ValueError, match="cache 1 has" if me == 0 else "PE 0"):
        weft.kv_shuffle([caches[0], other if me == 0 else caches[1]], np.array([-1, 0], "int32"))


# --- Arguments that are missing, unknown or too many ------------------------------------------------

def right_calls(n):
    """Yields valid arguments for each call; scaled products would need too many."""
    ones, square = [1] * n, lambda: np.ones((n, n), "f")
    return {"all_reduce": lambda: (np.ones(n, "f"),), "all_gather": lambda: (np.ones(n, "f"), np.ones(1, "f")),
            "reduce_scatter": lambda: (np.ones(1, "f"), np.ones(n, "f")), "broadcast": lambda: (np.ones(n, "f"),),
            "all_to_all": lambda: (np.ones(n, "f"), np.ones(n, "f")),
            "all_to_allv": lambda: (np.ones(n, "f"), np.ones(n, "f"), ones, ones),
            "all_gather_matmul": lambda: (square(), np.ones((1, n), "f"), square()),
            "matmul_reduce_scatter": lambda: (np.ones((1, n), "f"), square(), square()),
            "matmul_all_reduce": lambda: (square(), square(), square())}


def test_unsorted_arguments_are_refused_by_all(me, n):
    """One member leaves an argument out, or passes an unknown one: all members raise an exception, and stay in step."""
    wrong = 1 % n
    for name, right in right_calls(n).items():
        call = getattr(weft, name)
        for mistake, text in [(lambda: call(), "argument .* is missing"), (lambda: call(*right(), foo=3), "no argument 'foo'"),
                              (lambda: call(*right(), *range(9)), "got .* arguments, at most"),
                              (lambda: call(*right(), **{"dest" if name[:6] != "matmul" else "a": 1}), "is given twice|no argument")]:
            if me == wrong:
                with pytest.raises(TypeError, match=f"^{name}: .*({text})"):
                    mistake()
            else:
                with pytest.raises(ValueError, match=f"^{name}: PE {wrong} cannot take part: .*see the error of that PE"):
                    call(*right())
            weft.all_reduce(total := np.array([me], "int64"))
            assert total[0] == n * (n - 1) // 2
        call(*right())


def test_unsorted_arguments_in_a_team(me, n):
    """If the team was passed by name, only its members raise."""
    wrong = n - 1
    team = weft.team([me])
    both = weft.world.split(0, 1, n)
    if me == wrong:
        with pytest.raises(TypeError, match="argument dest is missing"):
            weft.all_reduce(team=team)
    weft.all_reduce(total := np.array([me], "int64"))
    assert total[0] == n * (n - 1) // 2
    for _ in range(2):
        with pytest.raises(TypeError if me == wrong else ValueError, match="no argument 'foo'" if me == wrong else f"PE {wrong}"):
            weft.all_reduce(total, team=both, **({"foo": 1} if me == wrong else {}))
    with pytest.raises(TypeError if me == wrong else (ValueError, MemoryError)):
        weft.reserve(*([both] if me == wrong else [both, 100]))
    with pytest.raises(TypeError if me == wrong else ValueError):
        both.split(*([0, 1] if me == wrong else [0, 1, 1]))
    both.destroy()
    team.destroy()


def test_unsorted_arguments_elsewhere(me, n):
    wrong = n - 1
    for make in (weft.empty, weft.zeros):
        with pytest.raises(TypeError if me == wrong else ValueError,
                           match="no argument 'foo'" if me == wrong else "another PE cannot take part"):
            make(1, **({"foo": 1} if me == wrong else {}))
    for meet in (weft.barrier, weft.sync):  # a member with wrong arguments takes part nevertheless
        if me == wrong:
            with pytest.raises(TypeError, match="no argument 'foo'"):
                meet(foo=1)
        else:
            meet()
    weft.all_reduce(total := np.array([me], "int64"))
    assert total[0] == n * (n - 1) // 2


def test_who_is_wrong_has_the_reason(me, n):
    """The other members are told the PE, not the text that the library saw."""
    for name, arguments in [("all_reduce", {"op": "foo"}), ("matmul_all_reduce", {"op": "foo"})]:
        call, right = getattr(weft, name), right_calls(n)[name]()
        with pytest.raises(ValueError, match="argument op is 'foo'" if me == 0 else
                           f"^{name}: PE 0 cannot take part: its arguments are wrong; see the error of that PE$"):
            call(*right, **(arguments if me == 0 else {}))
