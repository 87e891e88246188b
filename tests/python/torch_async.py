# SPDX-License-Identifier: BSD-3-Clause
"""Inductor's asynchronous tensor parallelism: the compiled graph of a perceptron that parallelize_module() has split
has symm_mem's fused operators in both directions, which run, and it agrees with the plain model."""
import contextlib
import os
import tempfile
import unittest.mock

import torch
import torch._inductor.config as config
from torch._inductor.utils import run_and_get_code
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import weft.torch

FUSED = {"fused_all_gather_matmul", "fused_matmul_reduce_scatter"}
PLAIN = {"all_gather_into_tensor", "reduce_scatter_tensor"}


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(32, 48, bias=False), torch.nn.Linear(48, 32, bias=False)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


def named(words, code):
    return {word for word in words if f".{word}" in code}


def learn(model, x):
    y = model(x)
    y.square().sum().backward()
    return y


@contextlib.contextmanager
def compiling():
    """Uses an empty cache of compiled graphs: a graph that another run has compiled shows nothing of this one."""
    with (tempfile.TemporaryDirectory() as cache, config.patch(_micro_pipeline_tp=True),
          unittest.mock.patch.dict(os.environ, TORCHINDUCTOR_CACHE_DIR=cache)):
        yield


def tensor_parallel(world, device):
    """device: "cpu" or "cuda". Within compiling()."""
    torch.manual_seed(1)
    n, me = world.size(), world.rank()
    plain, model, whole = MLP().to(device), MLP().to(device), torch.randn(12 * n, 32, device=device)
    model.load_state_dict(plain.state_dict())
    x = whole.chunk(n)[me].clone().requires_grad_()
    parallelize_module(model, init_device_mesh(device, (n,)), {
        "up": ColwiseParallel(input_layouts=Shard(0)), "down": RowwiseParallel(output_layouts=Shard(0))})
    before = weft.torch.counters()
    y, code = run_and_get_code(learn, torch.compile(model, fullgraph=True), x)
    assert named(FUSED | PLAIN, "\n".join(code)) == FUSED
    after = weft.torch.counters()
    assert {name: after[name] - before[name] for name in FUSED} == dict.fromkeys(FUSED, 2), (before, after)
    whole.requires_grad_()
    expected = learn(plain, whole)
    for got, wanted in ((y, expected.chunk(n)[me]), (x.grad, whole.grad.chunk(n)[me]),
                        (model.up.weight.grad.to_local(), plain.up.weight.grad.chunk(n)[me]),
                        (model.down.weight.grad.to_local(), plain.down.weight.grad.chunk(n, 1)[me])):
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)
