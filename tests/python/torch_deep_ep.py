# SPDX-License-Identifier: BSD-3-Clause
"""weft.torch.deep_ep: both modes on groups of 1 to 4 ranks, compared with all ranks' tokens in float64: received rows
and their order, sums, weights, 8-bit floats, padded rows; uneven and empty routes, handles used again, several Buffers
and layers at a time, and errors of one rank, after which all ranks can continue.
"""
import inspect

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

from weft.torch.deep_ep import Buffer, Config, EventHandle, EventOverlap, topk_idx_t  # noqa: E402
from torch_world import GROUPS, group_of_ranks, named_group, on_groups, on_world, raises, seeded  # noqa: E402

HIDDEN, EACH, TOP_K, MOST = 512, 3, 2, 9
NARROW = torch.float8_e4m3fn


class Problem:
    """Tokens of all ranks of a group, and their experts. Expert e multiplies by e + 1."""

    def __init__(self, group, seed=0, dtype=torch.bfloat16, top_k=TOP_K, counts=None, hidden=HIDDEN):
        draw = seeded(seed, group, each=False)
        self.me, self.n = group.rank(), group.size()
        self.experts, self.dtype = EACH * self.n, dtype
        self.counts = counts or [(5 * rank + 3 * seed) % MOST for rank in range(self.n)]
        total = sum(self.counts)
        self.x = torch.randn(total, hidden, generator=draw).to(dtype)
        self.ids = torch.rand(total, self.experts, generator=draw).argsort(1)[:, :top_k]
        self.ids[torch.rand(self.ids.shape, generator=draw) < 0.2] = -1
        self.w = torch.rand(self.ids.shape, generator=draw)

    def mine(self, tensor):
        return tensor.split(self.counts)[self.me]

    def rank_of_token(self):
        return [rank for rank, count in enumerate(self.counts) for _ in range(count)]

    def received(self):
        """Returns the tokens that have an expert on this rank, as numbers among all ranks' tokens."""
        mine = range(self.me * EACH, self.me * EACH + EACH)
        return [t for t, ids in enumerate(self.ids.tolist()) if any(e in mine for e in ids)]

    def of_expert(self, expert):
        return [t for t, ids in enumerate(self.ids.tolist()) if expert in ids]

    def result(self):
        """Returns this rank's tokens after the layer, in float64."""
        factors = (self.w.double() * (self.ids + 1)).sum(1)  # 0 for the slots of -1
        return self.mine(self.x.double() * factors[:, None])

    def layout(self, buffer, **options):
        per_rank, none, per_expert, in_rank, event = buffer.get_dispatch_layout(self.mine(self.ids), self.experts, **options)
        assert none is None
        return dict(num_tokens_per_rank=per_rank, is_token_in_rank=in_rank, num_tokens_per_expert=per_expert)

    def dispatch(self, buffer, x=None, **options):
        given = dict(topk_idx=self.mine(self.ids), topk_weights=self.mine(self.w))
        return buffer.dispatch(self.mine(self.x) if x is None else x, **self.layout(buffer), **{**given, **options})

    def through(self, buffer, **options):
        """Returns this rank's tokens after the layer, in normal mode."""
        x, ids, w, _, handle, _ = self.dispatch(buffer, **options)
        return buffer.combine(self.compute(x, ids, w), handle)[0]

    def compute(self, x, ids, w):
        factors = (w * (ids + 1 + self.me * EACH) * (ids >= 0)).sum(1)
        return (x.float() * factors[:, None]).to(self.dtype)

    def compute_padded(self, x):
        factors = torch.arange(1, EACH + 1) + self.me * EACH
        return (x.float() * factors[:, None, None]).to(self.dtype)

    def low_latency(self, buffer, **options):
        return buffer.low_latency_dispatch(self.mine(self.x), self.mine(self.ids), MOST, self.experts, **options)

    def combine_padded(self, buffer, results, handle, **options):
        return buffer.low_latency_combine(results, self.mine(self.ids), self.mine(self.w), handle, **options)

    def through_low_latency(self, buffer, **options):
        x, _, handle, *_ = self.low_latency(buffer, use_fp8=False)
        return self.combine_padded(buffer, self.compute_padded(x), handle, **options)[0]


