# SPDX-License-Identifier: BSD-3-Clause
"""A layer of experts through DeepEP's interface: only the import differs from a program for DeepEP. Each process has its
share of the tokens and of the experts. A prompt uses normal mode, a decoding step low-latency mode with 8-bit floats.
Every process also computes its tokens with all experts, and compares.

    torchrun --nproc-per-node 4 deep_ep.py          # or: oshrun -n 4 python deep_ep.py
"""
import torch
import weft.torch as symm_mem
from weft.torch.deep_ep import Buffer              # was: from deep_ep import Buffer

HIDDEN, EXPERTS, TOP_K, PROMPT, MOST = 512, 12, 3, 50, 8
WORLD = symm_mem.init_process_group()
ME, N = WORLD.rank(), WORLD.size()
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EACH = EXPERTS // N

torch.manual_seed(1)
matrices = (torch.randn(EXPERTS, HIDDEN, HIDDEN) / HIDDEN**0.5).bfloat16().to(DEVICE)
mine = matrices[ME * EACH:(ME + 1) * EACH]         # this process's experts
buffer = Buffer(WORLD, low_latency_mode=True, explicitly_destroy=True)


def draw(ntokens):
    torch.manual_seed(2 + ME)
    weights, experts = torch.randn(ntokens, EXPERTS).softmax(1).topk(TOP_K)
    return torch.randn(ntokens, HIDDEN).bfloat16().to(DEVICE), experts.to(DEVICE), weights.to(DEVICE)


def prompt(x, experts, weights):
    per_rank, _, per_expert, in_rank, event = buffer.get_dispatch_layout(experts, EXPERTS)
    rows, row_experts, row_weights, counts, handle, event = buffer.dispatch(
        x, num_tokens_per_rank=per_rank, is_token_in_rank=in_rank, num_tokens_per_expert=per_expert, topk_idx=experts,
        topk_weights=weights, async_finish=True)
    event.current_stream_wait()
    results = torch.zeros_like(rows, dtype=torch.float32)
    for e in range(EACH):
        row, slot = (row_experts == e).nonzero(as_tuple=True)
        assert len(row) == counts[e]
        results.index_add_(0, row, (rows[row] @ mine[e]).float() * row_weights[row, slot, None])
    return buffer.combine(results.bfloat16(), handle)[0]


def decode(x, experts, weights):
    (narrow, scales), counts, handle, _, hook = buffer.low_latency_dispatch(x, experts, MOST, EXPERTS,
                                                                            return_recv_hook=True)
    hook()                                         # the tokens have arrived; until here, other work
    rows = (narrow.float().unflatten(2, (-1, 128)) * scales[..., None]).flatten(2).bfloat16()
    y, _, hook = buffer.low_latency_combine(torch.bmm(rows, mine), experts, weights, handle, return_recv_hook=True)
    hook()
    return y


def alone(x, experts, weights):
    return sum(weights[:, k, None] * (x[:, None].double() @ matrices[experts[:, k]].double())[:, 0] for k in range(TOP_K))


for name, step, ntokens, bound in ("prompt", prompt, PROMPT + ME, 0.02), ("decode", decode, MOST - ME % 2, 0.05):
    tokens = draw(ntokens)
    found, expected = step(*tokens), alone(*tokens)
    worst = ((found.double() - expected).abs().max() / expected.abs().max()).item()
    assert worst < bound, f"{name}: the results differ by {worst}"
buffer.destroy()
if ME == 0:
    print("the same as in one process")
