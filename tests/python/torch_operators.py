# SPDX-License-Identifier: BSD-3-Clause
"""Operators on CPU tensors, each compared with the same computation in float64 on gloo's gathers, and with PyTorch's
own fallbacks: values, sizes, strides, types. Any dimension, group, layout and type.
"""
import itertools
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hypothesis")

import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import weft  # noqa: E402
import weft.torch as symm_mem  # noqa: E402
from weft.torch import _eager, _products  # noqa: E402
from torch_world import on_groups, on_world, property_test, raises, seeded  # noqa: E402

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
MOVED = FLOATS + [torch.int64, torch.uint8, torch.bool, torch.complex64, torch.float8_e4m3fn]
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 1e-2, torch.float16: 2e-3}
LAYOUTS = ["contiguous", "moved", "sliced", "transposed"]
LOSSES = {"sum": lambda parts: parts.sum(0), "avg": lambda parts: parts.mean(0),
          "max": lambda parts: parts.amax(0), "min": lambda parts: parts.amin(0),
          "prod": lambda parts: parts.prod(0)}

sizes = st.lists(st.integers(0, 4), min_size=1, max_size=4)
seeds = st.integers(0, 999)


def laid_out(tensor, layout, dim):
    """Returns the same values in another layout."""
    if layout == "moved":
        return symm_mem.restride_A_shard_for_fused_all_gather_matmul(tensor, dim)
    if layout == "sliced":
        wide = tensor.new_zeros([*tensor.shape[:-1], tensor.shape[-1] * 2 + 1])
        wide[..., 1::2] = tensor
        return wide[..., 1::2]
    if layout == "transposed" and tensor.dim() > 1:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    return tensor.contiguous()


def drawn(shape, dtype, generator):
    if dtype.is_complex:
        return torch.randn(shape, dtype=dtype, generator=generator)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, 2, shape, generator=generator).to(dtype)


def of_all(tensor, group):
    """The members' tensors, stacked; by gloo, as bytes."""
    flat = as_bytes(tensor.detach())
    parts = [torch.empty_like(flat) for _ in range(group.size())]
    if flat.numel():
        dist.all_gather(parts, flat, group=group)
    return torch.stack([part.view(tensor.dtype).view(tensor.shape) for part in parts])


def joined(tensor, dim, group):
    return torch.cat(list(of_all(tensor, group)), dim)


def close(got, expected, dtype, terms=1):
    """expected is float64; an error may be that of `terms` roundings of the largest value."""
    assert got.dtype == dtype and got.shape == expected.shape, (got.dtype, got.shape)
    if expected.numel():
        scale = max(1.0, expected.abs().max().item()) * max(1, terms) ** 0.5
        worst = (got.double() - expected).abs().max().item()
        assert worst <= TOLERANCE[dtype] * scale, (worst, scale)


def bits(tensor):
    return as_bytes(tensor).tolist()


def as_bytes(tensor):
    return tensor.clone(memory_format=torch.contiguous_format).view(-1).view(torch.uint8)


# --- all_gather, reduce_scatter, all_reduce, all_to_all -----------------------------------------


@property_test(60, shape=sizes, dim=st.integers(-4, 3), dtype=st.sampled_from(MOVED), seed=seeds,
               layout=st.sampled_from(LAYOUTS))
def test_all_gather(group, shape, dim, dtype, seed, layout):
    dim = dim % len(shape)
    x = drawn(shape, dtype, seeded(seed, group))
    got = symm_mem.all_gather(laid_out(x, layout, dim), dim - seed % 2 * len(shape), group)
    expected = joined(x, dim, group)
    assert got.shape == expected.shape and got.dtype == dtype and bits(got) == bits(expected)
    assert got.movedim(dim, 0).is_contiguous()


@property_test(80, shape=sizes, dim=st.integers(0, 3), dtype=st.sampled_from(FLOATS), seed=seeds,
               layout=st.sampled_from(LAYOUTS), op=st.sampled_from(sorted(LOSSES)))
