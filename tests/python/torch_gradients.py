# SPDX-License-Identifier: BSD-3-Clause
"""Gradients of weft.torch's functions and of torch.ops.weft.* compared with plain PyTorch in one process, and
PyTorch's checks of an operator (opcheck): schema, autograd, fake tensors, compilation with varying sizes.
"""
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hypothesis")

from hypothesis import strategies as st  # noqa: E402
from torch._subclasses import FakeTensorMode  # noqa: E402

import weft.torch as symm_mem  # noqa: E402
from torch_operators import drawn, of_all  # noqa: E402
from torch_world import on_groups, on_world, property_test, raises, seeded  # noqa: E402

seeds = st.integers(0, 999)
# Every rank has its own loss; their sum is differentiated, as in data parallelism.


def members_leaves(tensor, group):
    """Returns the members' tensors as leaves of one graph in this process."""
    return [each.clone().requires_grad_() for each in of_all(tensor, group)]


def check(group, inputs, operator, model, weights):
    """operator(*inputs) on this rank against model(all members' inputs) -> every rank's outputs,
    with weights(rank, output) for the losses."""
    mine = [x.clone().requires_grad_() for x in inputs]
    leaves = [members_leaves(x, group) for x in inputs]
    mine_out = operator(*mine)
    loss(group.rank(), mine_out, weights).backward()
    everyone = model(*leaves)
    sum(loss(rank, out, weights) for rank, out in enumerate(everyone)).backward()
    for out, expected in zip(tensors(mine_out), tensors(everyone[group.rank()])):
        torch.testing.assert_close(out, expected)
    for x, alike in zip(mine, leaves):
        torch.testing.assert_close(x.grad, alike[group.rank()].grad)


def tensors(outputs):
    return [outputs] if isinstance(outputs, torch.Tensor) else [
        tensor for each in outputs if each is not None for tensor in tensors(each)]


def loss(rank, outputs, weights):
    return sum((out * weights(rank, at, out.shape)).sum()
               for at, out in enumerate(tensors(outputs)))


def random_weights(seed):
    return lambda rank, at, shape: torch.randn(
        shape, dtype=torch.float64,
        generator=torch.Generator().manual_seed(seed * 100 + rank * 10 + at))


def fused(name, group, direct):
    """Returns a fused operator as weft.torch's function or as the dispatcher's, and what it calls the group."""
    return (getattr(symm_mem, name), group) if direct else (getattr(torch.ops.weft, name), group.group_name)


@property_test(20, shape=st.lists(st.integers(1, 3), min_size=1, max_size=3),
               dim=st.integers(0, 2), seed=seeds)
def test_all_gather(group, shape, dim, seed):
    dim = dim % len(shape)
    x = drawn(shape, torch.float64, seeded(seed, group))
    check(group, [x], lambda x: symm_mem.all_gather(x, dim, group),
          lambda xs: [torch.cat(xs, dim)] * group.size(), random_weights(seed))


@property_test(20, shape=st.lists(st.integers(1, 3), min_size=1, max_size=3),
               dim=st.integers(0, 2), seed=seeds, op=st.sampled_from(["sum", "avg"]))
def test_reduce_scatter(group, shape, dim, seed, op):
    dim, n = dim % len(shape), group.size()
    shape[dim] *= n
    x = drawn(shape, torch.float64, seeded(seed, group))
    check(group, [x], lambda x: symm_mem.reduce_scatter(x, op, dim, group),
          lambda xs: (sum(xs) / (n if op == "avg" else 1)).chunk(n, dim), random_weights(seed))


@property_test(20, shape=st.lists(st.integers(1, 3), max_size=3), seed=seeds,
               op=st.sampled_from(["sum", "avg"]))
def test_all_reduce(group, shape, seed, op):
    x, n = drawn(shape, torch.float64, seeded(seed, group)), group.size()
    check(group, [x], lambda x: symm_mem.all_reduce(x, op, group),
          lambda xs: [sum(xs) / (n if op == "avg" else 1)] * n, random_weights(seed))


@property_test(20, rows=st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=4,
                                 max_size=4), seed=seeds)
def test_all_to_all(group, rows, seed):
    n, me = group.size(), group.rank()
    sent, taken = rows[me][:n], [rows[peer][me] for peer in range(n)]
    x = drawn((12, 2), torch.float64, seeded(seed, group))

    def model(xs):
        parts = [x[:sum(rows[peer][:n])].split(rows[peer][:n]) for peer, x in enumerate(xs)]
        return [torch.cat([parts[sender][receiver] for sender in range(n)])
                for receiver in range(n)]
    check(group, [x], lambda x: symm_mem.all_to_all(x[:sum(sent)], group, taken, sent), model,
          random_weights(seed))


