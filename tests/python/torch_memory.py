# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric tensors and handles on the CPU: the promises of PyTorch's functions of the same names."""
import ctypes
import gc
import re
import threading
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hypothesis")

from torch.distributed import distributed_c10d as c10d  # noqa: E402

import weft  # noqa: E402
import weft.torch as symm_mem  # noqa: E402
from torch_world import GROUPS, group_of_ranks, named_group, on_groups, raises  # noqa: E402


# --- empty ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint32,
                                   torch.float8_e4m3fn, torch.complex64, torch.bool])
@pytest.mark.parametrize("sizes", [(3, 5), (0, 4), (7,), ()])
def test_empty_is_like_torch_empty(sizes, dtype):
    one = symm_mem.empty(*sizes, dtype=dtype, device="cpu")
    other = symm_mem.empty(sizes, dtype=dtype, device="cpu")
    like = torch.empty(sizes, dtype=dtype)
    for t in (one, other):
        assert (t.shape, t.stride(), t.dtype, t.device) == (
            like.shape, like.stride(), like.dtype, like.device)
        assert not t._is_view() and t.is_contiguous() and not t.requires_grad
        assert t.untyped_storage().data_ptr() % 64 == 0
        assert symm_mem.is_symm_mem_tensor(t) and not symm_mem.is_symm_mem_tensor(like)
    assert one.untyped_storage().data_ptr() != other.untyped_storage().data_ptr()



@on_groups
def test_empty_has_defaults_and_refuses(group):
    assert symm_mem.empty(2).dtype == torch.get_default_dtype()
    assert symm_mem.empty(2).device == torch.device("cpu")
    raises((ValueError, RuntimeError), "negative", symm_mem.empty, -1, device="cpu")
    raises(RuntimeError, "device type", symm_mem.empty, 4, device="meta")


@pytest.mark.parametrize("sizes", [(2**62, 8), (2**61, 8), (2**63 - 1,), (2**40, 2**40), (0, 2**62, 8), (-1,)], ids=str)
def test_sizes_that_cannot_be(sizes):
    with pytest.raises(RuntimeError) as theirs:
        torch.empty(sizes)
    raises(RuntimeError, re.escape(str(theirs.value).splitlines()[0]), symm_mem.empty, sizes, device="cpu")
    assert symm_mem.empty(2**62, 0, 8, device="cpu").numel() == 0
    raises(RuntimeError, None, symm_mem.empty, 2**42, device="cpu")  # that the machine does not have


@pytest.mark.parametrize("sizes, strides", [((4, 6), (7, 1)), ((4, 6), (2**61, 1)), ((4,), (-1,)), ((4,), (1, 1)),
                                            ((2**40, 4), (2**40, 2**60)), ((2**62, 8), (8, 1))], ids=str)
def test_strides_that_cannot_be(sizes, strides):
    """Elements lie within the memory that was made for them."""
    raises(RuntimeError, None, symm_mem.SymmetricMemory.empty_strided_p2p, sizes, strides, torch.float32, "cpu")


# --- rendezvous and the handle -------------------------------------------------------------------


