# SPDX-License-Identifier: BSD-3-Clause
"""A mixture of experts learns over several processes: each has its share of the tokens and of the experts. Weft sends the
tokens to their experts and the weighted results back, and the gradients in the same ways. The first process trains the
whole layer as well, in plain PyTorch, and compares.

    torchrun --nproc-per-node 4 moe.py          # or: oshrun -n 4 python moe.py
"""
import torch
import weft.torch as symm_mem
from weft.torch import moe

TOKENS, WIDTH, HIDDEN, EXPERTS, TOP_K, STEPS = 240, 16, 32, 12, 2, 300
WORLD = symm_mem.init_process_group()


class Layer(torch.nn.Module):
    """A router, and the experts first to last: of one process, or of all."""

    def __init__(self, first, last, exchange=None):
        super().__init__()
        torch.manual_seed(1)
        self.router = torch.nn.Parameter(torch.randn(WIDTH, EXPERTS) / WIDTH**0.5)
        self.up = torch.nn.Parameter((torch.randn(EXPERTS, WIDTH, HIDDEN) / WIDTH**0.5)[first:last])
        self.down = torch.nn.Parameter((torch.randn(EXPERTS, HIDDEN, WIDTH) / HIDDEN**0.5)[first:last])
        self.exchange = exchange

    def expert(self, e, x):
        return torch.relu(x @ self.up[e]) @ self.down[e]

    def forward(self, x):
        weights, experts = (x @ self.router).softmax(1).topk(TOP_K)
        return (self.over_all if self.exchange else self.alone)(x, experts, weights.float())

    def over_all(self, x, experts, weights):
        rows = self.exchange.dispatch(x, experts, weights)
        results = torch.cat([self.expert(e, part) for e, part in enumerate(rows.split())])
        return self.exchange.combine(results, rows)

    def alone(self, x, experts, weights):
        y = torch.zeros_like(x)
        for e in range(EXPERTS):
            token, slot = (experts == e).nonzero(as_tuple=True)
            y = y.index_add(0, token, self.expert(e, x[token]) * weights[token, slot, None])
        return y


def train(layer, x, target, total):
    """Yields the loss of each step; total() adds what the processes have computed."""
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
    for _ in range(STEPS):
        loss = (layer(x) - target).square().sum() / (TOKENS * WIDTH)
        optimizer.zero_grad()
        loss.backward()
        layer.router.grad = total(layer.router.grad)
        optimizer.step()
        yield total(loss.detach()).item()


def main():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(2)
    me, n = WORLD.rank(), WORLD.size()
    x = torch.randn(TOKENS, WIDTH)
    target = torch.where(x[:, :1] > 0, x.roll(1, 1), -x.roll(3, 1))

    each = EXPERTS // n
    exchange = moe.MoE(EXPERTS, TOP_K, WIDTH, TOKENS // n, dtype=x.dtype, group=WORLD)
    layer = Layer(me * each, (me + 1) * each, exchange)
    losses = list(train(layer, x.chunk(n)[me], target.chunk(n)[me],
                        lambda part: symm_mem.all_reduce(part, "sum", WORLD)))
    if me == 0:
        whole = list(train(Layer(0, EXPERTS), x, target, lambda part: part))
        for step in range(49, STEPS, 50):
            print(f"step {step + 1:3}  loss {losses[step]:.5f}  in one process {whole[step]:.5f}")
        worst = max(abs(a - b) / b for a, b in zip(losses, whole))
        assert worst < 1e-6, f"the losses differ by {worst}"
        print("the same as in one process")


main()