@property_test(40, shape=st.lists(st.integers(1, 3), min_size=2, max_size=3), dim=st.integers(0, 2),
               columns=st.lists(st.integers(1, 3), min_size=1, max_size=2), seed=seeds,
               return_A=st.booleans(), direct=st.booleans())
def test_fused_all_gather_matmul(group, shape, dim, columns, seed, return_A, direct):
    call, where = fused("fused_all_gather_matmul", group, direct)
    dim, n, noise = dim % len(shape), group.size(), seeded(seed, group)
    inner = shape[-1] * (n if dim == len(shape) - 1 else 1)
    inputs = [drawn(shape, torch.float64, noise)]
    inputs += [drawn((inner, each), torch.float64, noise) for each in columns]

    def operator(x, *bs):
        return call(x, list(bs), dim, where, return_A=return_A)

    def model(xs, *bs):
        whole = torch.cat(xs, dim)
        return [(whole if return_A else None, [whole @ each[rank] for each in bs])
                for rank in range(n)]
    check(group, inputs, operator, model, random_weights(seed))


@property_test(40, shape=st.lists(st.integers(1, 3), min_size=2, max_size=3), dim=st.integers(0, 2),
               columns=st.integers(1, 3), seed=seeds, op=st.sampled_from(["sum", "avg"]), direct=st.booleans())
def test_fused_matmul_reduce_scatter(group, shape, dim, columns, seed, op, direct):
    call, where = fused("fused_matmul_reduce_scatter", group, direct)
    dim, n, noise = dim % len(shape), group.size(), seeded(seed, group)
    if dim < len(shape) - 1:
        shape[dim] *= n
    else:
        columns *= n
    inputs = [drawn(shape, torch.float64, noise), drawn((shape[-1], columns), torch.float64, noise)]
    check(group, inputs,
          lambda x, b: call(x, b, op, dim, where),
          lambda xs, bs: (sum(x @ b for x, b in zip(xs, bs)) / (n if op == "avg" else 1)).chunk(
              n, dim), random_weights(seed))


@property_test(20, shape=st.lists(st.integers(1, 4), min_size=2, max_size=3), columns=st.integers(1, 4),
               seed=seeds, op=st.sampled_from(["sum", "avg"]), direct=st.booleans())
def test_fused_matmul_all_reduce(group, shape, columns, seed, op, direct):
    call, where = fused("fused_matmul_all_reduce", group, direct)
    n, noise = group.size(), seeded(seed, group)
    inputs = [drawn(shape, torch.float64, noise), drawn((shape[-1], columns), torch.float64, noise)]
    check(group, inputs, lambda x, b: call(x, b, op, where),
          lambda xs, bs: [sum(x @ b for x, b in zip(xs, bs)) / (n if op == "avg" else 1)] * n, random_weights(seed))


@on_groups
def test_gradients_of_some_inputs(group):
    x, b = torch.ones(2, 3), torch.ones(3, 4, requires_grad=True)
    symm_mem.fused_matmul_reduce_scatter(x.repeat(group.size(), 1), b, "sum", 0, group).sum() \
        .backward()
    assert x.grad is None and (b.grad == 2 * group.size()).all()
    b.grad = None
    whole, [unused, product] = symm_mem.fused_all_gather_matmul(x, [torch.ones(3, 2), b], 0, group)
    product.sum().backward()
    assert (b.grad == 2 * group.size()).all()
    y = torch.ones(3, requires_grad=True)
    raises(NotImplementedError, "'max' in backward",
           symm_mem.all_reduce(y, "max", group).sum().backward)


@on_groups
def test_gradients_of_gradients(group):
    x, b = (torch.randn(shape, dtype=torch.float64, generator=seeded(7, group))
            for shape in ((2 * group.size(), 3), (3, 4)))
    found = []
    for direct in (True, False):
        call, where = fused("fused_matmul_reduce_scatter", group, direct)
        w = b.clone().requires_grad_()
        [grad] = torch.autograd.grad(call(x, w, "sum", 0, where).pow(3).sum(), w, create_graph=True)
        grad.square().sum().backward()
        found.append((grad.detach(), w.grad))
    torch.testing.assert_close(found[0], found[1])


