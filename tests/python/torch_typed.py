# SPDX-License-Identifier: BSD-3-Clause
"""A program whose types are all known: mypy --strict takes it as it stands (torch.t)."""
import torch
import weft
import weft.torch as symm_mem
from weft.torch import SymmetricMemoryHandler as symm


def main() -> torch.Tensor:
    group = symm_mem.init_process_group()
    t = symm_mem.empty(4, 5, device="cpu")
    u = symm_mem.empty((4, 5), dtype=torch.float32, device=torch.device("cpu"))
    handle = symm_mem.rendezvous(t, group)
    handle.barrier()
    theirs = handle.get_buffer(0, t.shape, t.dtype)
    total = symm_mem.one_shot_all_reduce(u, "sum", group.group_name)
    whole, products = symm_mem.fused_all_gather_matmul(theirs, [total], 0, group)
    symm_mem.put_signal(t, handle, 0)
    symm_mem.wait_signal(handle, 0)
    symm_mem.SymmetricMemory.signal_pad_size = 4096
    box = symm.empty((1024,), torch.float32)
    symm.shmem_put(box, 0, box, torch.tensor(0), 1, weft.my_pe())
    symm_mem.install()
    print(symm_mem.counters()["barriers"])
    return products[0]


main()