def test_reduce_scatter(group, shape, dim, dtype, seed, layout, op):
    dim = dim % len(shape)
    shape[dim] *= group.size()
    x = drawn(shape, dtype, seeded(seed, group))
    got = symm_mem.reduce_scatter(laid_out(x, layout, dim), op, dim, group)
    whole = LOSSES[op](of_all(x, group).double())
    close(got, whole.chunk(group.size(), dim)[group.rank()] if shape[dim] else whole, dtype,
          group.size())
    assert got.is_contiguous()


@property_test(60, shape=st.lists(st.integers(0, 5), max_size=3), dtype=st.sampled_from(FLOATS),
               seed=seeds, layout=st.sampled_from(LAYOUTS), op=st.sampled_from(sorted(LOSSES)))
def test_all_reduce(group, shape, dtype, seed, layout, op):
    x = drawn(shape, dtype, seeded(seed, group))
    got = symm_mem.all_reduce(laid_out(x, layout, 0) if shape else x, op, group)
    close(got, LOSSES[op](of_all(x, group).double()), dtype, group.size())
    assert got.is_contiguous()
    assert all(bits(each) == bits(got) for each in of_all(got, group))


@property_test(60, rows=st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=4,
                                 max_size=4),
               rest=st.lists(st.integers(0, 3), max_size=2), dtype=st.sampled_from(MOVED),
               seed=seeds)
def test_all_to_all(group, rows, rest, dtype, seed):
    n, me = group.size(), group.rank()
    sent, taken = rows[me][:n], [rows[peer][me] for peer in range(n)]
    x = drawn([sum(sent), *rest], dtype, seeded(seed, group))
    got = symm_mem.all_to_all(x, group, taken, sent)
    padded = x.new_zeros([16, *rest])
    padded[:len(x)] = x
    expected = [all_x.split([*rows[peer][:n], 16 - sum(rows[peer][:n])])[me]
                for peer, all_x in enumerate(of_all(padded, group))]
    assert bits(got) == bits(torch.cat(expected)) and got.shape == (sum(taken), *rest)
    even = symm_mem.all_to_all(x.new_ones((n * 2, *rest)), group)
    assert even.shape == (n * 2, *rest)


@on_groups
def test_collectives_refuse_before_anything_is_sent(group):
    n, x = group.size(), torch.ones(3, 5)
    raises(ValueError, "got gather_dim 2, expected", symm_mem.all_gather, x, 2, group)
    raises(ValueError, "got scatter_dim -3, expected", symm_mem.reduce_scatter, x, "sum", -3, group)
    raises(ValueError, "got reduce_op 'mul', expected", symm_mem.all_reduce, x, "mul", group)
    raises(ValueError, "numbers of rows", symm_mem.all_to_all, x, group, [1] * (n + 1), [3] * n)
    raises(ValueError, "both", symm_mem.all_to_all, x, group, [1] * n)
    raises(ValueError, "rows together", symm_mem.all_to_all, x, group, [1] * n, [4] * n)
    if n == 2:
        raises(ValueError, "multiple of the group's 2 members", symm_mem.reduce_scatter, x, "sum",
               0, group)
    if n > 1:
        raises(ValueError, None, symm_mem.all_to_all, torch.ones(n), group,
               [1 + group.rank()] * n, [1] * n)
    assert (symm_mem.all_reduce(x, "sum", group) == n).all()


# --- Fused products ------------------------------------------------------------------------------


def against_fallback(group, call, *args, **kwargs):
    """Compares the operator's result and layout with those of PyTorch's fallback."""
    got = call(*args, **kwargs)
    with symm_mem._test_mode():
        check_alike(group, got, call(*args, **kwargs))
    return got


def check_alike(group, got, expected):
    """Sizes, types, strides. With one member PyTorch's shape functions do not copy what its CUDA
    kernels do, so that the strides differ between these two."""
    for mine, theirs in zip(flat(got), flat(expected)):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        if group.size() > 1:
            assert steps(mine) == steps(theirs), (mine.shape, mine.stride(), theirs.stride())


def steps(tensor):
    """The strides that mean something."""
    return [step for size, step in zip(tensor.shape, tensor.stride())
            if size > 1 and tensor.numel()]