@on_groups
def test_ranks_whose_losses_use_different_results(group):
    """An unused result has a gradient of zeros, so all ranks make the same calls."""
    for direct in (True, False):
        call, where = fused("fused_all_gather_matmul", group, direct)
        x, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4, requires_grad=True)
        whole, [product] = call(x, (b,) if direct else [b], 0, where)
        (whole if group.rank() else product).sum().backward()
        assert (x.grad == 4 + group.size() - 1).all(), x.grad
        assert (b.grad == (0 if group.rank() else 2 * group.size())).all(), b.grad


@on_groups
def test_batches_of_gradients(group):
    x, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4)
    _, [product] = symm_mem.fused_all_gather_matmul(x, [b], 0, group, return_A=False)
    rows = torch.eye(2 * group.size())[:, :, None].expand(-1, -1, 4).contiguous()
    [batch] = torch.autograd.grad(product, x, rows, is_grads_batched=True)
    expected = torch.zeros(2 * group.size(), 2, 3)
    expected[2 * group.rank() + torch.arange(2), torch.arange(2)] = 4. * group.size()
    torch.testing.assert_close(batch, expected)


def check_schema(op, args):
    torch.library.opcheck(op.default, args, test_utils=("test_schema", "test_faketensor"))


@on_world
def test_opcheck(group):
    name, n, ops = group.group_name, group.size(), torch.ops.weft
    half = lambda *shape: torch.randn(*shape).to(torch.float8_e4m3fn)  # noqa: E731
    grad = lambda *shape: torch.randn(*shape, requires_grad=True)  # noqa: E731
    one = torch.ones(())
    for op, args in [
            (ops.all_gather, (grad(3, 4), 1, name)),
            (ops.reduce_scatter, (grad(3, 2 * n), "avg", 1, name)),
            (ops.all_reduce, (grad(3), "sum", name)),
            (ops.all_to_all, (grad(2 * n, 3), None, None, name)),
            (ops.all_to_all, (grad(2 * n, 3), [2] * n, [2] * n, name)),
            (ops.fused_all_gather_matmul, (grad(2, 3), [grad(3, 4), torch.ones(3, 2)], 0, name)),
            (ops.fused_all_gather_matmul, (torch.ones(2, 3, 4), [torch.ones(4, 4)], 1, name)),
            (ops.fused_all_gather_matmul, (torch.ones(2, 3), [torch.ones(3 * n, 4)], 1, name)),
            (ops.fused_matmul_reduce_scatter, (grad(2 * n, 3), grad(3, 2), "sum", 0, name)),
            (ops.fused_matmul_all_reduce, (grad(2, 3), grad(3, 2), "avg", name)),
            (ops.fused_matmul_reduce_scatter, (torch.ones(2, 3), torch.ones(3, 2 * n), "avg", 1,
                                               name))]:
        torch.library.opcheck(op.default, args)
    for op, args in [  # opcheck cannot compare 8-bit floats, as test_schema must
            (ops.fused_all_gather_scaled_matmul, (
                half(4, 16), [half(16, 16).t()], one, [one], 0, name, [None], [None],
                [torch.bfloat16], [False])),
            (ops.fused_scaled_matmul_reduce_scatter, (
                half(4 * n, 16), half(16, 16).t(), one, one, "sum", 0, 0, name, [4 * n, 16], None,
                None, torch.float32))]:
        torch.library.opcheck(op.default, args, test_utils=(
            "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"))
    for op, args in [
            (torch.ops.symm_mem._low_contention_all_gather, (torch.ones(2, 3), name)),
            (torch.ops.symm_mem._low_contention_reduce_scatter, (torch.ones(2 * n, 3), "sum",
                                                                 name))]:
        check_schema(op, args)
    check_writers(name, n)


def check_writers(name, n):
    """PyTorch's operators that get their CPU kernels here, and need no symmetric memory, which opcheck
    would copy: what they write to, and what they return, is what their schemas say."""
    ops, words = torch.ops.symm_mem, torch.zeros(8, dtype=torch.uint32)
    splits, books = torch.ones(n, dtype=torch.int64), torch.zeros(2, n, dtype=torch.int64)
    rows, out = torch.randn(n, 3), torch.zeros(n, 3)
    for op, args in [
            (ops.stream_write_value32_, (words, 1, 5)), (ops.memset32_, (words, 1, 5, 3)),
            (ops.all_to_all_vdev, (rows, out, splits, books, name)),
            (ops.all_to_all_vdev_2d, (rows, out, splits, books, name, 1)),
            (ops.all_to_all_vdev_2d_offset, (rows, out, torch.stack([splits, splits.cumsum(0) - 1]), books, name)),
            (ops.fused_all_gather_matmul, (torch.ones(2, 3), [torch.ones(3, 4)], 0, name)),
            (ops.fused_matmul_reduce_scatter, (torch.ones(2 * n, 3), torch.ones(3, 2), "sum", 0, name))]:
        check_schema(op, args)


