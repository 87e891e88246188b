# SPDX-License-Identifier: BSD-3-Clause
"""Scenes of gpu_backend.py that need Weft: operators that PyTorch has for NVSHMEM only, and Weft's own."""
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from torch._C._autograd import DeviceType
from torch._C._distributed_c10d import _SymmetricMemory

from gpu_frame import (Here, empty, gathered, gpu_scene, near, poisoned, raises, random, same, scene,
                       symmetric, wait_for_gpu)
from gpu_pools import captured


@scene
def weft_put_get():
    op, last, second = torch.ops.symm_mem, Here.size - 1, 1 % Here.size
    for numel in (1, 1000, 1 << 22):
        tensor, everyone = symmetric(random(numel))
        h = symm_mem.rendezvous(tensor, Here.group)
        h.barrier()
        if Here.rank == 0:
            op.nvshmem_put(tensor, second)
        h.barrier()
        now = [everyone[0 if rank == second else rank] for rank in range(Here.size)]
        near("nvshmem_put", tensor, now[Here.rank], 0)
        h.barrier()
        if Here.rank == 0:
            op.nvshmem_get(tensor, last)
        h.barrier()
        near("nvshmem_get", tensor, now[last if Here.rank == 0 else Here.rank], 0)
        h.barrier()
    raises(RuntimeError, "expected a rank in", lambda: op.nvshmem_put(tensor, Here.size))


@scene
def weft_put_with_signal():
    op = torch.ops.symm_mem
    tensor, pad = empty(100000), empty(1, dtype=torch.uint64)
    for part in (tensor, pad):
        symm_mem.rendezvous(part, Here.group)
    h = symm_mem.rendezvous(tensor, Here.group)
    right, right_of_first = (Here.rank + 1) % Here.size, 1 % Here.size
    for round in range(1, 20):
        signal = round if round % 2 else (1 << 40) + round
        h.barrier()
        if Here.rank == 0:
            tensor.fill_(round)
            op.nvshmem_put_with_signal(tensor, pad, signal, right)
        if Here.rank == right_of_first:
            op.nvshmem_wait_for_signal(pad, signal, 0)
            assert (tensor == round).all()


@scene
def weft_broadcast_all_to_all():
    op = torch.ops.symm_mem
    for root in range(Here.size):
        tensor, everyone = symmetric(random(5000))
        op.nvshmem_broadcast(tensor, root, Here.group)
        near("nvshmem_broadcast", tensor, everyone[root], 0)
    for rows in (1, 17, 4096):
        tensor, everyone = symmetric(random(rows * Here.size))
        out = poisoned(rows * Here.size)
        op.nvshmem_all_to_all(tensor, out, Here.group)
        near("nvshmem_all_to_all", out, everyone.view(Here.size, Here.size, rows)[:, Here.rank].flatten(), 0)


def _splits(count, most):
    return torch.randint(most, (count,), device=Here.device, dtype=torch.int64)


@scene
def weft_all_to_all_vdev():
    for most, width in ((10, 1), (100, 7), (1, 3), (500, 1024)):
        splits = _splits(Here.size, most)
        table = gathered(splits).long()                    # [source, dest]
        rows = random(most * Here.size, width)
        source, everyone = symmetric(rows)
        out = empty(most * Here.size * Here.size, width).fill_(float("nan"))
        books = empty(2, Here.size, dtype=torch.int64)
        asked = empty(Here.size, dtype=torch.int64).copy_(splits)
        torch.ops.symm_mem.all_to_all_vdev(source, out, asked, books, Here.group)
        received = table[:, Here.rank]
        same(books[0], received, "splits")
        same(books[1], received.cumsum(0) - received, "offsets")
        begin = table.cumsum(1) - table
        wanted = torch.cat([everyone[r, begin[r, Here.rank]:begin[r, Here.rank] + received[r]]
                            for r in range(Here.size)])
        near("all_to_all_vdev", out[:wanted.shape[0]], wanted, 0) if wanted.numel() else None


