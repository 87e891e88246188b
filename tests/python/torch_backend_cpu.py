# SPDX-License-Identifier: BSD-3-Clause
"""Weft in PyTorch's registry, on CPU tensors: the same code as for GPUs, except for what waits.

Run by torch_backend.t, on 1 to 4 PEs that go through it together (run.py).
"""
import ctypes
import gc
import threading
import time

import pytest
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import torch.distributed.distributed_c10d as c10d
from torch._C._distributed_c10d import _SymmetricMemory

import weft
import weft.torch
from weft.torch import _module
import job

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def group():
    weft.torch.install()
    yield job.start("gloo").group_name
    job.end()


@pytest.fixture(autouse=True)
def with_group(group):
    """Applied to every test."""


rank, size = job.place()
right, left = (rank + 1) % size, (rank - 1) % size


def empty(*shape, dtype=torch.float32):
    return _SymmetricMemory.empty_strided_p2p(shape, torch.empty(shape, device="meta").stride(), dtype, CPU)


def meet(tensor, group):
    handle = symm_mem.rendezvous(tensor, group)
    assert handle is not None
    return handle


def counted(name):
    return weft.torch.counters()[name]


# --- The registry -------------------------------------------------------------------------------------


def test_it_is_weft():
    assert weft.torch.installed()
    assert symm_mem.get_backend("cpu") == "WEFT"
    weft.torch.install()
    named = [getattr(symm_mem, ours.__name__, None) for ours in _module._OURS]
    _module.install()  # as with another backend
    assert named == [getattr(symm_mem, ours.__name__, None) for ours in _module._OURS]
    assert not _SymmetricMemory.has_multicast_support(torch._C._autograd.DeviceType.CPU, 0)


def test_processes_are_pes(group):
    meet(empty(1), group)
    assert (weft.my_pe(), weft.n_pes()) == (dist.get_rank(), dist.get_world_size()) == (rank, size)


# --- Memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0,), (1,), (1000, 3), (5, 0), (2, 3, 4), (1 << 20,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8, torch.int64])
def test_new_memory_is_zero_and_aligned(shape, dtype):
    tensor = empty(*shape, dtype=dtype)
    assert tensor.shape == shape and tensor.dtype == dtype and tensor.is_contiguous()
    assert tensor.untyped_storage().size() == tensor.numel() * dtype.itemsize
    assert tensor.data_ptr() % 512 == 0 or tensor.numel() == 0
    assert not tensor.any()
    tensor.fill_(1)


def test_empty_is_local(group):
    """A rank may make any number of tensors, and the rendezvous of others do not involve it."""
    mine = [empty(100 + i) for i in range(3 * rank + 1)]
    tensor = empty(50).fill_(rank)
    mine += [empty(7) for _ in range(size - rank)]
    handle = meet(tensor, group)
    handle.barrier()
    assert handle.get_buffer(right, (50,), torch.float32).eq(right).all()
    handle.barrier()


def test_persistent_allocations(group):
    def make(numel):
        return _SymmetricMemory.empty_strided_p2p((numel,), (1,), torch.float32, CPU, group, 17)
    tensor = make(100)
    address, handle = tensor.data_ptr(), _SymmetricMemory.rendezvous(tensor)
    with pytest.raises(RuntimeError, match="still active"):
        make(100)
    del tensor
    tensor = make(100)
    assert tensor.data_ptr() == address
    assert _SymmetricMemory.rendezvous(tensor).buffer_ptrs == handle.buffer_ptrs
    del tensor
    with pytest.raises(RuntimeError, match="different from the size"):
        make(200)


def test_memory_is_given_back(group):
    made, gone = counted("allocations"), counted("releases")
    for _ in range(50):
        tensor = empty(1 << 18)
        meet(tensor, group).barrier()
        del tensor
    assert counted("allocations") - made == 50
    assert counted("releases") - gone == 50


# --- Handles ------------------------------------------------------------------------------------------


