# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own tensor parallelism, compiled: parallelize_module() splits the perceptron of mlp.py, and Inductor
replaces each gather before a product, and each reduction after one, by a fused operator of symmetric memory, which
overlaps the communication with the product. weft.torch.install() enables this on CPU tensors, too.

    torchrun --nproc-per-node 4 async_tensor_parallel.py          # or: oshrun -n 4 python ...
"""
import torch
import torch._inductor.config
import weft.torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

TOKENS, WIDTH, HIDDEN = 240, 64, 240
weft.torch.install()
WORLD = weft.torch.init_process_group()


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = torch.nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


def main():
    me, n = WORLD.rank(), WORLD.size()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    x = torch.randn(TOKENS, WIDTH)
    target = torch.roll(x, 1, dims=1)
    x, target = x.chunk(n)[me].to(device), target.chunk(n)[me].to(device)

    # Each rank has its share of the tokens, its columns of `up` and its rows of `down`.
    model = parallelize_module(MLP().to(device), init_device_mesh(device, (n,)), {
        "up": ColwiseParallel(input_layouts=Shard(0)),
        "down": RowwiseParallel(output_layouts=Shard(0))})
    torch._inductor.config._micro_pipeline_tp = True
    compiled = torch.compile(model, fullgraph=True)

    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(60):
        loss = (compiled(x) - target).square().sum() / (TOKENS * WIDTH)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = weft.torch.all_reduce(loss.detach(), "sum", WORLD)
        if step % 10 == 9 and me == 0:
            print(f"step {step + 1:3}  loss {loss.item():.5f}")
    if me == 0 and device == "cpu":
        for name, runs in weft.torch.counters().items():
            if runs and name.startswith("fused"):
                print(f"{name} ran {runs} times")


main()