def flat(results):
    if isinstance(results, torch.Tensor):
        return [results]
    return [tensor for each in results if each is not None for tensor in flat(each)]


@property_test(80, shape=st.lists(st.integers(0, 5), min_size=2, max_size=4),
               dim=st.integers(0, 3), columns=st.lists(st.integers(0, 6), min_size=1, max_size=3),
               dtype=st.sampled_from(FLOATS), seed=seeds, layout=st.sampled_from(LAYOUTS),
               return_A=st.booleans())
def test_fused_all_gather_matmul(group, shape, dim, columns, dtype, seed, layout, return_A):
    dim = dim % len(shape)
    x, noise = drawn(shape, dtype, seeded(seed, group)), seeded(seed + 1, group)
    inner = shape[-1] * (group.size() if dim == len(shape) - 1 else 1)
    bs = [laid_out(drawn((inner, n), dtype, noise), layout, 0) for n in columns]
    whole, products = against_fallback(
        group, symm_mem.fused_all_gather_matmul, laid_out(x, layout, dim), bs, dim, group,
        return_A=return_A)
    expected = joined(x, dim, group)
    assert (whole is None) == (not return_A)
    if return_A:
        assert bits(whole) == bits(expected)
    for b, product in zip(bs, products):
        close(product, expected.double() @ b.double(), dtype, inner)


@property_test(80, shape=st.lists(st.integers(0, 5), min_size=2, max_size=4),
               dim=st.integers(0, 3), columns=st.integers(0, 6), dtype=st.sampled_from(FLOATS),
               seed=seeds, layout=st.sampled_from(LAYOUTS), op=st.sampled_from(["sum", "avg"]))
def test_fused_matmul_reduce_scatter(group, shape, dim, columns, dtype, seed, layout, op):
    dim, noise = dim % len(shape), seeded(seed, group)
    if dim < len(shape) - 1:
        shape[dim] *= group.size()
    else:
        columns *= group.size()
    x, b = drawn(shape, dtype, noise), drawn((shape[-1], columns), dtype, noise)
    if op == "sum" or dist.get_backend(group) != "gloo":
        product = against_fallback(
            group, symm_mem.fused_matmul_reduce_scatter, laid_out(x, layout, dim),
            laid_out(b, layout, 0), op, dim, group)
    else:  # gloo has no average
        product = symm_mem.fused_matmul_reduce_scatter(laid_out(x, layout, dim),
                                                       laid_out(b, layout, 0), op, dim, group)
    partials = of_all(x.double() @ b.double(), group)
    whole = LOSSES[op](partials)
    part = whole.shape[dim] // group.size()
    close(product, whole.narrow(dim, part * group.rank(), part), dtype,
          group.size() * shape[-1])
    assert product.is_contiguous()


@property_test(40, shape=st.lists(st.integers(0, 5), min_size=2, max_size=4), columns=st.integers(0, 6),
               dtype=st.sampled_from(FLOATS), seed=seeds, layout=st.sampled_from(LAYOUTS),
               op=st.sampled_from(["sum", "avg"]))
def test_fused_matmul_all_reduce(group, shape, columns, dtype, seed, layout, op):
    noise = seeded(seed, group)
    x, b = drawn(shape, dtype, noise), drawn((shape[-1], columns), dtype, noise)
    product = symm_mem.fused_matmul_all_reduce(laid_out(x, layout, 0), laid_out(b, layout, 0), op, group)
    close(product, LOSSES[op](of_all(x.double() @ b.double(), group)), dtype, group.size() * shape[-1])
    assert product.is_contiguous()
    assert all(torch.equal(as_bytes(each), as_bytes(product)) for each in of_all(product, group))


