# SPDX-License-Identifier: BSD-3-Clause
"""Operators on DTensors compared with float64 computations on the whole tensors: values, placements, sizes, strides and
gradients. The meshes are all ranks in a line, and a grid with either dimension as the group (2 x 2 on 4 ranks).
"""
import functools
import itertools
import random

import pytest

torch = pytest.importorskip("torch")

from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor  # noqa: E402

import weft.torch as symm_mem  # noqa: E402
from torch_world import RANKS, raises, seeded  # noqa: E402

DP, TP = (2, 2) if RANKS == 4 else (1, RANKS)
ANY = (Replicate(), Shard(0), Shard(1), Partial())


@functools.cache
def line():
    return init_device_mesh("cpu", (RANKS,))


@functools.cache
def grid():
    return init_device_mesh("cpu", (DP, TP), mesh_dim_names=("dp", "tp"))


def on_meshes(test):
    """Calls test(mesh, dim, group): dimension `dim` of the mesh is the group."""
    @pytest.mark.parametrize("name", ["line", "dp", "tp"])
    def run(name):
        mesh = line() if name == "line" else grid()
        test(mesh, int(name == "tp"), mesh if name == "line" else mesh[name])
    return run


def drawn(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=seeded(seed, None, each=False))


def distributed(full, mesh, placements):
    """Returns the DTensor; the ranks of a Partial dimension have different shares of the sum."""
    stored = distribute_tensor(full, mesh, [Replicate() if each.is_partial() else each for each in placements])
    part = stored.to_local()
    for at, each in enumerate(placements):
        if each.is_partial() and each.reduce_op == "sum":
            size = mesh.size(at)
            part = part * ((mesh.get_local_rank(at) + 1) / (size * (size + 1) / 2))
    return DTensor.from_local(part, mesh, placements, shape=full.shape, stride=full.stride())


def placed(mesh, dim, on_group, elsewhere=Replicate()):
    return tuple(on_group if at == dim else elsewhere for at in range(mesh.ndim))


def choices(mesh, tensors, count, seed=0):
    """Returns lists of placements for that many tensors, the same on all ranks."""
    each = list(itertools.product(ANY, repeat=mesh.ndim))
    draw = random.Random(seed)
    return [[draw.choice(each) for _ in range(tensors)] for _ in range(count)]


def check(mesh, operator, model, inputs, placements, results):
    """Compares operator(*DTensors) with model(*whole tensors), and the gradients of both. results: the placements."""
    ours = [distributed(x, mesh, p).requires_grad_() for x, p in zip(inputs, placements)]
    wholes = [x.clone().requires_grad_() for x in inputs]
    loss = losses = 0
    for seed, (got, expected, into) in enumerate(zip(operator(*ours), model(*wholes), results, strict=True)):
        assert (got.shape, got.dtype, got.placements) == (expected.shape, expected.dtype, into), (got.placements, into)
        torch.testing.assert_close(got.full_tensor(), expected)
        weights = drawn(*expected.shape, seed=seed)
        loss += (got * distribute_tensor(weights, mesh, into)).sum()
        losses += (expected * weights).sum()
    loss.full_tensor().backward()
    losses.backward()
    for x, whole in zip(ours, wholes):
        torch.testing.assert_close(x.grad.full_tensor(), whole.grad)


def kept(mesh, dim, placements, cut, dims):
    """Returns what the results keep of the placements on the mesh's dimension that is not the group."""
    for at, each in enumerate(placements):
        if at != dim and isinstance(each, Shard) and each.dim < dims and (each.dim != cut or at < dim):
            return each
    return Replicate()


# --- all_gather, reduce_scatter, all_reduce -------------------------------------------------------


@on_meshes
def test_all_gather(mesh, dim, group):
    for cut, [placements] in itertools.product((0, 1), choices(mesh, 1, 5)):
        x = drawn(2 * RANKS, 4 * RANKS, 3)
        into = placed(mesh, dim, Replicate(), kept(mesh, dim, placements, cut, 3))
        check(mesh, lambda x: [symm_mem.all_gather(x, cut - 3, group)], lambda x: [x], [x], [placements], [into])
        got = symm_mem.all_gather(distributed(x, mesh, placements), cut, group_name=group)
        assert got.movedim(cut, 0).stride() == torch.empty(got.movedim(cut, 0).shape).stride()


