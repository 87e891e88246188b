# SPDX-License-Identifier: BSD-3-Clause
"""A multilayer perceptron learns, in plain PyTorch. tensor_parallel_mlp.py is the same over several
processes, in ten changed lines:  diff mlp.py tensor_parallel_mlp.py
"""
import torch

TOKENS, WIDTH, HIDDEN = 240, 64, 240


class MLP(torch.nn.Module):
    def __init__(self, up, down):
        super().__init__()
        self.up = torch.nn.Parameter(up)
        self.down = torch.nn.Parameter(down)

    def forward(self, x):
        hidden = x @ self.up
        return torch.relu(hidden) @ self.down


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    up, down = torch.randn(WIDTH, HIDDEN) / WIDTH**0.5, torch.randn(HIDDEN, WIDTH) / HIDDEN**0.5
    x = torch.randn(TOKENS, WIDTH)
    target = torch.roll(x, 1, dims=1)

    model = MLP(up, down).to(device)
    x, target = x.to(device), target.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(60):
        loss = (model(x) - target).square().sum() / (TOKENS * WIDTH)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1:3}  loss {loss.item():.5f}")


main()