@scene
def weft_all_to_all_vdev_2d():
    """Dispatches rows to experts and back: every row returns."""
    for experts, align in ((1, 1), (8, 1), (8, 16), (5, 8)):
        chunks, most, width = experts * Here.size, 10, 6
        splits = _splits(chunks, most)
        table = gathered(splits).long().view(Here.size, Here.size, experts)   # [source, dest, expert]
        source, everyone = symmetric(random(most * chunks, width))
        asked = empty(chunks, dtype=torch.int64).copy_(splits)
        out = empty((most + align) * chunks * Here.size, width).fill_(float("nan"))
        books = empty(2, chunks, dtype=torch.int64)
        torch.ops.symm_mem.all_to_all_vdev_2d(source, out, asked, books, Here.group, align)
        received = table[:, Here.rank].t()                                    # [expert, source]
        same(books[0].view(experts, Here.size), received, "splits")
        room = ((received.sum(1) + align - 1) // align).clamp(min=1) * align
        begin = (room.cumsum(0) - room)[:, None] + received.cumsum(1) - received
        same(books[1].view(experts, Here.size), begin, "offsets")
        at = (table.flatten(1).cumsum(1) - table.flatten(1)).view_as(table)
        for e in range(experts):
            for r in range(Here.size):
                n, b, s = received[e, r], begin[e, r], at[r, Here.rank, e]
                near("all_to_all_vdev_2d", out[b:b + n], everyone[r, s:s + n], 0) if n else None
        symm_mem.rendezvous(out, Here.group)
        home = empty(most * chunks, width).fill_(float("nan"))
        home_books = empty(2, chunks, dtype=torch.int64)
        torch.ops.symm_mem.all_to_all_vdev_2d_offset(out, home, books, home_books, Here.group)
        same(home_books[0], splits, "splits at home")
        same(home_books[1], splits.cumsum(0) - splits, "offsets at home")
        total = int(splits.sum())
        near("all_to_all_vdev_2d_offset", home[:total], source[:total].double(), 0) if total else None


@gpu_scene
def weft_exchange_in_a_graph():
    splits = torch.full((Here.size,), 3, device=Here.device, dtype=torch.int64)
    source = empty(3 * Here.size, 4)
    out, books = empty(3 * Here.size, 4), empty(2, Here.size, dtype=torch.int64)

    def step():
        torch.ops.symm_mem.all_to_all_vdev(source, out, splits, books, Here.group)
    graph = captured(step)
    for _ in range(5):
        source.copy_(random(3 * Here.size, 4))
        everyone = gathered(source)
        out.fill_(float("nan"))
        graph.replay()
        near("all_to_all_vdev in a graph", out,
             everyone.view(Here.size, Here.size, 3, 4)[:, Here.rank].flatten(0, 1), 0)



# --- Weft alone ---------------------------------------------------------------------------------------

@gpu_scene
def weft_is_the_backend():
    import weft.torch
    assert weft.torch.installed() and symm_mem.get_backend(Here.device) == "WEFT"
    assert not _SymmetricMemory.has_multicast_support(DeviceType.CUDA, Here.device.index)
    counts = weft.torch.counters()
    assert all(counts[name] > 0 for name in ("allocations", "rendezvous", "barriers", "put_signals"))


@scene
def weft_refuses_what_does_not_fit():
    tensor = empty(100 + Here.rank)
    if Here.size > 1:
        raises(RuntimeError, "same size", lambda: symm_mem.rendezvous(tensor, Here.group))
    pad = symm_mem.get_signal_pad_size()
    symm_mem.set_signal_pad_size(pad + 512 * Here.rank)
    tensor = empty(128 * (Here.size - Here.rank))
    symm_mem.set_signal_pad_size(pad)
    if Here.size > 1:
        raises(RuntimeError, "same size", lambda: symm_mem.rendezvous(tensor, Here.group))
    raises(RuntimeError, "must be in [0", lambda: symm_mem.rendezvous(empty(1), Here.group).put_signal(Here.size))


@gpu_scene
def weft_memory_comes_back():
    wait_for_gpu()
    torch.cuda.empty_cache()
    dist.barrier()
    free = torch.cuda.mem_get_info()[0]
    for _ in range(20):
        tensor = empty(1 << 28)
        symm_mem.rendezvous(tensor, Here.group).barrier()
        del tensor
    wait_for_gpu()
    torch.cuda.empty_cache()
    dist.barrier()
    lost = free - torch.cuda.mem_get_info()[0]
    assert lost < 64 << 20, f"{lost >> 20} MiB are gone"