@on_meshes
def test_reductions_of_partial_tensors(mesh, dim, group):
    x = drawn(2 * RANKS, 3 * RANKS)
    for elsewhere in ANY:
        before, after = placed(mesh, dim, Partial(), elsewhere), placed(mesh, dim, Replicate(), elsewhere)
        check(mesh, lambda x: [symm_mem.all_reduce(x, "sum", group)], lambda x: [x], [x], [before], [after])
        for cut in (0, 1):
            if elsewhere == Shard(cut) and dim == 0 and mesh.ndim == 2:
                raises(ValueError, "cuts in the order", symm_mem.reduce_scatter, distributed(x, mesh, before), "sum", cut,
                       group)
                continue
            check(mesh, lambda x: [symm_mem.reduce_scatter(x, "sum", cut, group)], lambda x: [x], [x], [before],
                  [placed(mesh, dim, Shard(cut), elsewhere)])


@on_meshes
def test_other_reductions(mesh, dim, group):
    """Each rank of the group has another summand; a mean and a maximum have their own placements."""
    rank, size = mesh.get_local_rank(dim), mesh.size(dim)
    for op, name, expected in (("avg", "avg", (size - 1) / 2), ("max", "max", size - 1), ("prod", "product", 0)):
        x = DTensor.from_local(torch.full((size, 2), float(rank)), mesh, placed(mesh, dim, Partial(name)))
        assert (symm_mem.all_reduce(x, op, group).to_local() == expected).all()
        assert (symm_mem.reduce_scatter(x, op, 0, group).to_local() == expected).all()
        raises(ValueError, "expected Partial\\('min'\\)", symm_mem.all_reduce, x, "min", group)
    x = DTensor.from_local(torch.ones(size, requires_grad=True), mesh, placed(mesh, dim, Partial("max")))
    raises(NotImplementedError, "all_reduce: got reduce_op 'max' in backward",
           symm_mem.all_reduce(x, "max", group).sum().backward)
    x = DTensor.from_local(torch.ones(size), mesh, placed(mesh, dim, Partial("avg"))).requires_grad_()
    symm_mem.reduce_scatter(x, "avg", 0, group).sum().backward()
    assert (x.grad.full_tensor() == 1).all()  # the whole tensor is the same before and after


# --- Products -------------------------------------------------------------------------------------


@on_meshes
def test_fused_all_gather_matmul(mesh, dim, group):
    for cut, placements in itertools.product((0, 1, 2), choices(mesh, 3, 4)):
        a, b, c = drawn(2 * RANKS, 4 * RANKS, RANKS), drawn(RANKS, 2 * RANKS), drawn(RANKS, 4 * RANKS)
        rows = kept(mesh, dim, placements[0], cut, 2)
        whole, columns = placed(mesh, dim, Replicate(), rows), placed(mesh, dim, Shard(2), rows)

        def operator(a, b, c):
            got, products = symm_mem.fused_all_gather_matmul(a, [b, c], cut, group)
            assert symm_mem.fused_all_gather_matmul(a, (b,), cut, group, return_A=False)[0] is None
            return [got, *products]
        check(mesh, operator, lambda a, b, c: [a, a @ b, a @ c], [a, b, c], placements, [whole, columns, columns])


@on_meshes
def test_fused_matmul_reduce_scatter(mesh, dim, group):
    for cut, placements in itertools.product((0, 1, 2), choices(mesh, 2, 5)):
        a, b = drawn(2 * RANKS, 4 * RANKS, RANKS), drawn(RANKS, 3 * RANKS)
        into = placed(mesh, dim, Shard(cut), kept(mesh, dim, placements[0], cut, 2))
        check(mesh, lambda a, b: [symm_mem.fused_matmul_reduce_scatter(a, b, "sum", cut, group)],
              lambda a, b: [a @ b], [a, b], placements, [into])


@on_meshes
def test_fused_matmul_all_reduce(mesh, dim, group):
    for placements in choices(mesh, 2, 8):
        a, b = drawn(2 * RANKS, 4 * RANKS, RANKS), drawn(RANKS, 5)
        into = placed(mesh, dim, Replicate(), kept(mesh, dim, placements[0], None, 2))
        check(mesh, lambda a, b: [symm_mem.fused_matmul_all_reduce(a, b, "sum", group)], lambda a, b: [a @ b],
              [a, b], placements, [into])