def test_handle(group):
    tensor = empty(1000, 3)
    handle = meet(tensor, group)
    assert (handle.rank, handle.world_size, handle.device) == (rank, size, CPU)
    assert handle.buffer_size == 12000 and handle.offset == 0 and handle.multicast_ptr == 0
    assert handle.buffer_ptrs[rank] == tensor.data_ptr() and len(set(handle.buffer_ptrs)) == size
    assert handle.signal_pad_ptrs[rank] == handle.get_signal_pad(rank).data_ptr()
    assert handle.get_signal_pad(rank).dtype == torch.uint32
    assert handle.get_signal_pad(rank).numel() * 4 == symm_mem.get_signal_pad_size()
    assert not handle.get_signal_pad(rank).any()
    assert handle.get_buffer(0, (3000,), torch.float32).untyped_storage().size() == 12000


def test_arrays_of_addresses(group):
    handle = meet(empty(10), group)
    for address, wanted in ((handle.buffer_ptrs_dev, handle.buffer_ptrs),
                            (handle.signal_pad_ptrs_dev, handle.signal_pad_ptrs)):
        assert list((ctypes.c_uint64 * size).from_address(address)) == list(wanted)


def test_peers_see_each_other(group):
    tensor = empty(1000).copy_(torch.arange(1000.) + 10000 * rank)
    handle = meet(tensor, group)
    handle.barrier()
    for peer in range(size):
        wanted = torch.arange(1000.) + 10000 * peer
        assert handle.get_buffer(peer, (1000,), torch.float32).equal(wanted)
        assert handle.get_buffer(peer, (10,), torch.float32, 90).equal(wanted[90:100])
        assert handle.get_remote_tensor(peer, (500, 2), torch.float32).equal(wanted.view(500, 2))
    handle.barrier()
    handle.get_buffer(right, (1,), torch.float32, 5).fill_(-rank - 1)
    handle.barrier()
    assert tensor[5] == -left - 1


def test_bounds(group):
    handle = meet(empty(100), group)
    with pytest.raises(RuntimeError, match="exceeds the allocated size"):
        handle.get_buffer(0, (101,), torch.float32)
    with pytest.raises(RuntimeError, match="exceeds the allocated size"):
        handle.get_buffer(0, (1,), torch.float32, 100)
    for peer in (-1, size):
        for call in (handle.get_buffer, handle.get_signal_pad):
            with pytest.raises(RuntimeError, match=rf"rank must be in \[0, {size}\) \(got {peer}\)"):
                call(peer, (1,), torch.int32)


def test_parts_of_tensors(group):
    whole = empty(64).copy_(torch.arange(64.) + 100 * rank)
    handle = meet(whole[16:32], group)
    handle.barrier()
    assert handle.get_buffer(right, (4,), torch.float32, 16).equal(torch.arange(16., 20) + 100 * right)
    handle.barrier()


def test_rendezvous_again_is_local(group):
    tensor = empty(10)
    first = meet(tensor, group)
    met, kept = counted("rendezvous"), counted("rendezvous_kept")
    if rank == 0:
        assert meet(tensor, group).buffer_ptrs == first.buffer_ptrs
        assert counted("rendezvous_kept") == kept + 1
    assert counted("rendezvous") == met


def test_foreign_memory_is_none(group):
    """Called by one rank only."""
    if rank == 0:
        other = torch.zeros(1000)
        assert symm_mem.rendezvous(other, group) is None
        began = time.perf_counter()
        for _ in range(1000):
            symm_mem.rendezvous(other, group)
        assert time.perf_counter() - began < 1
    with pytest.raises(RuntimeError, match="neither specified"):
        _SymmetricMemory.rendezvous(empty(1))


def test_group_of_the_allocation(group):
    tensor = _SymmetricMemory.empty_strided_p2p((4,), (1,), torch.float32, CPU, group)
    assert _SymmetricMemory.rendezvous(tensor).world_size == size


def test_operators_take_handles(group):
    tensor = empty(4)
    boxed = torch.ops.symm_mem._rendezvous(tensor, group)
    torch.ops.symm_mem._barrier(boxed)
    torch.ops.symm_mem._barrier(meet(tensor, group).boxed())


