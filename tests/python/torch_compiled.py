# SPDX-License-Identifier: BSD-3-Clause
"""Inductor's asynchronous tensor parallelism on CPU tensors, after weft.torch.install(): the compiled graphs have
symm_mem's fused operators, which run, and agree with the plain model; other questions get PyTorch's answers.

    oshrun -n 2 python tests/python/torch_compiled.py
"""
import os
import tempfile

import torch
import torch._inductor.config as config
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import torch.distributed._symmetric_memory as symm_mem
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


def tensor_parallel(world):
    torch.manual_seed(1)
    n, me = world.size(), world.rank()
    plain, model, whole = MLP(), MLP(), torch.randn(12 * n, 32)
    model.load_state_dict(plain.state_dict())
    x = whole.chunk(n)[me].clone().requires_grad_()
    parallelize_module(model, init_device_mesh("cpu", (n,)), {
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


def others(world):
    """PyTorch turns an input into a symmetric buffer on accelerators only, not on the CPU."""
    assert not dist.is_nccl_available()
    assert not symm_mem.is_symm_mem_enabled_for_group("nobody")
    assert symm_mem.is_symm_mem_enabled_for_group(world.group_name)
    with symm_mem._test_mode({"somebody"}):
        assert symm_mem.is_symm_mem_enabled_for_group("somebody")
        assert not symm_mem.is_symm_mem_enabled_for_group(world.group_name)
    config._collective.auto_select = True
    summed = torch.compile(lambda x: collectives.all_reduce(x + 1, "sum", world) * 2, fullgraph=True)
    assert summed(torch.ones(8)).tolist() == [4. * world.size()] * 8


def main():
    dist.distributed_c10d._NCCL_AVAILABLE = False  # as in PyTorch's builds for CPUs alone
    config._micro_pipeline_tp = True
    world = weft.torch.init_process_group("gloo")
    assert not symm_mem.is_symm_mem_enabled_for_group(world.group_name)
    weft.torch.install()
    tensor_parallel(world)
    others(world)
    print(f"rank {world.rank()} of {world.size()}: fused", flush=True)
    dist.barrier()
    dist.destroy_process_group()


with tempfile.TemporaryDirectory() as cache:  # the cached graph of another run would prove nothing
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
    main()