@on_meshes
def test_layouts(mesh, dim, group):
    """The whole tensors' strides have the order of the ranks' own."""
    size = mesh.size(dim)
    a, b = (distributed(drawn(*shape), mesh, placed(mesh, dim, Replicate())) for shape in (
        (2, 3 * size, 4 * size), (4 * size, 5 * size)))
    whole, [product] = symm_mem.fused_all_gather_matmul(a, [b], 1, group)
    results = [whole, product, symm_mem.fused_matmul_all_reduce(a, b, "sum", group),
               symm_mem.fused_matmul_reduce_scatter(a, b, "sum", 1, group), symm_mem.all_gather(a, 1, group)]
    for each in results:
        assert each.stride() == DTensor.from_local(each.to_local(), mesh, each.placements).stride()


@on_meshes
def test_uneven_shards(mesh, dim, group):
    """Columns of a gather's factors, and the sum's terms, need not be divisible; other shards must."""
    size = mesh.size(dim)
    a, b = drawn(2 * size, size + 1), drawn(size + 1, 2 * size + 1)
    rows, columns = placed(mesh, dim, Shard(0)), placed(mesh, dim, Shard(1))
    everywhere = placed(mesh, dim, Replicate())
    check(mesh, lambda a, b: symm_mem.fused_all_gather_matmul(a, [b], 0, group)[1], lambda a, b: [a @ b], [a, b],
          [rows, columns], [columns])
    check(mesh, lambda a, b: [symm_mem.fused_matmul_reduce_scatter(a, b, "sum", 0, group)], lambda a, b: [a @ b],
          [a, b], [columns, rows], [rows])
    check(mesh, lambda a, b: [symm_mem.fused_matmul_all_reduce(a, b, "sum", group)], lambda a, b: [a @ b], [a, b],
          [columns, rows], [everywhere])
    if size > 1:
        says = f"got {size + 1} in dimension .*, expected a multiple of the {size} parts"
        b, c = distributed(b, mesh, rows), distributed(drawn(2 * size + 1, 3), mesh, rows)
        raises(ValueError, says, symm_mem.all_gather, b, 0, group)
        raises(ValueError, says, symm_mem.fused_all_gather_matmul, b, [c], 0, group)
        raises(ValueError, says, symm_mem.fused_matmul_reduce_scatter, b, c, "sum", 0, group)
        raises(ValueError, says, symm_mem.reduce_scatter,
               DTensor.from_local(drawn(size + 1), mesh, placed(mesh, dim, Partial())), "sum", 0, group)


# --- Products of 8-bit floats --------------------------------------------------------------------


def scaled(full, mesh, placements):
    """Returns the DTensor without communication, because gloo does not send 8-bit floats."""
    return DTensor.from_local(full, mesh, [Replicate()] * mesh.ndim).redistribute(placements=placements)


def narrow(*shape, seed):
    return drawn(*shape, seed=seed).to(torch.float8_e4m3fn)


def close(got, expected, into):
    assert (got.shape, got.placements) == (expected.shape, into)
    torch.testing.assert_close(got.full_tensor().double(), expected, atol=1e-4, rtol=1e-5)


@on_meshes
def test_scaled_products(mesh, dim, group):
    """One number, which may be an ordinary tensor, or a number for each row and column."""
    n, number, everywhere = 16 * RANKS, torch.tensor(0.5), placed(mesh, dim, Replicate())
    a, b, bias = narrow(n, n, seed=1), narrow(n, n, seed=2), drawn(n).float()
    by_row, by_column = drawn(n, 1).abs().float(), drawn(1, n).abs().float()
    for kept_rows, scales in itertools.product((Replicate(), Shard(0)), ((number, number), (by_row, by_column))):
        elsewhere = kept_rows if dim == mesh.ndim - 1 else Replicate()
        whole, rows, columns = (placed(mesh, dim, each, elsewhere) for each in (Replicate(), Shard(0), Shard(1)))
        A, B, C = scaled(a, mesh, rows), scaled(b, mesh, everywhere), scaled(bias, mesh, everywhere)
        of_a, of_b = (x if x is number else scaled(x, mesh, everywhere) for x in scales)
        expected = (a.double() @ b.double()) * scales[0].double() * scales[1].double() + bias.double()
        got, [product] = symm_mem.fused_all_gather_scaled_matmul(
            A, [B], of_a, [of_b], 0, group, [C], [number], [torch.float32], [False])
        close(got.float(), a.double(), whole)
        close(product, expected, columns)
        A = scaled(a, mesh, whole)
        close(symm_mem.fused_scaled_matmul_reduce_scatter(A, B, of_a, of_b, "sum", 0, 0, group, [n, n], C, None,
                                                          torch.float32), expected, rows)


