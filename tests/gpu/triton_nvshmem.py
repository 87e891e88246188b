# SPDX-License-Identifier: BSD-3-Clause
"""A Triton kernel that calls NVSHMEM's functions through PyTorch's helpers, over Weft (triton.t)."""
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import torch.distributed._symmetric_memory._nvshmem_triton as nvshmem
import triton
import triton.language as tl
import triton.language.core as core
import weft
import weft.torch
import weft.triton.nvshmem

EQ, GE, SET, ADD = tl.constexpr(0), tl.constexpr(5), tl.constexpr(9), tl.constexpr(10)  # NVSHMEM's numbers


def exchange(inbox, outbox, back, flag, counter, round, nelems, nbytes):
    """Puts outbox to the right neighbour, gets it back, and each counts once at its right neighbour."""
    right = (nvshmem.my_pe() + 1) % nvshmem.n_pes()
    nvshmem.putmem_signal_block(inbox, outbox, nbytes, flag, round, SET, right)
    nvshmem.signal_wait_until(flag, EQ, round)
    nvshmem.barrier_all()
    nvshmem.get(back, inbox, nelems, right)
    nvshmem.put(inbox + nelems, back, nelems, right)
    nvshmem.quiet()
    nvshmem.fence()
    nvshmem.signal_op(counter.to(tl.int64), tl.cast(1, tl.int64), ADD, right)
    nvshmem.signal_wait_until(counter, GE, round)


def collectives(same, exchanged, total, outbox, nelems, root):
    """All members get root's block, one part of each other member's, and the sum of all."""
    nvshmem.broadcast(0, same, outbox, nelems, root)
    nvshmem.alltoall(0, exchanged, outbox, nelems // nvshmem.n_pes())
    nvshmem.reduce(0, total, outbox, nelems, "sum")


def called(name, arguments, types, _semantic):
    """Calls a function of the library that PyTorch's helpers do not call, with a 64-bit result."""
    return core.extern_elementwise("", "", arguments, {tuple(map(core.dtype, types)): (name, core.dtype("int64"))},
                                   is_pure=False, _semantic=_semantic)


@core.extern
def place_of(p, pe, _semantic=None):
    return called("nvshmem_ptr", [p, pe], ["int64", "int32"], _semantic)


def stores(inbox, places, nobody: tl.constexpr):
    """Stores into the right neighbour's memory by its address; teams of the world; NULL for memory that is not
    symmetric."""
    right = (nvshmem.my_pe() + 1) % nvshmem.n_pes()
    there = place_of(inbox.to(tl.int64), right)
    tl.store(there.to(tl.pointer_type(tl.float32)), 7.5 + right)
    tl.store(places, place_of(inbox.to(tl.int64), nvshmem.my_pe()) - inbox.to(tl.int64))
    tl.store(places + 1, place_of(places.to(tl.int64), right))
    tl.store(places + 2, place_of(inbox.to(tl.int64), nobody))
    nvshmem.barrier_all()


def check_places(rank, inbox):
    places = torch.full((3,), -1, dtype=torch.int64, device="cuda")
    dist.barrier()
    nvshmem.requires_nvshmem(triton.jit(stores))[(1,)](inbox, places, 999)
    torch.cuda.synchronize()
    assert inbox[0].item() == 7.5 + rank, inbox[0]
    assert places.tolist() == [0, 0, 0], places
    dist.barrier()


def check_collectives(rank, n, nelems):
    kernel = nvshmem.requires_nvshmem(triton.jit(collectives, do_not_specialize=["root"]))
    boxes = [symm_mem.empty(nelems, device="cuda") for _ in range(4)]
    for box in boxes:
        symm_mem.rendezvous(box, dist.group.WORLD)
    same, exchanged, total, outbox = boxes
    outboxes = [torch.arange(nelems, device="cuda", dtype=torch.float32) + 100_000 * (pe + 1) for pe in range(n)]
    outbox.copy_(outboxes[rank])
    torch.cuda.synchronize()
    dist.barrier()
    kernel[(1,)](same, exchanged, total, outbox, nelems, n - 1)
    torch.cuda.synchronize()
    assert torch.equal(same, outboxes[n - 1])
    assert torch.equal(exchanged, torch.cat([each.view(n, -1)[rank] for each in outboxes]))
    assert torch.equal(total, sum(outboxes))
    dist.barrier()


def main():
    group = weft.torch.init_process_group("gloo")
    torch.cuda.set_device(weft.device())
    weft.triton.nvshmem.install()
    kernel = nvshmem.requires_nvshmem(triton.jit(exchange, do_not_specialize=["round"]))
    rank, n, nelems = group.rank(), group.size(), 10_000
    inbox = symm_mem.empty(2 * nelems, device="cuda")
    words = symm_mem.empty(2, dtype=torch.int64, device="cuda").zero_()
    outbox, back = torch.empty(nelems, device="cuda"), torch.empty(nelems, device="cuda")
    for tensor in inbox, words:
        symm_mem.rendezvous(tensor, dist.group.WORLD)
    torch.cuda.synchronize()
    dist.barrier()
    for round in range(1, 6):
        outbox.fill_(rank + 100 * round)
        kernel[(1,)](inbox, outbox, back, words, words[1:], round, nelems, 4 * nelems)
        torch.cuda.synchronize()
        dist.barrier()
        assert (inbox == (rank - 1) % n + 100 * round).all() and (back == rank + 100 * round).all()
        assert words.tolist() == [round, round], words
        dist.barrier()
    check_places(rank, inbox)
    check_collectives(rank, n, 1200 * n)
    if rank == 0:
        print(f"5 rounds over {n} ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