@on_groups
def test_transposed_factors_are_not_copied(group):
    n = group.size()
    x, weight = torch.randn(5, 2 * n).t(), torch.randn(4, 5)
    for call, product, arguments, dim in [
            (symm_mem.fused_all_gather_matmul, "all_gather_matmul", lambda: (x, [weight.t()]), 0),
            (symm_mem.fused_matmul_reduce_scatter, "matmul_reduce_scatter", lambda: (x, weight.t(), "sum"), 0),
            (symm_mem.fused_matmul_reduce_scatter, "matmul_reduce_scatter",
             lambda: (x, torch.randn(4 * n, 5).t(), "sum"), 1)]:
        with mock.patch.object(weft, product, wraps=getattr(weft, product)) as called:
            given = arguments()
            call(*given, dim, group)
        got = {each.data_ptr() for each in flat(called.call_args.args[1:3])}
        assert got == {each.data_ptr() for each in flat(given[:2])}


@on_groups
def test_products_of_other_types(group):
    x = torch.arange(6.).view(2, 3).to(torch.complex64) + group.rank()
    b = torch.ones(3, 2, dtype=torch.complex64) * 1j
    _, [product] = symm_mem.fused_all_gather_matmul(x, [b], 0, group, return_A=False)
    assert torch.equal(product, joined(x, 0, group) @ b)
    whole, none = symm_mem.fused_all_gather_matmul(x, [], 0, group)
    assert none == [] and torch.equal(whole, joined(x, 0, group))
    total = symm_mem.fused_matmul_all_reduce(torch.ones(2, 3, dtype=torch.int64), torch.ones(3, 2, dtype=torch.int64), "sum", group)
    assert (total == 3 * group.size()).all()


@on_groups
def test_products_refuse(group):
    call, n = symm_mem.fused_all_gather_matmul, group.size()
    x, b = torch.ones(2, 3), torch.ones(3, 4)
    raises(ValueError, "A_shard must be a matrix", call, torch.ones(3), [b], 0, group)
    raises(ValueError, "B must be a matrix", call, x, [torch.ones(3)], 0, group)
    raises(ValueError, "Invalid gather_dim.*got 2, expected 0 to 1", call, x, [b], 2, group)
    raises(ValueError, "Invalid gather_dim", call, x, [b], -1, group)
    raises(RuntimeError, "got B of .*expected 3 rows", call, x, [torch.ones(4, 4)], 0, group)
    raises(RuntimeError, "expected A's torch.float32", call, x, [b.double()], 0, group)
    call = symm_mem.fused_matmul_reduce_scatter
    raises(ValueError, "got reduce_op 'max', expected", call, x, b, "max", 0, group)
    raises(ValueError, "Invalid scatter_dim", call, x, b, "sum", 2, group)
    raises(ValueError, "got reduce_op 'max', expected", symm_mem.fused_matmul_all_reduce, x, b, "max", group)
    raises(RuntimeError, "expected 3 rows", symm_mem.fused_matmul_all_reduce, x, torch.ones(4, 4), "sum", group)
    if n == 3:
        raises(ValueError, "multiple of the group's 3 members", call, x, b, "sum", 0, group)
    for each in (symm_mem.fused_all_gather_matmul,):
        raises(Exception, None, each, x, [b], 0, "no such group")


def alike_on_meta(group, operator, got, *args):
    """PyTorch's own shape function gives the same sizes, strides and types; gloo moves no 8-bit
    floats, so there is no fallback to run."""
    check_alike(group, got, operator(*[on_meta(each) for each in args]))


def on_meta(value):
    if isinstance(value, torch.Tensor):
        return value.to("meta")
    return [on_meta(each) for each in value] if isinstance(value, list) else value


# --- Products of 8-bit floats --------------------------------------------------------------------


def narrow(shape, generator, dtype=torch.float8_e4m3fn):
    return torch.randn(shape, generator=generator).to(dtype)


@property_test(60, shape=st.lists(st.integers(1, 5), min_size=1, max_size=3),
               dim=st.integers(0, 2), columns=st.lists(st.integers(1, 5), min_size=1, max_size=2),
               seed=seeds, mode=st.sampled_from(["one", "sharded", "replicated"]),
               out=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
               bias=st.booleans())