@on_meshes
def test_scaled_products_refuse(mesh, dim, group):
    size = mesh.size(dim)
    x, one = scaled(narrow(16 * size, 16 * size, seed=1), mesh, placed(mesh, dim, Replicate())), torch.ones(())
    rest = (group, [None], [None], [torch.float32], [False])
    call = symm_mem.fused_all_gather_scaled_matmul
    raises(TypeError, "got A_scale of type Tensor", call, x, [x], torch.ones(16 * size, 1), [one], 0, *rest)
    raises(TypeError, "got B_scales of type Tensor, expected a list", call, x, [x], one, one, 0, *rest)
    raises(ValueError, "got A_scale of .*, expected one number or", call, x, [x], scaled(torch.ones(3, 1), mesh, placed(
        mesh, dim, Replicate())), [one], 0, *rest)
    call = symm_mem.fused_scaled_matmul_reduce_scatter
    raises(ValueError, "reduce_op 'avg', expected 'sum'", call, x, x, one, one, "avg", 0, 0, group, None)
    raises(ValueError, "needs no reshape", call, x, x, one, one, "sum", 0, 0, group, [size, 16, 16 * size])


# --- Errors ---------------------------------------------------------------------------------------


@on_meshes
def test_mixed_arguments_are_refused(mesh, dim, group):
    size = mesh.size(dim)
    x = distributed(drawn(size, size), mesh, placed(mesh, dim, Replicate()))
    says = r"got {} of type Tensor beside a DTensor, expected a DTensor of the same mesh: pass distribute_tensor"
    raises(TypeError, says.format("A"), symm_mem.fused_all_gather_matmul, x.to_local(), [x], 0, group)
    raises(TypeError, says.format(r"Bs\[1\]"), symm_mem.fused_all_gather_matmul, x, [x, x.to_local()], 0, group)
    raises(TypeError, says.format("B"), symm_mem.fused_matmul_reduce_scatter, x, x.to_local(), "sum", 0, group)
    raises(TypeError, says.format("A"), symm_mem.fused_matmul_all_reduce, x.to_local(), x, "sum", group)
    raises(TypeError, "got Bs of type DTensor, expected a list", symm_mem.fused_all_gather_matmul, x, x, 0, group)
    other = init_device_mesh("cpu", (1, 1, RANKS), mesh_dim_names=("a", "b", "c"))
    y = distributed(drawn(size, size), other, [Replicate()] * 3)
    raises(ValueError, "got B on DeviceMesh.*, expected the mesh of the other tensors", symm_mem.fused_matmul_all_reduce,
           x, y, "sum", group)


@on_meshes
def test_wrong_calls_are_refused(mesh, dim, group):
    size = mesh.size(dim)
    x = distributed(drawn(size, size), mesh, placed(mesh, dim, Replicate()))
    for op in ("avg", "max"):
        says = f"got reduce_op '{op}', expected 'sum': with DTensors"
        raises(ValueError, says, symm_mem.fused_matmul_reduce_scatter, x, x, op, 0, group)
        raises(ValueError, says, symm_mem.fused_matmul_all_reduce, x, x, op, group)
    raises(ValueError, "expected Partial\\('sum'\\) on the group's dimension", symm_mem.all_reduce, x, "sum", group)
    raises(ValueError, "expected Partial\\('sum'\\)", symm_mem.reduce_scatter, x, "sum", 0, group)
    raises(ValueError, "Invalid gather_dim: got 2, expected 0 to 1", symm_mem.fused_all_gather_matmul, x, [x], 2, group)
    wide = distributed(drawn(size + 1, 2), mesh, placed(mesh, dim, Replicate()))
    raises(RuntimeError, "expected .* rows for A", symm_mem.fused_matmul_all_reduce, x, wide, "sum", group)
    if RANKS > 1 and mesh.ndim == 2:
        name = mesh.get_group(1 - dim).group_name
        y = distributed(drawn(size, size), mesh[("dp", "tp")[dim]], [Replicate()])
        raises(ValueError, f"got the group '{name}', expected the group of one dimension of the tensors' DeviceMesh",
               symm_mem.fused_matmul_all_reduce, y, y, "sum", name)
    raises(TypeError, "got a DeviceMesh of 2 dimensions", symm_mem.all_gather, x, 0, grid())


