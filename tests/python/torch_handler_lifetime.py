# SPDX-License-Identifier: BSD-3-Clause
"""weft.torch.hyperparallel: lifetimes of symmetric tensors, and owners. The expectations of HyperParallel's own
lifetime tests, on tensors that are not mocked.
"""
import gc
import threading

import pytest
import torch
import weft
from torch_handler import bits, data, same, symm
from weft.torch import _heap, hyperparallel
from weft.torch._owner import _Lifetime
from weft.torch.hyperparallel import acquire_symmetric_memory


@pytest.mark.parametrize("shape, sizes", [(5, (5,)), ([5], (5,)), ((2, 3), (2, 3)), (torch.Size([4, 1, 2]), (4, 1, 2))])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.bfloat16, torch.complex128])
def test_empty(shape, sizes, dtype):
    tensor = symm.empty(shape, dtype)
    assert tensor.shape == sizes and tensor.dtype == dtype and tensor.device.type == "cpu"
    assert tensor.is_contiguous() and tensor._base is None and tensor.is_leaf and tensor.data_ptr() % 16 == 0
    assert not bits(tensor).any()


@pytest.mark.parametrize("shape", [0, -1, (), [], (2, 0), (3, -1), (2.0,), (True, 2), ("2",)])
def test_shapes_that_are_refused(shape):
    with pytest.raises(ValueError, match="expected positive whole numbers"):
        symm.empty(shape, torch.float32)


def test_devices_that_are_refused():
    with pytest.raises(ValueError, match="expected cpu or cuda"):
        symm.empty(1, torch.float32, "meta")


def test_ranks_that_ask_for_different_sizes(me, n):
    if n > 1:
        with pytest.raises(ValueError, match="all PEs must ask for the same"):
            symm.empty(100 + 100 * me, torch.float32)


def test_memory_comes_back_when_all_views_are_gone(n):
    """The same addresses come again; as long as a view is there, they do not."""
    gc.collect()
    seen = set()
    for _ in range(50):
        seen.add(symm.empty(300_000, torch.uint8).data_ptr())
    assert len(seen) < 5
    kept = symm.empty(300_000, torch.uint8)[5:7]
    for _ in range(10):
        assert symm.empty(300_000, torch.uint8).data_ptr() != kept.data_ptr() - 5
    assert _heap.region_of(kept).nbytes == 300_000


def test_ranks_let_go_at_different_times(me, n):
    """Memory that one rank still holds is not reused."""
    kept = [symm.empty(1000, torch.int64).fill_(i) for i in range(6)]
    mine = kept[me % 6]
    del kept[:]
    for i in range(6):
        symm.empty(1000, torch.int64).fill_(-1)
    assert (mine == me % 6).all()


def test_garbage_of_any_thread(me):
    def drop(tensors):
        tensors.clear()

    for _ in range(5):
        tensors = [symm.empty(10_000, torch.float32) for _ in range(3)]
        thread = threading.Thread(target=drop, args=(tensors,))
        thread.start()
        thread.join()


# --- Owners --------------------------------------------------------------------------------------

def test_free(me):
    owner = acquire_symmetric_memory()
    tensor = owner.empty((4, 4), torch.float32)
    owner.free(tensor)
    assert tensor.untyped_storage().nbytes() == 0 and tensor.numel() == 0
    whole = owner.empty(100, torch.float32)
    part = whole[10:20]
    owner.free(part)  # by a view of it
    assert whole.numel() == part.numel() == 0
    for foreign in (whole, torch.zeros(4), symm.empty(4, torch.float32)):
        with pytest.raises(ValueError, match="this owner has not made"):
            owner.free(foreign)
    owner.close()


def test_other_views_of_what_is_freed_stay_whole(me):
    tensor = symm.empty(1000, torch.int64).fill_(7)
    part = tensor[3:5]
    symm.free(tensor)
    for _ in range(5):
        symm.empty(1000, torch.int64).fill_(9)
    assert part.tolist() == [7, 7] and tensor.numel() == 0