def close(found, expected, bound):
    """bound: of the difference, relative to the largest value."""
    assert found.shape == expected.shape
    if found.numel():
        worst = ((found.double() - expected.double()).abs().max() / expected.abs().max().clamp(min=1e-3)).item()
        assert worst <= bound, worst


def make(group, **options):
    return Buffer(group, explicitly_destroy=True, low_latency_mode=True, **options)


BOUNDS = {torch.bfloat16: 0.02, torch.float16: 0.003, torch.float32: 1e-5}


# --- Normal mode -----------------------------------------------------------------------------------


@on_groups
def test_layout(group):
    problem, buffer = Problem(group, 1), make(group)
    found = problem.layout(buffer)
    ids = problem.mine(problem.ids).tolist()
    assert found["num_tokens_per_expert"].tolist() == [sum(row.count(e) for row in ids) for e in range(problem.experts)]
    in_rank = [[any(e // EACH == rank for e in row if e >= 0) for rank in range(problem.n)] for row in ids]
    assert found["is_token_in_rank"].tolist() == in_rank
    assert found["num_tokens_per_rank"].tolist() == [sum(column) for column in zip(*in_rank)] or not ids
    assert {each.dtype for each in found.values()} == {torch.int32, torch.bool}
    buffer.destroy()


def check_received(problem, x, ids, w, counts, alignment=1):
    rows = problem.received()
    local = problem.ids[rows] - problem.me * EACH
    mine = (local >= 0) & (local < EACH)
    assert torch.equal(x.double(), problem.x[rows].double())
    assert torch.equal(ids, torch.where(mine, local, -1)) and ids.dtype == topk_idx_t
    assert torch.equal(w, problem.w[rows] * mine)
    exact = [len(problem.of_expert(problem.me * EACH + e)) for e in range(EACH)]
    assert counts == [-(-count // alignment) * alignment for count in exact]


@pytest.mark.parametrize("dtype", BOUNDS)
def test_normal_mode(dtype):
    for ranks in GROUPS:
        group = group_of_ranks(ranks)
        if group is None:
            continue
        buffer = make(group)
        for seed in range(4):  # numbers of tokens differ, and 0 is among them
            problem = Problem(group, seed, dtype, top_k=1 + seed)
            x, ids, w, counts, handle, event = problem.dispatch(buffer, expert_alignment=4)
            check_received(problem, x, ids, w, counts, 4)
            assert event.event is None
            y, back, _ = buffer.combine(problem.compute(x, ids, w), handle, topk_weights=w)
            close(y, problem.result(), BOUNDS[dtype])
            assert y.dtype == dtype and torch.equal(back, problem.mine(problem.w * (problem.ids >= 0)))
        buffer.destroy()


@on_groups
def test_narrow_rows_with_scales(group):
    """Scales travel with rows, of any strides and as float32 and int32, and the results are combined in bf16."""
    buffer, problem = make(group), Problem(group, 3)
    narrow = problem.x.float().to(NARROW)
    for kind in torch.float32, torch.int32:
        scales = torch.randint(-1 << 31, 1 << 31, (narrow.shape[0], 5), generator=seeded(9, group, each=False)).int().view(kind)
        column_major = problem.mine(scales).t().contiguous().t()
        (data, got), ids, w, _, handle, _ = problem.dispatch(buffer, (problem.mine(narrow), column_major))
        rows = problem.received()
        assert torch.equal(data.view(torch.uint8), narrow[rows].view(torch.uint8)) and got.dtype == kind
        assert torch.equal(got.view(torch.int32), scales[rows].view(torch.int32)), "every bit, also of NaNs"
        again = buffer.dispatch((problem.mine(narrow), column_major), handle=handle)
        assert torch.equal(again[0][1].view(torch.int32), got.view(torch.int32)) and again[1:5] == (None,) * 4
        close(buffer.combine(problem.compute(problem.x[rows], ids, w), handle)[0], problem.result(), 0.02)
    buffer.destroy()


@on_groups
def test_cached_handle(group):
    """New tokens on old routes, as the gradient of a combine needs them, and of another width."""
    buffer, problem = make(group), Problem(group, 2)
    handle = problem.dispatch(buffer)[4]
    for x in (problem.x * 2, problem.x[:, :40].float()):
        got, *nothing, event = buffer.dispatch(problem.mine(x), handle=handle)
        assert nothing == [None] * 4 and torch.equal(got, x[problem.received()])
        close(buffer.combine(got, handle)[0], problem.mine(x).double() * problem.layout(buffer)["is_token_in_rank"].sum(
            1, keepdim=True), 0.02)
    buffer.destroy()


@on_groups
def test_without_topk(group):
    buffer, problem = make(group), Problem(group, 1)
    x, ids, w, counts, _, _ = problem.dispatch(buffer, topk_idx=None, topk_weights=None)
    assert ids is None and w is None and torch.equal(x, problem.x[problem.received()])
    assert counts == [len(problem.of_expert(problem.me * EACH + e)) for e in range(EACH)]
    buffer.destroy()


@on_groups
def test_worst_number_of_tokens(group):
    buffer, problem = make(group), Problem(group, 1)
    rows = problem.received()
    for worst in (len(rows) + 1, 3 * MOST * problem.n):
        x, ids, w, counts, handle, _ = problem.dispatch(buffer, num_worst_tokens=worst)
        assert x.shape[0] == ids.shape[0] == w.shape[0] == worst and counts == []
        check_received(problem, x[:len(rows)], ids[:len(rows)], w[:len(rows)],
                       [len(problem.of_expert(problem.me * EACH + e)) for e in range(EACH)])
        assert (ids[len(rows):] == -1).all()
        close(buffer.combine(problem.compute(x, ids, w), handle)[0], problem.result(), 0.02)
        assert buffer.dispatch(problem.mine(problem.x), handle=handle)[0].shape[0] == worst
    buffer.destroy()


@on_groups
def test_too_many_for_the_worst_number(group):
    problem, buffer = Problem(group, counts=[MOST] * group.size()), make(group)
    problem.ids[:] = problem.experts - 1  # on the last rank
    if problem.me == problem.n - 1:
        raises(RuntimeError, "num_worst_tokens 2", problem.dispatch, buffer, num_worst_tokens=2)
    else:
        problem.dispatch(buffer, num_worst_tokens=2)
    close(problem.through(buffer), Problem.result(problem), 0.05)
    buffer.destroy()


@on_groups
def test_bias(group):
    buffer, problem = make(group), Problem(group, 1)
    x, _, _, _, handle, _ = problem.dispatch(buffer)
    plain = buffer.combine(x, handle)[0]
    one, two = problem.mine(problem.x) * 3, problem.mine(problem.x) - 1
    for bias in one, (one,), (one, two):
        expected = plain.double() + (sum(each.double() for each in bias) if isinstance(bias, tuple) else bias.double())
        assert torch.equal(buffer.combine(x, handle, bias=bias)[0], expected.bfloat16())
    buffer.destroy()


# --- Low-latency mode ------------------------------------------------------------------------------


def check_padded(problem, x, count, handle):
    """Rows are sorted by rank and token, and the handle has their sources."""
    sources, ranges, *sizes = handle
    assert sizes == [MOST, HIDDEN, problem.experts] and x.shape == (EACH, MOST * problem.n, HIDDEN)
    starts = [sum(problem.counts[:rank]) for rank in range(problem.n)]
    owner = problem.rank_of_token()
    for e in range(EACH):
        tokens = problem.of_expert(problem.me * EACH + e)
        assert count[e] == len(tokens) and count.dtype == torch.int32
        assert torch.equal(x[e, :len(tokens)], problem.x[tokens])
        assert sources[e].tolist() == [t - starts[owner[t]] for t in tokens] + [-1] * (MOST * problem.n - len(tokens))
        begin = 0
        for rank, word in enumerate(ranges[e].tolist()):
            assert (word >> 32, word & 0xFFFFFFFF) == (begin, sum(owner[t] == rank for t in tokens))
            begin += word & 0xFFFFFFFF


@on_groups
def test_low_latency_mode(group):
    for dtype, bound in BOUNDS.items():
        buffer = make(group)
        for seed in range(4):
            problem = Problem(group, seed, dtype, top_k=1 + seed % 3)
            stats = torch.full((EACH,), 7, dtype=torch.int32)
            x, count, handle, event, hook = problem.low_latency(buffer, use_fp8=False,
                                                                cumulative_local_expert_recv_stats=stats)
            check_padded(problem, x, count, handle)
            assert torch.equal(stats, count + 7) and event.event is None and hook is None
            for e in range(EACH):
                x[e, count[e]:] = float("nan")  # unused rows are not read
            y, _, _ = problem.combine_padded(buffer, problem.compute_padded(x), handle)
            close(y, problem.result(), bound)
            assert y.dtype == dtype
        buffer.destroy()


@on_groups
def test_sums_are_rounded_once(group):
    """The sum over experts is computed in 32 bits at the token's rank, however the experts are placed."""
    problem, buffer = Problem(group, 2, top_k=3), make(group)
    x, _, handle, *_ = problem.low_latency(buffer, use_fp8=False)
    results = problem.compute_padded(x)
    y = problem.combine_padded(buffer, results, handle)[0]
    rounded = [(problem.x.float() * (e + 1)).bfloat16().double() for e in range(problem.experts)]
    exact = torch.stack([sum((w.double() * rounded[e][t] for e, w in zip(ids, problem.w[t]) if e >= 0), torch.zeros(HIDDEN))
                         for t, ids in enumerate(problem.ids.tolist())]) if sum(problem.counts) else problem.x
    close(y, problem.mine(exact), 2 ** -8)  # half of the last bit is 2 ** -9
    buffer.destroy()


@on_groups
def test_eight_bits(group):
    """Rows are a factor for each 128 elements away from the tokens, by at most half of e4m3's last bit."""
    for options in ({}, {"round_scale": True}, {"round_scale": True, "use_ue8m0": True}):
        buffer, problem = make(group), Problem(group, 1, hidden=1024)
        problem.x[::2, 128:256] = 0
        (data, factors), count, handle, *_ = problem.low_latency(buffer, **options)
        cols = 2 if "use_ue8m0" in options else 8
        room = MOST * problem.n
        assert data.dtype == NARROW and factors.shape == (EACH, room, cols)
        assert factors.stride() == (cols * room, 1, room)
        results = torch.zeros(EACH, room, 1024)
        for e in range(EACH):
            tokens = problem.of_expert(problem.me * EACH + e)
            blocks = problem.x[tokens].double().view(-1, 8, 128)
            least = blocks.abs().amax(2).clamp(min=1e-4) / 448
            got = factors[e, :len(tokens)].clone(memory_format=torch.contiguous_format)
            if "use_ue8m0" in options:
                assert got.dtype == torch.int32
                exponents = torch.stack([got >> shift & 255 for shift in (0, 8, 16, 24)], 2).view(-1, 8)
                got = 2.0 ** (exponents.double() - 127)
            if options:
                assert torch.equal(got.double(), 2.0 ** least.float().double().log2().ceil())
            else:
                close(got, least, 1e-6)
            narrow = data[e, :len(tokens)].double().view(-1, 8, 128) * got[:, :, None]
            off = (narrow - blocks).abs()
            assert (off <= torch.maximum(blocks.abs() / 16, got[:, :, None] / 1024) * 1.001).all()
            results[e, :len(tokens)] = narrow.view(-1, 1024).float()
        y = problem.combine_padded(buffer, problem.compute_padded(results), handle)[0]
        close(y, problem.result(), 0.1)
        buffer.destroy()


@on_groups
def test_outputs_of_the_program(group):
    """Results in the tensor of get_next_low_latency_combine_buffer(), and sums in `out`; hooks and events."""
    buffer, problem = make(group), Problem(group, 1)
    x, _, handle, event, hook = problem.low_latency(buffer, use_fp8=False, return_recv_hook=True)
    assert event.event is None and hook() is None
    wrong = torch.full_like(x, float("nan"))
    raises(ValueError, "get_next_low_latency_combine_buffer", problem.combine_padded, buffer, wrong, handle, zero_copy=True)
    there = buffer.get_next_low_latency_combine_buffer(handle)
    assert there is buffer.get_next_low_latency_combine_buffer(handle) and there.dtype == torch.bfloat16
    there[:] = problem.compute_padded(x)
    out = torch.full_like(problem.mine(problem.x), float("nan"))
    y, event, hook = problem.combine_padded(buffer, wrong, handle, zero_copy=True, out=out, async_finish=True)
    event.current_stream_wait()
    assert hook is None and y is out
    close(y, problem.result(), 0.02)
    buffer.clean_low_latency_buffer(MOST, HIDDEN, problem.experts)
    buffer.destroy()


# --- Both modes ------------------------------------------------------------------------------------


def routes(problem):
    """Yields problems with extreme routes."""
    for name in "one expert", "a rank's experts", "no expert", "only one token":
        if name == "one expert":
            problem.ids[:] = -1
            problem.ids[:, 1] = problem.experts - 1
        elif name == "a rank's experts":
            problem.ids[:] = torch.tensor([0, 2])
        elif name == "no expert":
            problem.ids[:] = -1
        else:
            problem.ids[0, 0] = 1
        yield problem


@on_groups
def test_extreme_routes(group):
    buffer = make(group)
    for problem in routes(Problem(group, counts=[MOST] * group.size())):
        close(problem.through(buffer), problem.result(), 0.02)
        close(problem.through_low_latency(buffer), problem.result(), 0.02)
    buffer.destroy()


@on_groups
def test_ranks_without_tokens(group):
    buffer = make(group)
    for full in range(-1, group.size()):
        problem = Problem(group, counts=[MOST * (rank == full) for rank in range(group.size())])
        for y in problem.through(buffer), problem.through_low_latency(buffer):
            close(y, problem.result(), 0.02)
    buffer.destroy()


@on_groups
def test_layers_in_flight(group):
    """Several Buffers and layers, with dispatches and combines in different orders, and modes in turns."""
    buffers, problems = [make(group), make(group)], [Problem(group, seed) for seed in range(4)]
    normal = [problem.dispatch(buffers[i % 2], async_finish=True) for i, problem in enumerate(problems)]
    padded = [problem.low_latency(buffers[i // 2], use_fp8=False) for i, problem in enumerate(problems)]
    for i in (2, 0, 3, 1):
        x, ids, w, _, handle, event = normal[i]
        with event(release_handle=True):
            y = buffers[1 - i % 2].combine(problems[i].compute(x, ids, w), handle, previous_event=Buffer.capture())[0]
        assert event.event is None
        close(y, problems[i].result(), 0.02)
        results = problems[i].compute_padded(padded[i][0])
        close(problems[i].combine_padded(buffers[i % 2], results, padded[i][2])[0], problems[i].result(), 0.02)
    for buffer in buffers:
        buffer.destroy()


@on_groups
def test_the_same_bits(group):
    buffer, problem = make(group), Problem(group, 2, top_k=3)
    for through in problem.through, problem.through_low_latency:
        first = through(buffer)
        assert all(torch.equal(through(buffer), first) for _ in range(3))
    buffer.destroy()


def test_a_group_of_the_last_ranks():
    """The other ranks do not take part."""
    ranks = list(range(1, dist.get_world_size())) or [0]
    if dist.get_rank() in ranks:
        group = named_group("deep-ep", ranks)
        buffer, problem = make(group), Problem(group, 1)
        close(problem.through(buffer), problem.result(), 0.02)
        close(problem.through_low_latency(buffer), problem.result(), 0.02)
        buffer.destroy()


# --- Errors ----------------------------------------------------------------------------------------


def one_rank_wrong(group, problem, kind, text, call, wrong, right):
    """The last rank passes something wrong: it gets that error, the others one with its rank and text."""
    last = group.size() - 1
    if group.rank() == last:
        raises(kind, text, call, **wrong)
    else:
        raises(ValueError, f"rank {last} (?=got).*{text}", call, **right)


@on_world
def test_wrong_arguments_of_one_rank(group):
    problem, buffer = Problem(group, 1, counts=[3] * group.size()), make(group)
    x, ids, w, _, handle, _ = problem.dispatch(buffer)
    padded, _, low, *_ = problem.low_latency(buffer, use_fp8=False)
    layout, mine = problem.layout(buffer), problem.mine
    given = dict(x=mine(problem.x), topk_idx=mine(problem.ids), topk_weights=mine(problem.w), **layout)
    for kind, text, wrong in (
            (TypeError, "x of type list", {"x": [1]}), (ValueError, "3, 512, 1", {"x": given["x"][:, :, None]}),
            (ValueError, "no num_tokens_per_rank", {"num_tokens_per_rank": None}),
            (ValueError, "is_token_in_rank", {"is_token_in_rank": layout["is_token_in_rank"][:1]}),
            (ValueError, "topk_weights", {"topk_weights": None}), (ValueError, "topk_weights", {"topk_weights": w.double()}),
            (ValueError, "topk_idx -1 to 99", {"topk_idx": torch.tensor([[0, -1], [99, 0], [1, 2]])}),
            (ValueError, "expert_alignment 0", {"expert_alignment": 0}), (TypeError, "handle of type", {"handle": low})):
        one_rank_wrong(group, problem, kind, text, buffer.dispatch, {**given, **wrong}, given)
    given = dict(x=problem.compute(x, ids, w), handle=handle)
    for kind, text, wrong in (
            (ValueError, "got x of shape", {"x": torch.zeros(MOST * 99, 1)}), (ValueError, "expected torch.bfloat16 or",
                                                                             {"x": x.to(NARROW)}),
            (ValueError, "bias", {"bias": x[:0, :4]}), (TypeError, "handle of type tuple", {"handle": ()})):
        one_rank_wrong(group, problem, kind, text, buffer.combine, {**given, **wrong}, given)
    given = dict(x=mine(problem.x), topk_idx=mine(problem.ids), num_max_dispatch_tokens_per_rank=MOST,
                 num_experts=problem.experts)
    for kind, text, wrong in (
            (ValueError, "3 tokens, expected at most", {"num_max_dispatch_tokens_per_rank": 2}),
            (ValueError, "hidden size of 500", {"x": given["x"][:, :500]}),
            (ValueError, "expert twice", {"topk_idx": given["topk_idx"] * 0}),
            (ValueError, "num_experts", {"num_experts": 0}), (ValueError, "use_ue8m0", {"use_ue8m0": True}),
            (ValueError, "return_recv_hook", {"async_finish": True, "return_recv_hook": True}),
            (NotImplementedError, "dispatch_wait_recv_cost_stats", {"dispatch_wait_recv_cost_stats": ids})):
        one_rank_wrong(group, problem, kind, text, buffer.low_latency_dispatch, {**given, **wrong}, given)
    given = dict(x=padded, topk_idx=mine(problem.ids), topk_weights=mine(problem.w), handle=low)
    for kind, text, wrong in (
            (NotImplementedError, "use_logfmt", {"use_logfmt": True}), (TypeError, "handle", {"handle": handle}),
            (NotImplementedError, "combine_wait_recv_cost_stats", {"combine_wait_recv_cost_stats": ids}),
            (ValueError, "got x of shape", {"x": padded[:, 1:]}), (ValueError, "out", {"out": padded[0, :1].float()})):
        one_rank_wrong(group, problem, kind, text, buffer.low_latency_combine, {**given, **wrong}, given)
    close(problem.through(buffer), problem.result(), 0.02)
    buffer.destroy()


@on_world
def test_arguments_that_differ(group):
    problem, buffer = Problem(group, 1, counts=[3] * group.size()), make(group)
    handle = problem.dispatch(buffer)[4]
    if group.size() > 1:
        x = problem.mine(problem.x)
        text = "rank 1 got .*, expected .*, as rank 0 has"
        raises(ValueError, text, problem.dispatch, buffer, x if problem.me else x.float())
        raises(ValueError, text, problem.low_latency, buffer, use_fp8=problem.me == 0)
        if problem.me:
            raises(ValueError, text, buffer.dispatch, x, handle=handle)
        else:
            raises(ValueError, text, problem.dispatch, buffer)
    buffer.destroy()


@on_world
def test_without_counterpart(group):
    raises(NotImplementedError, "got comm", Buffer, None, comm=object())
    raises(NotImplementedError, "got enable_shrink", Buffer, group, enable_shrink=True)
    raises(ValueError, "got no group", Buffer, None)
    buffer = Buffer(group)
    raises(RuntimeError, "explicitly_destroy=True", buffer.destroy)
    problem = Problem(group)
    raises(RuntimeError, "low_latency_mode=True", problem.low_latency, buffer)
    raises(NotImplementedError, "no masks", buffer.low_latency_update_mask_buffer, 0, True)
    raises(NotImplementedError, "no masks", buffer.low_latency_query_mask_buffer, None)
    raises(NotImplementedError, "no masks", buffer.low_latency_clean_mask_buffer)
    raises(NotImplementedError, "weft.torch.empty", buffer.get_local_buffer_tensor, torch.uint8)
    if not torch.cuda.is_available():
        raises(NotImplementedError, "no GPU", buffer.get_comm_stream)
    raises(ValueError, "got num_experts", buffer.get_dispatch_layout, problem.ids, problem.n + 1 if problem.n > 1 else 0)
    buffer = make(group)
    close(problem.through(buffer), problem.result(), 0.02)
    buffer.destroy()
    raises(RuntimeError, "was destroyed", problem.through, buffer)


def test_settings():
    before = Buffer.num_sms
    raises(ValueError, "even number", Buffer.set_num_sms, 3)
    Buffer.set_num_sms(8)
    config = Buffer.get_dispatch_config(3)
    assert config.num_sms == Buffer.get_combine_config(48).num_sms == 8
    Buffer.set_num_sms(before)
    assert Config(20, 6, 256, 6, 128).get_nvl_buffer_size_hint(4096, 8) == 0 == config.get_rdma_buffer_size_hint(4096, 8)
    assert Buffer.get_low_latency_rdma_size_hint(128, 7168, 8, 256) == 0 and Buffer.is_sm90_compiled()


def test_events():
    event, calls = EventOverlap(EventHandle()), []
    event.register_hook_after_wait(lambda: calls.append(1))
    raises(RuntimeError, "registered already", event.register_hook_after_wait, print)
    with event as same:
        assert same is event and calls == []
    event.current_stream_wait()
    assert calls == [1] and event.event is not None
    with event(release_handle=True):
        pass
    assert event.event is None
    raises(RuntimeError, "async_finish=True", event.current_stream_wait)
    with event:
        pass


LAST = "previous_event async_finish allocate_on_comm_stream"
PARAMETERS = {
    "__init__": "group num_nvl_bytes num_rdma_bytes low_latency_mode num_qps_per_rank allow_nvlink_for_low_latency_mode "
                "allow_mnnvl explicitly_destroy enable_shrink comm",
    "get_dispatch_layout": f"topk_idx num_experts {LAST}",
    "dispatch": "x handle num_tokens_per_rank num_tokens_per_rdma_rank is_token_in_rank num_tokens_per_expert topk_idx "
                f"topk_weights expert_alignment num_worst_tokens config {LAST}",
    "combine": f"x handle topk_weights bias config {LAST}",
    "low_latency_dispatch": "x topk_idx num_max_dispatch_tokens_per_rank num_experts cumulative_local_expert_recv_stats "
                            "dispatch_wait_recv_cost_stats use_fp8 round_scale use_ue8m0 async_finish return_recv_hook",
    "low_latency_combine": "x topk_idx topk_weights handle use_logfmt zero_copy async_finish return_recv_hook out "
                           "combine_wait_recv_cost_stats"}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name):
    """Programs pass arguments by DeepEP's names and in its order."""
    assert list(inspect.signature(getattr(Buffer, name)).parameters)[1:] == PARAMETERS[name].split()