def test_fused_all_gather_scaled_matmul(group, shape, dim, columns, seed, mode, out, bias):
    dim, noise, alike = dim % len(shape), seeded(seed, group), seeded(seed, group, each=False)
    x = narrow([*shape, 16], noise)
    bs = [narrow((16 * c, 16), noise).t() for c in columns]
    full = list(shape)
    full[dim] *= group.size()
    scale = {"one": lambda: torch.rand((), generator=alike) + .5,
             "sharded": lambda: torch.rand([*shape, 1], generator=noise) + .5,
             "replicated": lambda: torch.rand([*full, 1], generator=alike) + .5}[mode]()
    b_scales = [torch.rand((1, b.shape[1]) if mode != "one" else (), generator=noise) + .5
                for b in bs]
    biases = [torch.randn(b.shape[1], generator=noise).to(out) if bias else None for b in bs]
    whole, products = symm_mem.fused_all_gather_scaled_matmul(
        x, bs, scale, b_scales, dim, group, biases, [None] * len(bs), [out] * len(bs),
        [False] * len(bs))
    assert bits(whole) == bits(joined(x, dim, group))
    rest = ([None] * len(bs), [out] * len(bs), [False] * len(bs))
    _, alike = torch.ops.weft.fused_all_gather_scaled_matmul(x, bs, scale, b_scales, dim, group.group_name, biases,
                                                             *rest)
    assert [bits(each) for each in alike] == [bits(each) for each in products]
    rows = joined(scale, dim, group) if mode == "sharded" or scale.shape == (*shape, 1) else scale
    for b, b_scale, b_bias, product in zip(bs, b_scales, biases, products):
        expected = (joined(x, dim, group).double() * rows.double()) @ (b.double() * b_scale.double())
        close(product, expected + (b_bias.double() if bias else 0), out, 16)
        assert product.movedim(dim, 0).is_contiguous()
    alike_on_meta(group, torch.ops.symm_mem.fused_all_gather_scaled_matmul, (whole, products), x,
                  bs, scale, b_scales, dim, group.group_name, [None] * len(bs), *rest)


@property_test(60, shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
               dim=st.integers(0, 2), columns=st.integers(1, 3), seed=seeds,
               rows=st.booleans(), op=st.sampled_from(["sum", "avg"]), bias=st.booleans(),
               out=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]), direct=st.booleans())
def test_fused_scaled_matmul_reduce_scatter(group, shape, dim, columns, seed, rows, op, bias, out, direct):
    dim, noise = dim % len(shape), seeded(seed, group)
    shape[dim] *= group.size()
    x, b = narrow([*shape, 16], noise), narrow((16 * columns, 16), noise).t()
    scale = torch.rand([*shape, 1] if rows else (), generator=noise) + .5
    b_scale = torch.rand((1, b.shape[1]) if rows else (), generator=noise) + .5
    b_bias = torch.randn(b.shape[1], generator=noise).to(out) if bias else None
    call, where = (symm_mem, group) if direct else (torch.ops.weft, group.group_name)
    got = call.fused_scaled_matmul_reduce_scatter(
        x, b, scale, b_scale, op, dim, dim, where, [*shape, b.shape[1]], b_bias, None, out)
    partial = (x.double() * scale.double()) @ (b.double() * b_scale.double())
    whole = LOSSES[op](of_all(partial + (b_bias.double() if bias else 0), group))
    close(got, whole.chunk(group.size(), dim)[group.rank()], out, 16 * group.size())
    if scale.numel() > 1 or not rows:  # PyTorch takes one row for no rows
        alike_on_meta(group, torch.ops.symm_mem.fused_scaled_matmul_reduce_scatter, got, x, b, scale,
                      b_scale, op, dim, dim, group.group_name, [*shape, b.shape[1]], None, None, out)


