# SPDX-License-Identifier: BSD-3-Clause
"""Scenes of gpu_backend.py: some of the ranks."""
import threading

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

from gpu_frame import Here, empty, gathered, near, random, scene, stream, wait_for_gpu


@scene
def subgroup_alone():
    """The members meet while all other ranks wait in a collective call."""
    ranks = list(range(Here.size))[:max(Here.size // 2, 1)]
    group = dist.new_group(ranks)
    if Here.rank in ranks:
        tensor = empty(100)
        symm_mem.rendezvous(tensor, group).barrier()
    dist.barrier()


@scene
def subgroups():
    pairs = [[r, r + 1] for r in range(0, Here.size - 1, 2)]
    groups = [dist.new_group(pair) for pair in pairs]
    for pair, group in zip(pairs, groups):
        values = random(3000)
        everyone = gathered(values)
        if Here.rank in pair:
            tensor = empty(3000)
            h = symm_mem.rendezvous(tensor, group)
            tensor.copy_(values)
            assert h.rank == pair.index(Here.rank)
            result = torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", group.group_name)
            near("subgroups", result, everyone[pair].sum(0), 1e-5)


@scene
def overlapping_subgroups():
    """One tensor in several groups, and ranks in two of them."""
    chains = [[r, r + 1] for r in range(Here.size - 1)]
    groups = [dist.new_group(chain) for chain in chains]
    tensor = empty(2000)
    h = symm_mem.rendezvous(tensor, Here.group)
    tensor.fill_(Here.rank)
    h.barrier()
    for chain, group in zip(chains, groups):
        if Here.rank in chain:
            inner = symm_mem.rendezvous(tensor, group)
            inner.barrier(1)
            for member, rank in enumerate(chain):
                assert (inner.get_buffer(member, (2000,), torch.float32) == rank).all()
            inner.barrier(1)
    h.barrier()


@scene
def names_of_groups_again():
    for _ in range(3):
        group = dist.new_group(list(range(Here.size)))
        tensor = empty(64)
        symm_mem.rendezvous(tensor, group).barrier()
        wait_for_gpu()
        dist.barrier()
        dist.destroy_process_group(group)


@scene
def weft_groups_at_once_in_threads():
    groups = [dist.new_group(list(range(Here.size))) for _ in range(4)]
    tensors = [empty(1000).fill_(i) for i in range(4)]
    wait_for_gpu()
    failed = []

    def meet(i):
        try:
            with stream():
                h = symm_mem.rendezvous(tensors[i], groups[i])
                h.barrier()
                assert (h.get_buffer((Here.rank + 1) % Here.size, (1000,), torch.float32) == i).all()
                h.barrier()
        except Exception as error:
            failed.append(error)
    threads = [threading.Thread(target=meet, args=(i,)) for i in torch.randperm(4).tolist()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
