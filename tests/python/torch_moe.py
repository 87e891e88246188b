# SPDX-License-Identifier: BSD-3-Clause
"""weft.torch.moe: a layer of experts on all ranks compared with the same layer in float64 on all tokens at once: results
and gradients of tokens, weights and experts; unused slots, ranks without tokens, compiled graphs, 8-bit rows with scales,
errors on all ranks.
"""
import itertools

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import DTensor, Replicate  # noqa: E402

from weft.torch import moe  # noqa: E402
from torch_world import ME, RANKS, raises, seeded  # noqa: E402

COLS, TOKENS_MAX = 24, 20


def ntokens_of(rank, seed):
    return 0 if (rank + seed) % 5 == 4 else 3 + (7 * rank + seed) % (TOKENS_MAX - 3)


class Problem:
    """All ranks' tokens and all experts' matrices, from which each rank takes its own."""

    def __init__(self, seed, top_k, each, dtype, unused=False):
        draw = seeded(seed, None, each=False)
        self.experts, self.top_k, self.each, self.dtype = each * RANKS, top_k, each, dtype
        self.counts = [ntokens_of(rank, seed) for rank in range(RANKS)]
        total = sum(self.counts)
        self.x = self.rounded(torch.randn(total, COLS, dtype=torch.float64, generator=draw))
        self.w = torch.rand(total, top_k, dtype=torch.float64, generator=draw).float().double()
        self.ids = torch.rand(total, max(self.experts, top_k), generator=draw).topk(top_k).indices % self.experts
        if unused:
            self.ids[torch.rand(total, top_k, generator=draw) < 0.3] = -1
        self.matrices = self.rounded(torch.randn(self.experts, COLS, COLS, dtype=torch.float64, generator=draw) / 5)
        self.grad = self.rounded(torch.randn(total, COLS, dtype=torch.float64, generator=draw))

    def rounded(self, tensor):
        return tensor.to(self.dtype).double()

    def mine(self, tensor):
        return tensor.split(self.counts)[ME]

    def layer(self):
        return moe.MoE(self.experts, self.top_k, COLS, TOKENS_MAX, rows_max=RANKS * TOKENS_MAX * self.top_k,
                       dtype=self.dtype)

    def reference(self):
        """Returns the results, and the gradients of tokens, weights and matrices."""
        x, w, matrices = (tensor.clone().requires_grad_() for tensor in (self.x, self.w, self.matrices))
        parts = [w[:, slot, None] * (x[:, None] @ matrices[self.ids[:, slot].clamp(min=0)]).tanh()[:, 0]
                 * (self.ids[:, slot, None] >= 0) for slot in range(self.top_k)]
        y = sum(parts)
        y.backward(self.grad)
        return y.detach(), x.grad, w.grad, matrices.grad

    def bound(self):
        return {torch.float64: 1e-5, torch.float32: 1e-4, torch.bfloat16: 0.12}[self.dtype]  # weights are float32


def apply(layer, x, ids, w, matrices):
    rows = layer.dispatch(x, ids, w)
    parts = [(part @ matrix).tanh() for part, matrix in zip(rows.split(), matrices)]
    return layer.combine(torch.cat(parts), rows)


def close(problem, found, expected):
    assert found.shape == expected.shape
    difference = (found.double() - expected).abs().max().item() if found.numel() else 0
    assert difference <= problem.bound(), difference


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("top_k, each, unused", [(1, 1, False), (2, 3, False), (3, 2, True), (8, 4, True)])
def test_layer(dtype, top_k, each, unused):
    for seed in range(3):
        problem = Problem(seed, top_k, each, dtype, unused)
        y, grad_x, grad_w, grad_matrices = problem.reference()
        x = problem.mine(problem.x).to(dtype).requires_grad_()
        w = problem.mine(problem.w).float().requires_grad_()
        matrices = problem.matrices.split(each)[ME].to(dtype).requires_grad_()
        layer = problem.layer()
        found = apply(layer, x, problem.mine(problem.ids), w, matrices)
        close(problem, found, problem.mine(y))
        found.backward(problem.mine(problem.grad).to(dtype))
        close(problem, x.grad, problem.mine(grad_x))
        close(problem, w.grad, problem.mine(grad_w))
        close(problem, matrices.grad, grad_matrices.split(each)[ME])
        layer.destroy()


def test_the_same_bits():
    problem = Problem(5, 4, 2, torch.bfloat16)
    layer = problem.layer()
    inputs = problem.mine(problem.x).bfloat16(), problem.mine(problem.ids), problem.mine(problem.w).float()
    matrices = problem.matrices.split(2)[ME].bfloat16()
    first = apply(layer, *inputs, matrices)
    assert all(torch.equal(apply(layer, *inputs, matrices), first) for _ in range(5))
    layer.destroy()


def test_without_weights():
    problem = Problem(2, 2, 2, torch.float64)
    layer = problem.layer()
    x = problem.mine(problem.x).requires_grad_()
    rows = layer.dispatch(x, problem.mine(problem.ids))
    assert rows.weights is None and rows.scales is None
    y = layer.combine(rows.data, rows)
    assert torch.equal(y, 2 * x), "two experts return each token"
    y.sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 2))
    layer.destroy()


