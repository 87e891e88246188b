# SPDX-License-Identifier: BSD-3-Clause
"""p and g: one element of any type by its number."""
import array

import pytest
import weft

VALUES = {"bool": True, "int8": -128, "uint16": 65535, "int32": -7, "uint64": 2**64 - 1, "float16": 0.5,
          "bfloat16": -1.5, "float8_e4m3fn": 448.0, "float32": 1.25, "float64": 1e300, "complex64": 1 - 2j,
          "complex128": 3j}


@pytest.mark.parametrize("dtype", VALUES)
def test_every_type(dtype, me, n):
    right, left, buffer = (me + 1) % n, (me - 1) % n, weft.zeros((2, 2), dtype)
    weft.p(buffer, VALUES[dtype], right, index=3)
    weft.p(buffer, 1, right)
    weft.barrier()
    assert buffer.tolist() == [[1, 0], [0, VALUES[dtype]]]
    got = weft.g(buffer, left, index=3)
    assert got == VALUES[dtype] and type(got) is type(VALUES[dtype])
    assert weft.g(source=buffer, pe=left) == 1


def test_arrays_over_symmetric_memory(me, n):
    buffer, right = weft.zeros(4, "int32"), (me + 1) % n
    weft.p(memoryview(buffer)[1:], me + 1, right, index=2)
    weft.barrier()
    assert buffer.tolist() == [0, 0, 0, (me - 1) % n + 1]
    assert weft.g(memoryview(buffer)[3:], right) == me + 1


def test_by_a_context(me, n):
    word = weft.zeros(1, "int64")
    with weft.Ctx(weft.world.split(n - 1, -1, n)) as ctx:
        weft.p(word, me + 1, n - 1 - me, ctx=ctx)
        ctx.quiet()
        weft.barrier()
        assert word.tolist() == [me + 1] and weft.g(word, me, ctx=ctx) == n - me
        with pytest.raises(ValueError, match="g: argument pe is .*: the context's team has ranks 0 to"):
            weft.g(word, n, ctx=ctx)


def test_wrong_arguments(me, n):
    buffer, private = weft.zeros(4, "int8"), array.array("b", [0] * 4)
    for error, use, message in [
            (ValueError, lambda: weft.p(buffer, 1, n), f"p: argument pe is {n}"),
            (ValueError, lambda: weft.p(buffer, 1, me, index=4), "p: argument index is 4: dest has 4 elements"),
            (ValueError, lambda: weft.g(buffer, me, index=-1), "g: argument index is -1"),
            (ValueError, lambda: weft.p(private, 1, me), "p: argument dest is not symmetric"),
            (ValueError, lambda: weft.g(private, me), "g: argument source is not symmetric"),
            (OverflowError, lambda: weft.p(buffer, 128, me), "p: a number is out of range: -128 to 127 for int8"),
            (TypeError, lambda: weft.p(buffer, 1.5, me), "p: 1.5 cannot be stored as int8: pass a whole number"),
            (TypeError, lambda: weft.p(buffer, buffer, me), "cannot be stored as int8"),
            (TypeError, lambda: weft.g(5, me), "g: argument source"),
            (TypeError, lambda: weft.p(buffer, me), "p: argument pe is missing"),
            (TypeError, lambda: weft.p(buffer, 1, me, 2), "p: .* at most 3 may be given without their names")]:
        with pytest.raises(error, match=message):
            use()
    assert buffer.tolist() == [0] * 4