@on_groups
def test_scaled_products_of_8_bits(group):
    """A result of 8 bits is scaled again, as torch._scaled_mm does it on the CPU."""
    noise, alike = seeded(1, group), seeded(1, group, each=False)
    x, b, scale = narrow((16, 32), noise), narrow((16, 32), noise).t(), torch.tensor(0.5)
    smaller = torch.rand((), generator=alike) + 2
    for out in (torch.float8_e4m3fn, torch.float8_e5m2):
        _, [product] = symm_mem.fused_all_gather_scaled_matmul(
            x, [b], scale, [scale], 0, group, [None], [smaller], [out], [False])
        theirs = torch._scaled_mm(joined(x, 0, group), b, scale, scale, None, smaller, out)
        assert product.dtype == out and product.shape == theirs.shape
        torch.testing.assert_close(product.float(), theirs.float(), atol=1e-3, rtol=.25)


class Watch(TorchDispatchMode):
    """Counts the calls of torch.ops.weft.*."""
    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += function.namespace == "weft"
        return function(*args, **(kwargs or {}))


@on_groups
def test_modes_see_the_products(group):
    """The functions skip PyTorch's dispatcher, but not where a mode wants to see the operators."""
    wide, x, one = torch.ones(2 * group.size(), 16), narrow((2 * group.size(), 16), seeded(0, group)), torch.ones(())
    calls = [lambda: symm_mem.fused_all_gather_matmul(wide, [wide.t()], 0, group),
             lambda: symm_mem.fused_matmul_reduce_scatter(wide, wide.t(), "sum", 0, group),
             lambda: symm_mem.fused_matmul_all_reduce(wide, wide.t(), "sum", group),
             lambda: symm_mem.fused_all_gather_matmul(wide[None].clone(), [wide.t()], 1, group),
             lambda: symm_mem.fused_all_gather_scaled_matmul(
                 x, [x.t()], one, [one], 0, group, [None], [None], [torch.float32], [False]),
             lambda: symm_mem.fused_scaled_matmul_reduce_scatter(
                 x, x.t(), one, one, "sum", 0, 0, group, [len(x), len(x)], None, None, torch.float32)]
    for call in calls:
        before = symm_mem.counters()
        with mock.patch.object(torch.ops, "weft", None):
            call()
        assert sum(symm_mem.counters().values()) == sum(before.values()) + 1
        with Watch() as watch:
            call()
        assert watch.count == 1


@property_test(40, m=st.integers(0, 4), k=st.integers(1, 4), n=st.integers(0, 4), dtype=st.sampled_from(FLOATS),
               seed=seeds, layouts=st.tuples(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS)))
def test_short_way_of_matrices(group, m, k, n, dtype, seed, layouts):
    """Matrices take a shorter way through Python than all other tensors: both give the same."""
    size, draw = group.size(), seeded(seed, group)
    a = laid_out(drawn((m * size, k), dtype, draw), layouts[0], 1)
    b = laid_out(drawn((k, n), dtype, draw), layouts[1], 1)

    def results():
        whole, [product] = symm_mem.fused_all_gather_matmul(a, [b], 0, group)
        return (whole, product, symm_mem.fused_matmul_reduce_scatter(a, b, "avg", 0, group),
                symm_mem.fused_matmul_all_reduce(a, b, "sum", group_name=group.group_name),
                symm_mem.fused_matmul_all_reduce(a, b, "sum", group))
    short = results()
    with mock.patch.object(_eager, "_group_for", return_value=None):
        for one, other in zip(short, results()):
            assert one.stride() == other.stride()
            close(one, other.double(), dtype, k)


@on_groups
def test_matrices_take_the_short_way(group):
    n, w = group.size(), torch.ones(3, 4)
    with mock.patch.object(_products, "route", side_effect=AssertionError):
        for a, b in itertools.product((torch.ones(2 * n, 4), torch.ones(4, 2 * n).t()), (w.t(), torch.ones(4, 3))):
            symm_mem.fused_all_gather_matmul(a, [b], 0, group)
            symm_mem.fused_matmul_reduce_scatter(a, b, "sum", 0, group.group_name)
            symm_mem.fused_matmul_all_reduce(a, b, "avg", group)