@on_groups
def test_shapes_of_tensors_without_memory(group):
    """PyTorch's operators that write to their arguments; opcheck would copy symmetric ones."""
    name, n, ops = group.group_name, group.size(), torch.ops.symm_mem
    with FakeTensorMode():
        x, out, long = torch.empty(4, n), torch.empty(4, 1), torch.empty(2, n, dtype=torch.int64)
        assert ops.one_shot_all_reduce(x, "sum", name).shape == (4, n)
        assert ops.one_shot_all_reduce_copy(x, out, "sum", name).shape == (4, 1)
        assert ops.one_shot_all_reduce_out(x, "sum", name, x) is x
        assert ops.one_shot_all_reduce_copy_out(x, out, "sum", name, out) is out
        assert ops.two_shot_all_reduce_(x, "sum", name) is x
        assert ops.two_shot_all_reduce_out(x, "sum", name, x) is x
        assert ops.reduce_scatter_out(x, name, True, out) is out
        assert ops.memset32_(x, 0, 1, 1) is ops.stream_write_value32_(x, 0, 1) is x
        assert len(ops.get_remote_tensors(x, name)) == n
        assert ops.all_to_all_vdev(x, x, long[0], long, name) is None
        assert ops.all_to_all_vdev_2d(x, x, long[0], long, name, 8) is None


@on_world
def test_compiled(group):
    """A graph without breaks, with the backend that runs it as it is."""
    def layer(x, w, v):
        hidden = symm_mem.fused_all_gather_matmul(x, [w], 0, group.group_name, return_A=False)[1][0]
        return symm_mem.fused_matmul_reduce_scatter(hidden.relu(), v, "sum", 0, group.group_name)
    torch._dynamo.reset()
    x, w, v = (torch.randn(shape, generator=seeded(3, group)) for shape in ((2, 4), (4, 6), (6, 4)))
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, w, v), layer(x, w, v))
    w.requires_grad_()
    compiled(x, w, v).sum().backward()
    grad, w.grad = w.grad, None
    layer(x, w, v).sum().backward()
    torch.testing.assert_close(w.grad, grad)


@on_world
def test_operators_in_graphs(group):
    """The statements of docs/torch.md about torch.compile(fullgraph=True), with both ways to name a group."""
    n, x = group.size(), torch.ones(4 * group.size(), 4)
    t, rows, out = (symm_mem.empty(*shape, device="cpu").fill_(1) for shape in ((4, 4), (2 * n, 3), (2 * n, 3)))
    for each in (t, rows, out):
        symm_mem.rendezvous(each, group)
    splits, books = torch.tensor([2] * n), symm_mem.empty(2, n, dtype=torch.int64, device="cpu")
    symm_mem.rendezvous(books, group)
    whole = torch.ones(4, 4) * n
    for call, expected in [
            (lambda: symm_mem.all_to_all(x, group), x),
            (lambda: symm_mem.all_reduce(x, "sum", group_name=group.group_name), x * n),
            (lambda: symm_mem.one_shot_all_reduce(t, "sum", group), whole),
            (lambda: symm_mem.one_shot_all_reduce_copy(t, torch.ones(2, 4), "sum", group), whole[:2]),
            (lambda: symm_mem.low_contention_all_gather(x, group), torch.cat([x] * n)),
            (lambda: symm_mem.low_contention_reduce_scatter(x, "sum", group), whole),
            (lambda: torch.stack(symm_mem.get_remote_tensors(t, group)), torch.ones(n, 4, 4)),
            (lambda: symm_mem.all_to_all_vdev(rows, out, splits, books, group) or out * 1, torch.ones(2 * n, 3))]:
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(call, backend="aot_eager", fullgraph=True)(), expected)


@on_groups
def test_operators_without_a_gradient_say_so(group):
    t, x = symm_mem.empty(4, device="cpu").fill_(1), torch.ones(4, requires_grad=True)
    symm_mem.rendezvous(t, group)
    for call, arguments in [
            (symm_mem.one_shot_all_reduce_copy, (t, x, "sum", group)), (symm_mem.one_shot_all_reduce, (x, "sum", group)),
            (symm_mem.low_contention_all_gather, (x, group)), (symm_mem.get_remote_tensors, (x, group))]:
        raises(RuntimeError, f"{call.__name__}: got a tensor that requires a gradient", call, *arguments)
    with torch.no_grad():
        assert (symm_mem.one_shot_all_reduce_copy(t, x, "sum", group) == group.size()).all()