@on_meshes
def test_other_functions_refuse_dtensors(mesh, dim, group):
    x = distributed(torch.ones(RANKS, 2), mesh, placed(mesh, dim, Replicate()))
    says = r"{}: got a DTensor, expected this rank's own tensor: pass x.to_local\(\); or call x.redistribute\(\)"
    for call, arguments in [
            (symm_mem.all_to_all, (x, group)), (symm_mem.one_shot_all_reduce, (x, "sum", group)),
            (symm_mem.two_shot_all_reduce_, (x, "sum", group)),
            (symm_mem.low_contention_all_gather, (x, group)), (symm_mem.all_to_all_vdev, (x, x, x, x, group))]:
        raises(TypeError, says.format(call.__name__), call, *arguments)


# --- A layer --------------------------------------------------------------------------------------


def layer(group, x, up, down):
    _, [hidden] = symm_mem.fused_all_gather_matmul(x, [up], 0, group, return_A=False)
    return symm_mem.fused_matmul_reduce_scatter(hidden.relu(), down, "sum", 0, group)


@on_meshes
def test_a_layer(mesh, dim, group):
    """Parameters of a module, as distribute_module makes them, and tokens sharded on the whole mesh."""
    n = RANKS
    x, up, down = drawn(4 * n * n, 3, seed=1), drawn(3, 2 * n, seed=2), drawn(2 * n, 3, seed=3)
    tokens = Shard(0) if dim == mesh.ndim - 1 else Replicate()
    placements = [placed(mesh, dim, Shard(0), tokens), placed(mesh, dim, Shard(1)), placed(mesh, dim, Shard(0))]
    check(mesh, lambda *given: [layer(group, *given)], lambda x, up, down: [(x @ up).relu() @ down], [x, up, down],
          placements, [placements[0]])
    weights = [torch.nn.Parameter(distributed(each, mesh, at)) for each, at in zip((up, down), placements[1:])]
    optimizer = torch.optim.Adam(weights)
    layer(group, distributed(x, mesh, placements[0]), *weights).square().sum().backward()
    optimizer.step()


def test_dtensors_in_graphs():
    """The graph has no breaks; its gradients are those of the calls outside of it."""
    n, mesh, dim, group = RANKS, grid(), 1, grid()["tp"]
    given = [distributed(each, mesh, placed(mesh, dim, at)).requires_grad_() for each, at in (
        (drawn(4 * n, 3, seed=1), Shard(0)), (drawn(3, 2 * n, seed=2), Shard(1)), (drawn(2 * n, 3, seed=3), Shard(0)),
        (drawn(2 * n, seed=4), Partial()))]

    def model(x, up, down, bias):
        gathered, [hidden] = symm_mem.fused_all_gather_matmul(x, [up], 0, group)
        bias = symm_mem.all_reduce(bias, "sum", group) + symm_mem.all_gather(
            symm_mem.reduce_scatter(bias, "sum", 0, group), 0, group)
        return (symm_mem.fused_matmul_all_reduce(hidden + bias, down, "sum", group) + gathered,
                symm_mem.fused_matmul_reduce_scatter(hidden, down, "sum", 0, group))

    def with_gradients(function):
        results = function(*given)
        sum(each.square().sum() for each in results).full_tensor().backward()
        found = [each.full_tensor() for each in (*results, *(x.grad for x in given))]
        for x in given:
            x.grad = None
        return found
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    for got, expected in zip(with_gradients(compiled), with_gradients(model)):
        torch.testing.assert_close(got, expected)