@on_world
def test_products_are_traced_symbolically(world):
    """A placeholder is no tensor, and its dtype cannot be compared."""
    a, b, name = torch.ones(4 * world.size(), 3), torch.ones(3, 2), world.group_name
    for call in (lambda x, y: symm_mem.fused_all_gather_matmul(x, [y], 0, name)[1][0],
                 lambda x, y: symm_mem.fused_matmul_reduce_scatter(x, y, "sum", 0, name),
                 lambda x, y: symm_mem.fused_matmul_all_reduce(x, y, "sum", name)):
        traced = torch.fx.symbolic_trace(call)
        assert any(node.op == "call_function" and "weft.fused" in str(node.target) for node in traced.graph.nodes)
        assert torch.equal(traced(a, b), call(a, b))


@on_groups
def test_scaled_products_refuse(group):
    x, b, one = narrow((4, 16), seeded(0, group)), narrow((16, 16), seeded(1, group)), torch.ones(())
    call = symm_mem.fused_all_gather_scaled_matmul
    rest = ([None], [None], [torch.float32], [False])
    raises(ValueError, "len", call, x, [b], one, [one], 0, group, [], *rest[1:])
    raises(ValueError, "len", call, x, [b], one, [one], 0, group, *rest[:3], [False, True])
    raises(TypeError, "got B_scales of type Tensor, expected a list", call, x, [b], one, torch.ones(1, 1), 0, group,
           *rest)
    raises(RuntimeError, "Expected a value of type", call, x, [None], one, [one], 0, group, *rest)
    raises(RuntimeError, "requires a gradient", call, x, [b], one.clone().requires_grad_(), [one], 0, group, *rest)
    raises(ValueError, "Invalid scale shape", call, x, [b], torch.ones(3, 1), [one], 0, group,
           *rest)
    raises(ValueError, "Invalid gather_dim", call, x, [b], one, [one], 1, group, *rest)
    raises(RuntimeError, "expected 8-bit floats", call, x.float(), [b], one, [one], 0, group, *rest)
    call = symm_mem.fused_scaled_matmul_reduce_scatter
    x = narrow((4 * group.size(), 16), seeded(2, group))
    raises(ValueError, "leading dims of A_scale", call, x, b, torch.ones(3, 1), one, "sum", 0, 0,
           group, [len(x), 16])
    raises(ValueError, "reduce_op", call, x, b, one, one, "max", 0, 0, group, [len(x), 16])
    raises(ValueError, "Invalid scatter dim", call, x, b, one, one, "sum", 2, 0, group,
           [len(x), 16])


# --- On symmetric tensors ------------------------------------------------------------------------


def symmetric(shape, dtype, values):
    return symm_mem.empty(shape, dtype=dtype, device="cpu").copy_(values)


@property_test(30, shape=st.lists(st.integers(0, 6), min_size=1, max_size=3),
               dtype=st.sampled_from(FLOATS), seed=seeds)
def test_all_reduces_of_symmetric_tensors(group, shape, dtype, seed):
    x = drawn(shape, dtype, seeded(seed, group))
    t = symmetric(shape, dtype, x)
    expected = of_all(x, group).double().sum(0)
    results = [symm_mem.one_shot_all_reduce(t, "sum", group),
               symm_mem.one_shot_all_reduce_out(t, "sum", group, torch.empty_like(x))]
    assert bits(t) == bits(x)
    out = torch.empty_like(x)
    assert symm_mem.two_shot_all_reduce_out(t, "sum", group, out) is not None
    t.copy_(x)
    in_place = symm_mem.two_shot_all_reduce_(t, "sum", group)
    assert in_place.data_ptr() == t.data_ptr()
    buffer = symmetric((x.numel() + 3,), dtype, torch.zeros(x.numel() + 3))
    results += [out, t, symm_mem.one_shot_all_reduce_copy(buffer, x, "sum", group),
                symm_mem.one_shot_all_reduce_copy_out(buffer, x, "sum", group,
                                                      torch.empty_like(x))]
    for result in results:
        close(result, expected, dtype, group.size())
        assert bits(result) == bits(results[0])


@property_test(30, rows=st.integers(1, 4), part=st.integers(1, 5), dtype=st.sampled_from(FLOATS),
               seed=seeds, last=st.booleans())