@pytest.mark.parametrize("alignment", [1, 2, 64, 512, 4096])
def test_aligned_empty(alignment, me, n):
    owner = acquire_symmetric_memory()
    symm.empty(3, torch.uint8)
    tensor = owner.aligned_empty((3, 5), torch.float32, alignment)
    assert tensor.data_ptr() % alignment == 0 and tensor.shape == (3, 5)
    tensor.copy_(data(me, (3, 5), torch.float32))
    symm.barrier()
    got = torch.empty(15)
    symm.shmem_get(got, 0, tensor, 0, 15, (me + 1) % n)
    assert same(got, data((me + 1) % n, (3, 5), torch.float32).view(-1))
    handle = symm.rendezvous(tensor)
    assert torch.equal(handle.get_buffer((me + 1) % n, (3, 5), torch.float32), got.view(3, 5))
    assert not handle.get_signal_pad(me).any()
    owner.barrier()
    owner.close()


@pytest.mark.parametrize("alignment", [0, -8, 3, 8192, 2.0, True])
def test_alignments_that_are_refused(alignment):
    owner = acquire_symmetric_memory()
    with pytest.raises(ValueError, match="expected a power of two"):
        owner.aligned_empty(4, torch.float32, alignment)
    owner.close()


def test_owners_share_one_lifetime(me, n):
    """A second owner's close leaves the first one's tensors alone."""
    symm.close()
    assert _Lifetime.owners == 0
    tensor = symm.empty(4, torch.float32).fill_(me)
    first, second = symm._get_owner(), acquire_symmetric_memory()
    other = second.empty(4, torch.float32)
    assert _Lifetime.owners == 2
    second.close()
    assert second.closed and not first.closed and _Lifetime.owners == 1
    assert other.numel() == 0 and tensor.tolist() == [me] * 4
    second.close()  # does nothing
    for call in (lambda: second.empty(4, torch.float32), lambda: second.free(tensor), second.barrier):
        with pytest.raises(RuntimeError, match="closed owner"):
            call()
    first.free(tensor)
    symm.close()
    assert first.closed and _Lifetime.owners == 0
    output = symm.empty((n, 2), torch.float32)  # and a new life
    symm.shmem_allgather(output, torch.full((2,), float(me)))
    assert output[:, 0].tolist() == list(range(n))


def test_close_frees_even_if_the_meeting_fails(monkeypatch):
    owner = acquire_symmetric_memory()
    tensor, owners = owner.empty(4, torch.float32), _Lifetime.owners

    def fail():
        raise RuntimeError("no meeting")

    monkeypatch.setattr(owner, "_meet", fail)
    with pytest.raises(RuntimeError, match="no meeting"):
        owner.close()
    assert owner.closed and tensor.numel() == 0 and _Lifetime.owners == owners - 1


def test_heap_size(monkeypatch):
    symm.close()
    monkeypatch.setenv("SYMMETRIC_MEMORY_HEAP_SIZE", str(1 << 20))
    first = acquire_symmetric_memory()
    second = acquire_symmetric_memory()
    monkeypatch.setenv("SYMMETRIC_MEMORY_HEAP_SIZE", str(2 << 20))
    with pytest.raises(RuntimeError, match="1048576 bytes is smaller than the requested 2097152"):
        acquire_symmetric_memory()
    second.close()
    first.close()
    acquire_symmetric_memory().close()
    for wrong in ("0", "-5", "many", ""):
        monkeypatch.setenv("SYMMETRIC_MEMORY_HEAP_SIZE", wrong)
        with pytest.raises(ValueError, match="expected a positive number of bytes"):
            acquire_symmetric_memory()


def test_groups(me, n):
    """Only all ranks in their order; without torch.distributed there is none to name."""
    dist = torch.distributed
    if not dist.is_initialized():
        with pytest.raises(RuntimeError, match="torch.distributed has not been initialised"):
            acquire_symmetric_memory(object())
        return
    acquire_symmetric_memory(dist.group.WORLD).close()
    groups = [dist.new_group([rank]) for rank in range(n)]
    if n > 1:
        with pytest.raises(ValueError, match="whole distributed world"):
            acquire_symmetric_memory(groups[me])
    handle = hyperparallel.SymmetricMemoryHandler.rendezvous(symm.empty(4, torch.float32), groups[me])
    assert (handle.rank, handle.world_size) == (0, 1)


def test_an_owner_may_be_forgotten(me):
    tensor = acquire_symmetric_memory().empty(4, torch.float32).fill_(me)
    gc.collect()
    assert tensor.tolist() == [me] * 4
    symm.barrier()
