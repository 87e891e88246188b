#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A ring all-gather by Helion's remote copies, after the example with which Helion introduced them for GPUs (Copyright
Meta Platforms and contributors, BSD-3-Clause); what chooses Weft, and the report, are ours:

    oshrun -n 2 python3 tests/python/helion_ring_all_gather.py
"""
from __future__ import annotations

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

import helion
import helion.language as hl


@helion.kernel(static_shapes=True, config=helion.Config(block_sizes=[]))
def ring_all_gather(
    local_values: torch.Tensor,
    gathered: torch.Tensor,
    peers: torch.Tensor,
    slots: torch.Tensor,
    group_name: hl.ProcessGroupName,
) -> torch.Tensor:
    """gathered[slot, 0] is the row of rank `slot`; peers: right, left; slots: that of each step."""
    num_steps = hl.specialize(slots.size(1))
    for _program in hl.grid(1):
        local_slot = slots[0, 0] + hl.arange(1)
        gathered[local_slot, 0, :, :] = local_values[:, :, :]
        hl.remote_barrier(peers[0, :])
        for step in hl.tile(num_steps, block_size=1):
            slot = slots[0, step.begin]
            copy = hl.make_async_remote_copy(
                gathered,
                [slot, 0],
                peers[0, 0],
                dst=gathered,
                dst_index=[slot, 0],
            )
            if step.begin > 0:
                copy.wait()
            copy.start()
            if step.begin == num_steps - 1:
                copy.wait()
    return gathered


def arguments(rank, world_size, rows=8, width=128, device="cuda", empty=torch.empty):
    """Returns the arguments of a rank's kernel call."""
    local_values = torch.full((1, rows, width), float(rank + 1), device=device)
    gathered = empty(world_size, 1, rows, width, dtype=torch.float32, device=device)
    peers = torch.tensor([[(rank + 1) % world_size, (rank - 1) % world_size]], dtype=torch.int32, device=device)
    slots = torch.tensor([[(rank - step) % world_size for step in range(world_size - 1)]], dtype=torch.int32, device=device)
    return local_values, gathered, peers, slots


def main():
    import weft.torch
    import weft.triton.nvshmem
    group = weft.torch.init_process_group("gloo")
    rank, world_size = group.rank(), group.size()
    torch.cuda.set_device(weft.device())
    weft.triton.nvshmem.install()
    symm_mem.set_signal_pad_size(1 << 16)  # a word for each program of the grid
    local_values, gathered, peers, slots = arguments(rank, world_size, empty=symm_mem.empty)
    symm_mem.rendezvous(gathered, dist.group.WORLD)
    for _ in range(3):
        gathered.fill_(-1)
        torch.cuda.synchronize()
        dist.barrier()
        ring_all_gather(local_values, gathered, peers, slots, dist.group.WORLD.group_name)
        torch.cuda.synchronize()
        expected = torch.arange(1, world_size + 1, device="cuda", dtype=torch.float32)
        assert (gathered == expected.view(-1, 1, 1, 1)).all(), gathered[:, 0, 0, 0]
        dist.barrier()
    if rank == 0:
        print(f"3 gathers of rows from {world_size} ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
