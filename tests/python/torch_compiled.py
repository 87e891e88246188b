# SPDX-License-Identifier: BSD-3-Clause
"""Inductor's asynchronous tensor parallelism on CPU tensors, after weft.torch.install() (torch_async.py); other questions
of PyTorch's compiler get PyTorch's answers.

    oshrun -n 2 python tests/python/torch_compiled.py
"""
import torch
import torch._inductor.config as config
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import torch.distributed._symmetric_memory as symm_mem

import torch_async
import weft.torch


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
    world = weft.torch.init_process_group("gloo")
    assert not symm_mem.is_symm_mem_enabled_for_group(world.group_name)
    weft.torch.install()
    torch_async.tensor_parallel(world, "cpu")
    others(world)
    print(f"rank {world.rank()} of {world.size()}: fused", flush=True)
    dist.barrier()
    dist.destroy_process_group()


with torch_async.compiling():
    main()