@pytest.mark.skipif(size == 1, reason="needs two ranks")
def test_sizes_have_to_agree(group):
    with pytest.raises(RuntimeError, match="same size"):
        meet(empty(100 + rank), group)
    pad = symm_mem.get_signal_pad_size()
    symm_mem.set_signal_pad_size(pad + 512 * rank)
    tensor = empty(128 * (size - rank))
    symm_mem.set_signal_pad_size(pad)
    with pytest.raises(RuntimeError, match="same size"):
        meet(tensor, group)
    meet(empty(100), group).barrier()


# --- Signals ------------------------------------------------------------------------------------------


def test_barrier_orders_memory(group):
    tensor = empty(size)
    handle = meet(tensor, group)
    for lap in range(300):
        handle.get_buffer(right, (1,), torch.float32, rank).fill_(lap)
        handle.barrier(lap % 3)
        assert tensor[left] == lap
        handle.barrier(3)
    assert not handle.get_signal_pad(rank).any()


def test_signals_round_the_ring(group):
    tensor = empty(1000)
    handle = meet(tensor, group)
    to = handle.get_buffer(right, (1000,), torch.float32)
    for lap in range(100):
        if rank > 0 or lap > 0:
            handle.wait_signal(left, 1)
        to.copy_(tensor + 1)
        handle.put_signal(right, 1)
    if rank == 0:
        handle.wait_signal(left, 1)
        assert tensor.eq(100 * size).all()
    handle.barrier()
    assert not handle.get_signal_pad(rank).any()


def test_signal_words_are_pytorchs(group):
    """The word of (channel, source) is pad[ranks * channel + source]."""
    handle = meet(empty(1), group)
    handle.put_signal(right, 5)
    dist.barrier()  # of another kind: this one is seen in the pads
    pad = handle.get_signal_pad(rank, dtype=torch.int32).view(-1, size)
    assert pad.nonzero().tolist() == [[5, left]] and pad[5, left] == 1
    handle.wait_signal(left, 5)
    assert not pad.any()
    dist.barrier()


def test_waits_end_by_timeout(group):
    handle = meet(empty(1), group)
    with pytest.raises(RuntimeError):
        handle.wait_signal(left, 2, timeout_ms=50)
    dist.barrier()
    handle.put_signal(right, 2)
    dist.barrier()
    if size > 1:
        with pytest.raises(RuntimeError):
            handle.put_signal(right, 2, timeout_ms=50)
    dist.barrier()
    handle.wait_signal(left, 2)
    handle.barrier(timeout_ms=10000)


def test_arguments_of_signals(group):
    handle = meet(empty(1), group)
    last = symm_mem.get_signal_pad_size() // 4 // size - 1
    for channel, text in ((-1, "greater than or equal to 0"), (last + 1, "maximum supported channel")):
        for call in (handle.barrier, lambda c: handle.put_signal(right, c), lambda c: handle.wait_signal(left, c)):
            with pytest.raises(RuntimeError, match=text):
                call(channel)
    for peer in (-1, size):
        for call in (handle.put_signal, handle.wait_signal):
            with pytest.raises(RuntimeError, match=r"must be in \[0"):
                call(peer)
    handle.barrier(last)