def test_reduce_scatter_out(group, rows, part, dtype, seed, last):
    shape = (rows, part * group.size()) if last else (part * group.size(),)
    x = drawn(shape, dtype, seeded(seed, group))
    out = torch.empty((*shape[:-1], part), dtype=dtype)
    symm_mem.reduce_scatter_out(symmetric(shape, dtype, x), group, last, out)
    whole = of_all(x, group).double().sum(0)
    close(out, whole.chunk(group.size(), -1)[group.rank()], dtype, group.size())


@property_test(20, rows=st.integers(0, 4), rest=st.lists(st.integers(0, 3), max_size=2),
               dtype=st.sampled_from(FLOATS), seed=seeds, own=st.booleans())
def test_low_contention(group, rows, rest, dtype, seed, own):
    x = drawn([rows, *rest], dtype, seeded(seed, group))
    x = symmetric(x.shape, dtype, x) if own else x
    got = torch.ops._c10d_functional.wait_tensor(symm_mem.low_contention_all_gather(x, group))
    assert bits(got) == bits(joined(x, 0, group))
    y = drawn([rows * group.size(), *rest], dtype, seeded(seed, group))
    for op in ("sum", "avg"):
        got = torch.ops._c10d_functional.wait_tensor(
            symm_mem.low_contention_reduce_scatter(y, op, group))
        whole = LOSSES[op](of_all(y, group).double())
        close(got, whole[rows * group.rank():rows * (group.rank() + 1)], dtype, group.size())
    raises(ValueError, "not supported", symm_mem.low_contention_reduce_scatter, y, "max", group)


@on_groups
def test_all_reduces_refuse(group):
    t = symm_mem.empty(4, device="cpu")
    raises(RuntimeError, "expected 'sum'", symm_mem.one_shot_all_reduce, t, "avg", group)
    raises(RuntimeError, "contiguous", symm_mem.one_shot_all_reduce, t[::2], "sum", group)
    raises(RuntimeError, "expected \\[4\\] torch.float32", symm_mem.one_shot_all_reduce_out, t,
           "sum", group, torch.empty(5))
    raises(RuntimeError, "expected at most the 4", symm_mem.one_shot_all_reduce_copy, t,
           torch.empty(5), "sum", group)
    raises(RuntimeError, "one dimension|expected one", symm_mem.reduce_scatter_out, t.view(2, 2),
           group, False, t)
    raises(RuntimeError, "torch.int64", symm_mem.one_shot_all_reduce,
           symm_mem.empty(4, dtype=torch.int64, device="cpu"), "sum", group)
    raises(NotImplementedError, "multicast", torch.ops.symm_mem.multimem_all_reduce_, t, "sum",
           group.group_name)
    assert (symm_mem.one_shot_all_reduce(t.fill_(1), "sum", group) == group.size()).all()


# --- Meshes ----------------------------------------------------------------------------------------------


@on_world
def test_a_mesh_is_a_group(group):
    n, me = group.size(), group.rank()
    mesh = init_device_mesh("cpu", (n,))
    wide = init_device_mesh("cpu", (1, n), mesh_dim_names=("dp", "tp"))
    x = torch.full((n,), me + 1.)
    for each in (mesh, wide["tp"]):
        assert symm_mem.all_reduce(x, "max", each).tolist() == [n] * n
        assert symm_mem.all_gather(x[:1], 0, group_name=each).tolist() == [rank + 1. for rank in range(n)]
        t = symm_mem.empty(4, device="cpu").fill_(me)
        handle = symm_mem.rendezvous(t, each)
        assert handle.world_size == n
        handle.barrier()
        assert symm_mem.get_remote_tensors(t, each)[n - 1].tolist() == [n - 1.] * 4
        assert symm_mem.is_symm_mem_enabled_for_group(each)
        handle.barrier()
    says = r"DeviceMesh of 2 dimensions \('dp', 'tp'\), expected one dimension, such as mesh\['tp'\]"
    raises(TypeError, says, symm_mem.all_reduce, x, "sum", wide)
    raises(TypeError, says, symm_mem.rendezvous, x, wide)
