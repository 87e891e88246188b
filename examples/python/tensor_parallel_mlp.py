# SPDX-License-Identifier: BSD-3-Clause
"""The multilayer perceptron of mlp.py over several processes: each has its columns of one matrix, its rows of the
other, and its share of the tokens. Weft gathers the tokens while they are multiplied, and sums the products while it
scatters them.

    torchrun --nproc-per-node 4 tensor_parallel_mlp.py          # or: oshrun -n 4 python ...
"""
import torch
import weft.torch as symm_mem

TOKENS, WIDTH, HIDDEN = 240, 64, 240
WORLD = symm_mem.init_process_group()


class MLP(torch.nn.Module):
    def __init__(self, up, down):
        super().__init__()
        self.up = torch.nn.Parameter(up)
        self.down = torch.nn.Parameter(down)

    def forward(self, x):
        _, [hidden] = symm_mem.fused_all_gather_matmul(x, [self.up], 0, WORLD)
        return symm_mem.fused_matmul_reduce_scatter(torch.relu(hidden), self.down, "sum", 0, WORLD)


def main():
    me, n = WORLD.rank(), WORLD.size()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    up, down = torch.randn(WIDTH, HIDDEN) / WIDTH**0.5, torch.randn(HIDDEN, WIDTH) / HIDDEN**0.5
    x = torch.randn(TOKENS, WIDTH)
    target = torch.roll(x, 1, dims=1)

    model = MLP(up.chunk(n, 1)[me], down.chunk(n, 0)[me]).to(device)
    x, target = x.chunk(n)[me].to(device), target.chunk(n)[me].to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(60):
        loss = (model(x) - target).square().sum() / (TOKENS * WIDTH)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = symm_mem.all_reduce(loss.detach(), "sum", WORLD)
        if step % 10 == 9 and me == 0:
            print(f"step {step + 1:3}  loss {loss.item():.5f}")


main()