def test_rows():
    """Rows are sorted by expert, rank, token and slot, and name their source."""
    problem = Problem(3, 3, 2, torch.float32, unused=True)
    layer = problem.layer()
    rows = layer.dispatch(problem.mine(problem.x).float(), problem.mine(problem.ids), problem.mine(problem.w).float())
    starts = [0, *itertools.accumulate(problem.counts)]
    expected = [(expert, rank, token - starts[rank], slot)
                for expert in range(ME * 2, ME * 2 + 2) for rank in range(RANKS)
                for token in range(starts[rank], starts[rank + 1]) for slot in range(3)
                if problem.ids[token, slot] == expert]
    sources = [(rank * TOKENS_MAX + token) * 3 + slot for _, rank, token, slot in expected]
    count = len(expected)
    assert rows.offsets.tolist() == [sum(e < ME * 2 + i for e, *_ in expected) for i in range(3)]
    assert rows.sources.tolist() == sources + [-1] * (layer.rows_max - count)
    for row, (_, rank, token, slot) in enumerate(expected):
        assert torch.equal(rows.data[row], problem.x[starts[rank] + token].float())
        assert rows.weights[row] == problem.w[starts[rank] + token, slot].float()
    assert not rows.data[count:].any() and not rows.weights[count:].any()
    layer.destroy()


def test_scales():
    """Rows of 8 bits with scales."""
    x = torch.randn(5 + ME, COLS, generator=seeded(1, dist.group.WORLD))
    layer = moe.MoE(RANKS, 1, COLS, 16, scale_cols=2, dtype=torch.float8_e4m3fn)
    scales = torch.rand(5 + ME, 2, generator=seeded(2, dist.group.WORLD))
    ids = torch.full((5 + ME, 1), RANKS - 1 - ME)
    rows = layer.dispatch(x.to(torch.float8_e4m3fn), ids, scales=scales)
    other = RANKS - 1 - ME
    count = 5 + other
    every = [None] * RANKS
    dist.all_gather_object(every, (x, scales))
    assert rows.offsets.tolist() == [0, count]
    assert torch.equal(rows.data[:count].float(), every[other][0].to(torch.float8_e4m3fn).float())
    assert torch.equal(rows.scales[:count], every[other][1])
    layer.destroy()


def test_compiled():
    problem = Problem(4, 2, 2, torch.float32)
    layer = problem.layer()
    ids, matrices = problem.mine(problem.ids), problem.matrices.split(2)[ME].float()

    def step(x, w):
        rows = layer.dispatch(x, ids, w)
        return layer.combine((rows.data @ matrices[0]).tanh(), rows)

    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    results = []
    for call in step, compiled:
        x, w = problem.mine(problem.x).float().requires_grad_(), problem.mine(problem.w).float().requires_grad_()
        y = call(x, w)
        y.backward(problem.mine(problem.grad).float())
        results.append((y.detach(), x.grad, w.grad))
    assert all(torch.equal(eager, other) for eager, other in zip(*results))
    layer.destroy()


def test_wrong_arguments_of_one_rank():
    """A call that cannot be read is an error of the other ranks, too."""
    layer = moe.MoE(RANKS, 1, COLS, 8)
    x, ids = torch.zeros(1, COLS), torch.zeros(1, 1, dtype=torch.int32)
    arrays = [x.new_empty(layer.rows_max, COLS), ids.new_empty(layer.rows_max), ids.new_empty(layer.experts_each + 1)]
    given = [x, ids, *arrays[:-1 if ME == 0 else None]]
    raises(TypeError if ME == 0 else ValueError, "MoE.dispatch", layer._moe.dispatch, *given)
    layer.destroy()


def test_errors():
    raises(ValueError, "shape->top_k is 17", moe.MoE, RANKS, 17, COLS, 8)
    layer = moe.MoE(RANKS, 1, COLS, 8, rows_max=2)
    x, ids = torch.zeros(9, COLS), torch.zeros(9, 1, dtype=torch.int64)
    text = f"would receive {3 * RANKS} rows, {3 * RANKS} of them for its expert 0, but rows_max is 2"
    raises(RuntimeError, text, layer.dispatch, x[:3], ids[:3])
    raises(ValueError, "has expert", layer.dispatch, x[:1], ids[:1] + RANKS)
    raises(ValueError, "argument tokens has 15 elements", layer.dispatch, x[:3, :5], ids[:3])
    raises(ValueError, "ntokens is 9", layer.dispatch, x, ids - 1)
    whole = DTensor.from_local(x[:1], init_device_mesh("cpu", (RANKS,)), [Replicate()])
    raises(TypeError, "pass x.to_local()", layer.dispatch, whole, ids[:1])
    rows = layer.dispatch(x[:1], ids[:1] - 1)
    assert rows.offsets.tolist() == [0, 0] and not layer.combine(rows.data, rows).any()
    layer.destroy()
    raises(RuntimeError, "it was destroyed", layer.dispatch, x, ids)
