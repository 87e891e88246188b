# SPDX-License-Identifier: BSD-3-Clause
"""Weft's versions of the operators that PyTorch has for its NVSHMEM backend only: on CPU tensors, with Triton's kernels
interpreted. Run by torch_backend.t, with TRITON_INTERPRET=1, on PEs that go through it together.
"""
import mmap

import pytest
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from torch._C._distributed_c10d import _SymmetricMemory

import weft.torch
import job

triton = pytest.importorskip("triton", reason="there is no Triton here")
weft.torch.install()
from triton import language as tl  # noqa: E402
from weft.torch import _exchange_kernels as kernels  # noqa: E402
from weft.torch import _nvshmem as ops  # noqa: E402

rank, size = job.place()
right, left = (rank + 1) % size, (rank - 1) % size


@pytest.fixture(scope="module")
def group():
    yield job.start("gloo", 400).group_name
    job.end()


def empty(*shape, dtype=torch.float32):
    strides = torch.empty(shape, device="meta").stride()
    return _SymmetricMemory.empty_strided_p2p(shape, strides, dtype, torch.device("cpu"))


def symmetric(values, group):
    tensor = empty(*values.shape, dtype=values.dtype).copy_(values)
    symm_mem.rendezvous(tensor, group).barrier()
    return tensor, gathered(values)


def gathered(values):
    parts = [torch.empty_like(values) for _ in range(size)]
    dist.all_gather(parts, values.contiguous())
    return torch.stack(parts)


@triton.jit
def _read(address, to):
    tl.store(to, tl.load(kernels.pointer(address, tl.int64)))


def test_addresses_of_32_bits():
    """Addresses below 2^31, such as those of the heap of a Python that is linked to a fixed address."""
    low = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40)  # MAP_32BIT
    word, to = torch.frombuffer(low, dtype=torch.int64, count=1).fill_(1 << 40 | 7), torch.zeros(1, dtype=torch.int64)
    assert word.data_ptr() < 1 << 31
    _read[(1,)](word.data_ptr(), to)
    assert to.item() == 1 << 40 | 7


def test_put_get(group):
    tensor, everyone = symmetric(torch.randn(1000), group)
    if rank == 0:
        ops.nvshmem_put(tensor[100:200], size - 1)
    dist.barrier()
    if rank == size - 1:
        assert tensor[100:200].equal(everyone[0][100:200])
    assert tensor[:100].equal(everyone[rank][:100]) and tensor[200:].equal(everyone[rank][200:])
    dist.barrier()
    if rank == size - 1:
        ops.nvshmem_get(tensor, 0)
        assert tensor.equal(everyone[0])
    dist.barrier()


def test_refusals(group):
    tensor = symmetric(torch.randn(4, 4), group)[0]
    for call, text in ((lambda: ops.nvshmem_put(tensor, size), "expected a rank in"),
                       (lambda: ops.nvshmem_put(tensor, -1), "expected a rank in"),
                       (lambda: ops.nvshmem_put(tensor.t(), 0), "contiguous"),
                       (lambda: ops.nvshmem_get(torch.zeros(3), 0), "not symmetric"),
                       (lambda: ops.nvshmem_wait_for_signal(empty(1), 1, 0), "at least 8 bytes"),
                       (lambda: ops.all_to_all_vdev_2d(tensor, tensor, tensor, tensor, group, 0), "major_align")):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_put_with_signal(group):
    tensor, pad = symmetric(torch.zeros(100), group)[0], symmetric(torch.zeros(2, dtype=torch.int64), group)[0]
    for signal in (1, 7, (1 << 40) + 3):
        if rank == 0:
            tensor.fill_(signal % 100)
            ops.nvshmem_put_with_signal(tensor, pad, signal, size - 1)
        if rank == size - 1:
            ops.nvshmem_wait_for_signal(pad, signal, 0)
            assert tensor.eq(signal % 100).all() and pad.tolist() == [signal, 0]
        dist.barrier()


def test_broadcast(group):
    for root in range(size):
        tensor, everyone = symmetric(torch.randn(50), group)
        ops.nvshmem_broadcast(tensor, root, group)
        assert tensor.equal(everyone[root])


def test_all_to_all(group):
    tensor, everyone = symmetric(torch.randn(5 * size), group)
    out = torch.full((5 * size,), float("nan"))
    ops.nvshmem_all_to_all(tensor, out, group)
    assert out.equal(everyone.view(size, size, 5)[:, rank].flatten())


@pytest.mark.parametrize("most, width, dtype", [(10, 1, torch.float32), (100, 7, torch.bfloat16), (1, 3, torch.uint8),
                                                (40, 600, torch.float32)])
def test_all_to_all_vdev(group, most, width, dtype):
    splits = torch.randint(most, (size,))
    table = gathered(splits)
    rows = torch.randint(100, (most * size, width)).to(dtype)
    source, everyone = symmetric(rows, group)
    out, books = torch.zeros(most * size * size, width, dtype=dtype), empty(2, size, dtype=torch.int64)
    ops.all_to_all_vdev(source, out, splits, books, group)
    received, begin = table[:, rank], table.cumsum(1) - table
    assert books[0].equal(received) and books[1].equal(received.cumsum(0) - received)
    wanted = torch.cat([everyone[r, begin[r, rank]:begin[r, rank] + received[r]] for r in range(size)])
    assert out[:len(wanted)].equal(wanted) and not out[len(wanted):].any()


@pytest.mark.parametrize("experts, align", [(1, 1), (8, 1), (8, 16), (5, 8)])
def test_there_and_back(group, experts, align):
    chunks, most, width = experts * size, 10, 6
    splits = torch.randint(most, (chunks,))
    table = gathered(splits).view(size, size, experts)
    source, everyone = symmetric(torch.randn(most * chunks, width), group)
    out, books = empty((most + align) * chunks * size, width), empty(2, chunks, dtype=torch.int64)
    ops.all_to_all_vdev_2d(source, out, splits, books, group, align)
    received = table[:, rank].t()
    room = ((received.sum(1) + align - 1) // align).clamp(min=1) * align
    begin = (room.cumsum(0) - room)[:, None] + received.cumsum(1) - received
    assert books[0].equal(received.flatten()) and books[1].equal(begin.flatten())
    at = (table.flatten(1).cumsum(1) - table.flatten(1)).view_as(table)
    for e in range(experts):
        for r in range(size):
            b, n, s = begin[e, r], received[e, r], at[r, rank, e]
            assert out[b:b + n].equal(everyone[r, s:s + n])
    home, home_books = torch.zeros(most * chunks, width), empty(2, chunks, dtype=torch.int64)
    ops.all_to_all_vdev_2d_offset(out, home, books, home_books, group)
    total = splits.sum()
    assert home_books[0].equal(splits) and home_books[1].equal(splits.cumsum(0) - splits)
    assert home[:total].equal(source[:total]) and not home[total:].any()