@pytest.mark.parametrize("nbytes", [1 << 20, 16 << 20])
def test_pads_of_any_size(group, nbytes):
    default = symm_mem.get_signal_pad_size()
    symm_mem.set_signal_pad_size(nbytes)
    handle = meet(empty(10), group)
    symm_mem.set_signal_pad_size(default)
    handle.barrier(nbytes // 4 // size - 1)
    handle.barrier(1000)


# --- Lifetimes ----------------------------------------------------------------------------------------


def test_handles_outlive_tensors(group):
    tensor = empty(5000).fill_(rank)
    handle = meet(tensor, group)
    before = counted("releases")
    del tensor
    gc.collect()
    assert counted("releases") == before
    other = empty(5000).fill_(-1)
    handle.barrier()
    for peer in range(size):
        assert handle.get_buffer(peer, (5000,), torch.float32).eq(peer).all()
    handle.barrier()
    del handle
    assert counted("releases") == before + 1
    del other


def test_peers_outlive_members(group):
    """A rank releases everything while others still read its memory."""
    tensor = empty(5000).fill_(rank)
    handle = meet(tensor, group)
    handle.barrier()
    if rank == 0:
        del tensor, handle
    dist.barrier()
    if rank != 0:
        assert handle.get_buffer(0, (5000,), torch.float32).eq(0).all()
    dist.barrier()


def test_freed_in_any_order_by_any_thread(group):
    for lap in range(5):
        tensors = [empty(1000 * (i + 1)) for i in range(8)]
        handles = [meet(tensor, group) for tensor in tensors]
        handles[-1].barrier()
        for i in torch.randperm(8).tolist():
            tensors[i] = None
            if (i + lap) % 2:
                handles[i] = None
        threads = [threading.Thread(target=handles.pop) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def test_threads_make_and_free(group):
    failed = []

    def churn():
        try:
            for i in range(100):
                assert not empty(100 + i).fill_(1).sub_(1).any()
        except Exception as error:
            failed.append(error)
    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


# --- Groups -------------------------------------------------------------------------------------------


def test_subgroup_alone(group):
    """The members meet while all other ranks wait in a collective call."""
    members = list(range(max(size // 2, 1)))
    inner = dist.new_group(members)
    if rank in members:
        meet(empty(100), inner).barrier()
    dist.barrier()


def test_overlapping_subgroups(group):
    chains = [[r, r + 1] for r in range(size - 1)]
    groups = [dist.new_group(chain) for chain in chains]
    tensor = empty(100).fill_(rank)
    handle = meet(tensor, group)
    handle.barrier()
    for chain, inner_group in zip(chains, groups):
        if rank in chain:
            inner = meet(tensor, inner_group)
            assert (inner.rank, inner.world_size) == (chain.index(rank), 2)
            inner.barrier(1)
            for member, peer in enumerate(chain):
                assert inner.get_buffer(member, (100,), torch.float32).eq(peer).all()
            inner.barrier(1)
    handle.barrier()


def test_order_of_ranks(group):
    """A group's ranks need not be in the world's order."""
    members = list(reversed(range(size)))
    inner_group = dist.new_group(members)
    inner = dist.get_process_group_ranks(inner_group)
    handle = meet(empty(10).fill_(rank), inner_group)
    handle.barrier()
    assert [handle.get_buffer(r, (1,), torch.float32).item() for r in range(size)] == inner
    handle.barrier()


def test_names_come_to_mean_other_groups(group):
    """A handle is not taken for that of a group that had the name before."""
    tensor, met = empty(10), counted("rendezvous")
    for _ in range(3):
        inner = dist.new_group(list(range(size)))
        c10d._register_process_group("again", inner)
        meet(tensor, "again").barrier()
        meet(tensor, "again").barrier()
        c10d._unregister_process_group("again")
        dist.barrier()
    assert counted("rendezvous") == met + 3


def test_groups_at_once_in_threads(group):
    """No thread of a rank blocks the rank's other threads, in any order."""
    groups = [dist.new_group(list(range(size))) for _ in range(4)]
    tensors = [empty(100).fill_(i) for i in range(4)]
    failed = []

    def work(i):
        try:
            handle = meet(tensors[i], groups[i])
            for _ in range(20):
                handle.barrier()
            assert handle.get_buffer(right, (100,), torch.float32).eq(i).all()
            handle.barrier()
        except BaseException as error:
            failed.append(error)
    threads = [threading.Thread(target=work, args=(i,)) for i in torch.randperm(4).tolist()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_one_tensor_in_two_groups_by_two_threads(group):
    groups = [dist.new_group(list(range(size))) for _ in range(2)]
    tensor, handles = empty(100), {}

    def work(i):
        handles[i] = meet(tensor, groups[i])
        handles[i].barrier(i)
    order = [0, 1] if rank % 2 else [1, 0]
    threads = [threading.Thread(target=work, args=(i,)) for i in order]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(handles) == {0, 1}


def test_leave_something_for_the_end(group):
    """Objects that are alive when the interpreter exits."""
    globals()["_left"] = [empty(100), meet(empty(100), group)]
