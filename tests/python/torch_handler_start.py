# SPDX-License-Identifier: BSD-3-Clause
"""weft.torch.hyperparallel from its first call on, whichever it is, under any launcher; with torch.distributed
initialised before if GLOO is in the environment.

    torch_handler_start.py [first call]
"""
import os
import sys

import torch
import torch.distributed as dist


def main(first):
    if os.environ.get("GLOO"):
        dist.init_process_group("gloo")
    from weft.torch.hyperparallel import SymmetricMemoryHandler as symm
    assert symm.is_shmem_available()
    if first == "barrier":
        symm.barrier()
    elif first == "acquire":
        from weft.torch.hyperparallel import acquire_symmetric_memory
        owner = acquire_symmetric_memory(dist.group.WORLD if dist.is_initialized() else None)
        owner.barrier()
    elif first == "rank":
        try:
            symm.shmem_get(torch.zeros(1), 0, torch.zeros(1), 0, 1, 1 << 20)
            raise AssertionError("there is no such rank")
        except ValueError as error:
            assert "target_rank must be in range [0, " in str(error), error
    elif first == "close":
        symm.close()
    tensor = symm.empty(4, torch.int64)
    import weft
    rank, size = weft.my_pe(), weft.n_pes()
    if dist.is_initialized():
        assert (rank, size) == (dist.get_rank(), dist.get_world_size())
        handle = symm.rendezvous(tensor, dist.new_group([rank]))
        assert (handle.rank, handle.world_size) == (0, 1)
        handle = symm.rendezvous(tensor, dist.group.WORLD)
        assert (handle.rank, handle.world_size) == (rank, size)
    output = symm.empty((size, 3), torch.int64)
    symm.shmem_allgather(output, torch.full((3,), rank))
    assert output.tolist() == [[r] * 3 for r in range(size)]
    symm.shmem_put(tensor, 0, torch.full((4,), rank), 0, 4, (rank + 1) % size)
    symm.barrier()
    assert tensor.tolist() == [(rank - 1) % size] * 4
    sys.stdout.write(f"rank {rank} of {size}: right\n")  # a single write, because ranks share the pipe


main(sys.argv[1] if len(sys.argv) > 1 else "empty")