@on_groups
def test_handle_has_all_members(group):
    t = symm_mem.empty(10, 3, device="cpu").fill_(group.rank())
    handle = symm_mem.rendezvous(t, group)
    n = group.size()
    assert symm_mem.rendezvous(t, group.group_name).buffer_ptrs == handle.buffer_ptrs
    assert symm_mem.rendezvous(t[2:], group).buffer_ptrs == handle.buffer_ptrs
    assert (handle.rank, handle.world_size, handle.device) == (group.rank(), n, t.device)
    assert (handle.buffer_size, handle.offset, handle.multicast_ptr) == (120, 0, 0)
    assert len(handle.buffer_ptrs) == len(handle.signal_pad_ptrs) == n
    assert handle.buffer_ptrs[handle.rank] == t.data_ptr()
    for rank in range(n):
        pad = handle.get_signal_pad(rank)
        assert pad.dtype == torch.uint32
        assert pad.shape == (symm_mem.get_signal_pad_size() // 4,)
        assert pad.data_ptr() == handle.signal_pad_ptrs[rank] and not pad.any()
        assert handle.get_signal_pad(rank, (2, 3), torch.int64).shape == (2, 3)
        assert handle.get_signal_pad(rank, (1,), torch.int16, 5).data_ptr() == pad.data_ptr() + 10
    assert _addresses(handle.buffer_ptrs_dev, n) == handle.buffer_ptrs
    assert _addresses(handle.signal_pad_ptrs_dev, n) == handle.signal_pad_ptrs


def _addresses(array, n):
    return list((ctypes.c_uint64 * n).from_address(array))


@on_groups
def test_buffers_are_the_peers_memory(group):
    rank, n = group.rank(), group.size()
    t = symm_mem.empty(4, 6, dtype=torch.float64, device="cpu")
    t.copy_(torch.arange(24.).view(4, 6) + 100 * rank)
    handle = symm_mem.rendezvous(t, group)
    handle.barrier()
    for peer in range(n):
        whole = handle.get_buffer(peer, (4, 6), torch.float64)
        assert torch.equal(whole, torch.arange(24.).view(4, 6).double() + 100 * peer)
        part = handle.get_buffer(peer, [2, 3], torch.float64, 6)
        assert torch.equal(part, whole.flatten()[6:12].view(2, 3)) and part.is_contiguous()
        assert torch.equal(handle.get_remote_tensor(peer, (4, 6), torch.float64), whole)
        assert handle.get_buffer(peer, (48,), torch.float32).shape == (48,)
        assert handle.get_buffer(peer, (0,), torch.float32, 48).numel() == 0
        raises(RuntimeError, "exceeds the allocated size", handle.get_buffer, peer, (25,),
               torch.float64)
        raises(RuntimeError, "exceeds the allocated size", handle.get_buffer, peer, (24,),
               torch.float64, 1)
        raises(RuntimeError, "exceeds the allocated size", handle.get_signal_pad, peer, (1 << 20,))
    assert handle.get_buffer(rank, (4,), torch.float64).data_ptr() == t.data_ptr()
    raises(RuntimeError, rf"must be in \[0, {n}\)", handle.get_buffer, n, (1,), torch.float32)
    raises(RuntimeError, "must be in", handle.put_signal, -1)
    raises(RuntimeError, "channel", handle.barrier, -1)
    raises(RuntimeError, "maximum supported channel", handle.barrier, 1 << 20)
    handle.barrier()
    handle.get_buffer((rank + 1) % n, (1,), torch.float64, 23).fill_(7)
    handle.barrier(channel=1)
    assert t[3, 5] == 7


@on_groups
def test_views_that_cannot_be(group):
    handle = symm_mem.rendezvous(symm_mem.empty(64, dtype=torch.bfloat16, device="cpu"), group)
    n, words = group.size(), symm_mem.get_signal_pad_size() // 4
    for call, sizes, dtype in ((handle.get_buffer, (2,), torch.bfloat16), (handle.get_signal_pad, (2,), torch.uint32),
                               (handle.get_remote_tensor, (2,), torch.bfloat16)):
        for rank in (-1, n, 9, 2**31 - 1):
            raises(RuntimeError, rf"must be in \[0, {n}\)", call, rank, sizes, dtype)
        for cannot in ((-1,), (2**61 + 1,), (2**62, 8), (-2, -1)):
            raises(RuntimeError, "exceeds the allocated size", call, 0, cannot, torch.float64)
        raises(TypeError, None, call, 0, sizes, 3)
        raises(TypeError, None, call, "a", sizes, dtype)
    for offset in (-1, 64, 2**62):
        raises(RuntimeError, "exceeds the allocated size", handle.get_buffer, 0, (2,), torch.bfloat16, offset)
    for offset in (-1, words, 2**62):
        raises(RuntimeError, "exceeds the allocated size", handle.get_signal_pad, 0, (2,), None, offset)
    assert handle.get_signal_pad(0, dtype=torch.int64).numel() == words // 2
    handle.barrier()


@on_groups
def test_signals_go_around(group):
    """A ring: each word is put twice, so that the second put has to wait for the first wait."""
    rank, n = group.rank(), group.size()
    t = symm_mem.empty(1, dtype=torch.int64, device="cpu").zero_()
    handle = symm_mem.rendezvous(t, group)
    right, left = (rank + 1) % n, (rank - 1) % n
    handle.barrier()
    for turn in range(20):
        if n > 1 or turn % 1 == 0:
            handle.get_buffer(right, (1,), torch.int64).fill_(turn)
            handle.put_signal(right, channel=turn % 3)
            handle.wait_signal(left, channel=turn % 3)
            assert int(t) == turn
            handle.barrier(channel=3)
    assert not handle.get_signal_pad(rank).any()
    if n > 1:
        for kind in (RuntimeError, TimeoutError if isinstance(handle, symm_mem.SymmetricMemory) else RuntimeError):
            raises(kind, None, handle.wait_signal, left, 7, 20)
    handle.barrier()


@on_groups
def test_members_have_the_same_sizes(group):
    """Also if padding makes the blocks of different tensors equally large: all members refuse."""
    rank, pad = group.rank(), symm_mem.get_signal_pad_size()
    for more in (1, 10, 16, 100, 10000) if group.size() > 1 else ():
        t = symm_mem.empty(100 + more * (rank == 1), device="cpu")
        raises(RuntimeError, "(rank|PE) . has .* (rank|of PE) ", symm_mem.rendezvous, t, group)
    for unit in (64, 512):
        try:
            symm_mem.set_signal_pad_size(pad + unit * rank)
            t = symm_mem.empty(unit // 4 * (group.size() - rank), device="cpu")
        finally:
            symm_mem.set_signal_pad_size(pad)
        if group.size() > 1:
            raises(RuntimeError, "(rank|PE) . has .* (rank|of PE) ", symm_mem.rendezvous, t, group)
    handle = symm_mem.rendezvous(symm_mem.empty(100, device="cpu"), group)
    handle.barrier()


@on_groups
def test_foreign_memory_is_none_at_once(group):
    private = torch.empty(4)
    assert symm_mem.rendezvous(private, group) is None
    assert symm_mem.rendezvous(torch.empty(0), group) is None
    raises(TypeError, "unsupported group type", symm_mem.rendezvous, private, 3)
    raises(ValueError, "not allocated", torch.ops.symm_mem.get_remote_tensors, private,
           group.group_name)
    raises(RuntimeError, "symm_mem.empty", symm_mem.one_shot_all_reduce, private, "sum", group)


@on_groups
def test_static_functions(group):
    allocate = symm_mem._SymmetricMemory.empty_strided_p2p
    t = allocate((4, 6), (1, 4), torch.float32, torch.device("cpu"), group.group_name)
    assert t.stride() == (1, 4)
    assert symm_mem._SymmetricMemory.rendezvous(t).world_size == group.size()
    assert not symm_mem._SymmetricMemory.has_multicast_support("cpu", 0)
    raises((RuntimeError, ValueError), "group", symm_mem._SymmetricMemory.rendezvous,
           symm_mem.empty(1, device="cpu"))
    assert symm_mem.get_backend("cpu") == "WEFT"
    raises((RuntimeError, ValueError), None, symm_mem.set_backend, "NCCL")


@on_groups
def test_pads_have_the_size_of_their_allocation(group):
    before = symm_mem.get_signal_pad_size()
    try:
        symm_mem.set_signal_pad_size(1 << 20)
        assert symm_mem._SymmetricMemory.signal_pad_size == 1 << 20
        t = symm_mem.empty(1, device="cpu")
        handle = symm_mem.rendezvous(t, group)
        symm_mem._SymmetricMemory.signal_pad_size = 4096
        assert symm_mem.get_signal_pad_size() == 4096
        handle.barrier(channel=(1 << 18) // group.size() - 1)
        assert symm_mem.rendezvous(symm_mem.empty(1, device="cpu"), group).get_signal_pad(
            0).numel() == 1024
    finally:
        symm_mem.set_signal_pad_size(before)


@on_groups
def test_persistent_allocations(group):
    def allocate(elements=8, alloc_id=77 + group.size()):
        return symm_mem._SymmetricMemory.empty_strided_p2p(
            (elements,), (1,), torch.float32, torch.device("cpu"), group.group_name, alloc_id)
    first = allocate()
    address = first.data_ptr()
    handle = symm_mem.rendezvous(first, group)
    raises(RuntimeError, "still active", allocate)
    view = first[2:]
    del first
    raises(RuntimeError, "still active", allocate)
    del view
    raises(RuntimeError, "size", allocate, 9)
    again = allocate()
    assert again.data_ptr() == address
    assert symm_mem.rendezvous(again, group).buffer_ptrs == handle.buffer_ptrs


# --- Lifetime ------------------------------------------------------------------------------------


@on_groups
def test_a_handle_keeps_the_memory(group):
    t = symm_mem.empty(1000, device="cpu").fill_(group.rank())
    handle = symm_mem.rendezvous(t, group)
    del t
    gc.collect()
    handle.barrier()
    for peer in range(group.size()):
        assert (handle.get_buffer(peer, (1000,), torch.float32) == peer).all()
    remote = handle.get_buffer(0, (1000,), torch.float32)
    handle.barrier()
    part = remote[500:]  # and so does a view, by itself
    del handle, remote
    gc.collect()
    address = part.untyped_storage().data_ptr()
    assert (part == 0).all()
    del part
    gc.collect()
    assert group.rank() != 0 or weft.block_of(address) is None


@on_groups
def test_ranks_allocate_and_free_as_they_like(group):
    """Ranks allocate and free independently; shared memory stays correct."""
    rank, kept = group.rank(), []
    noise = torch.Generator().manual_seed(20 + rank)
    for turn in range(12):
        for _ in range(int(torch.randint(4, (), generator=noise))):
            kept.append(symm_mem.empty(int(torch.randint(5000, (), generator=noise)), device="cpu"))
        t = symm_mem.empty(64, dtype=torch.int64, device="cpu").fill_(turn * 10 + rank)
        handle = symm_mem.rendezvous(t, group)
        handle.barrier()
        for peer in range(group.size()):
            assert (handle.get_buffer(peer, (64,), torch.int64) == turn * 10 + peer).all()
        handle.barrier()
        if torch.randint(2, (), generator=noise):
            kept.append((t, handle))
        while kept and torch.randint(2, (), generator=noise):
            kept.pop(int(torch.randint(len(kept), (), generator=noise)))


@on_groups
def test_memory_goes_with_its_last_user(group):
    t = symm_mem.empty(1 << 20, device="cpu")
    storage = weakref.ref(t.untyped_storage())
    handle = symm_mem.rendezvous(t, group)
    handle.barrier()
    address = t.data_ptr()
    del t, handle
    gc.collect()
    assert storage() is None and weft.block_of(address) is None


@pytest.mark.parametrize("other", [ranks for ranks in GROUPS if len(ranks) < max(3, weft.n_pes())],
                         ids=str)
def test_overlapping_groups(other):
    """One tensor in two groups, and alternating calls of both."""
    world, part, me = group_of_ranks(list(range(weft.n_pes()))), group_of_ranks(other), weft.my_pe()
    t = symm_mem.empty(4, device="cpu").fill_(me)
    whole = symm_mem.rendezvous(t, world)
    whole.barrier()
    if part is not None:
        handle = symm_mem.rendezvous(t, part)
        handle.barrier()
        for at, rank in enumerate(other):
            assert (handle.get_buffer(at, (4,), torch.float32) == rank).all()
            assert whole.get_buffer(rank, (4,), torch.float32)[0] == rank
        handle.barrier()
    whole.barrier()
    x = torch.full((8,), float(me))
    for _ in range(3):
        assert (symm_mem.all_reduce(x, "sum", world) == sum(range(weft.n_pes()))).all()
        if part is not None:
            assert (symm_mem.all_reduce(x, "sum", part) == sum(other)).all()


def test_groups_of_the_same_ranks_at_once():
    """A thread for each group; calls of one group are never mistaken for those of the other."""
    ranks, wrong = list(range(weft.n_pes())), []
    groups = [group_of_ranks(ranks), named_group("twin", ranks)]

    def work(group, weight):
        x = torch.full((64,), weight)
        for turn in range(60):
            whole = symm_mem.all_gather(x + turn, 0, group)
            t = symm_mem.empty(64, device="cpu").fill_(weight + turn)
            handle = symm_mem.rendezvous(t, group)
            handle.barrier()
            remote = handle.get_buffer((group.rank() + 1) % group.size(), (64,), torch.float32)
            if not (whole == weight + turn).all() or not (remote == weight + turn).all():
                wrong.append((weight, turn))
            handle.barrier()
    threads = [threading.Thread(target=work, args=(group, 1000. * at))
               for at, group in enumerate(groups)]
    [thread.start() for thread in threads]
    [thread.join(60) for thread in threads]
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_a_name_that_is_given_again():
    """A group that has gone leaves its name to another, of other ranks perhaps."""
    ranks = list(range(weft.n_pes()))
    for turn, members in enumerate((ranks, ranks[::-1], ranks[:1], ranks)):
        if weft.my_pe() in members:
            group = named_group("again", members, turn)
            x = torch.tensor([float(weft.my_pe())])
            assert symm_mem.all_gather(x, 0, "again").tolist() == members
            handle = symm_mem.rendezvous(symm_mem.empty(1, device="cpu"), group)
            assert (handle.rank, handle.world_size) == (members.index(weft.my_pe()), len(members))
            c10d._unregister_process_group("again")


# --- What belongs to a group or process ----------------------------------------------------------


@on_groups
def test_workspace_grows(group):
    small = symm_mem.get_symm_mem_workspace(group.group_name, 100, device="cpu")
    assert small.buffer_size >= 100 and small.world_size == group.size()
    again = symm_mem.get_symm_mem_workspace(group.group_name, 50, device="cpu")
    assert again.buffer_ptrs == small.buffer_ptrs
    large = symm_mem.get_symm_mem_workspace(group.group_name, 1 << 16, device="cpu")
    assert large.buffer_size >= 1 << 16
    small.get_buffer(small.rank, (25,), torch.float32).fill_(1)
    large.barrier()


@on_groups
def test_streams_and_the_rest(group):
    stream = symm_mem._get_backend_stream()
    assert stream is symm_mem._get_backend_stream() is not symm_mem._get_backend_stream(-1)
    stream.wait_stream(torch.cpu.current_stream())
    with stream:
        pass
    stream.synchronize()
    raises(RuntimeError, "cuda", symm_mem.get_mem_pool, "cpu")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        symm_mem.enable_symm_mem_for_group(group.group_name)
    assert any(w.category is FutureWarning for w in caught)
    assert symm_mem.is_symm_mem_enabled_for_group(group.group_name)
    with symm_mem._test_mode({"somebody"}):
        assert symm_mem.is_symm_mem_enabled_for_group("somebody")
        assert not symm_mem.is_symm_mem_enabled_for_group("nobody")


@on_groups
def test_put_and_get(group):
    rank, n = group.rank(), group.size()
    right, left = (rank + 1) % n, (rank - 1) % n
    t = symm_mem.empty(16, dtype=torch.int32, device="cpu").fill_(rank)
    handle = symm_mem.rendezvous(t, group)
    handle.barrier()
    symm_mem.put(torch.full((4,), 10 + rank, dtype=torch.int32), handle, right, offset=4)
    handle.barrier()
    assert t.tolist() == [rank] * 4 + [10 + left] * 4 + [rank] * 8
    got = torch.empty(3, dtype=torch.int32)
    symm_mem.get(got, handle, right, offset=8)
    assert (got == right).all()
    handle.barrier()
    symm_mem.put_signal(torch.full((16,), 50 + rank, dtype=torch.int32), handle, right)
    symm_mem.wait_signal(handle, left)
    assert (t == 50 + left).all()
    raises(RuntimeError, "invalid peer", symm_mem.get, got, handle, n)
    raises(RuntimeError, "non-negative", symm_mem.get, got, handle, 0, -1)
    raises(RuntimeError, "exceeds", symm_mem.get, got, handle, 0, 14)
    raises(RuntimeError, "contiguous", symm_mem.get, torch.empty(6, dtype=torch.int32)[::2], handle,
           0)
    remote = symm_mem.get_remote_tensors(t[3:7], group)
    handle.barrier()
    for peer, copy in enumerate(remote):
        assert copy.shape == (4,) and (copy == 50 + (peer - 1) % n).all()
    handle.barrier()


@on_groups
def test_words_of_32_bits(group):
    progress = torch.zeros(8, dtype=torch.uint32)
    symm_mem.stream_write_value32_(progress, 3, 0xFFFFFFFF)
    symm_mem._SymmetricMemory.memset32(progress, 5, 7, 2)
    assert progress.tolist() == [0, 0, 0, 0xFFFFFFFF, 0, 7, 7, 0]
    assert symm_mem.memset32_(progress, 0, 1).data_ptr() == progress.data_ptr()
    for bad in ((progress, 8, 1), (progress, -1, 1), (progress, 0, 1 << 32),
                (progress.view(2, 4), 0, 1), (progress.view(torch.int32), 0, 1)):
        raises(RuntimeError, "got", symm_mem.stream_write_value32_, *bad)
    raises(RuntimeError, "got", symm_mem.memset32_, progress, 7, 1, 2)
