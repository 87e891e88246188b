# SPDX-License-Identifier: BSD-3-Clause
"""weft.torch.hyperparallel on CPU tensors: put, get, signals, waits, the barrier and rendezvous."""
import random

import pytest
import torch
import weft
from torch_handler import ALL_TYPES, GUARD, Guarded, bits, data, same, symm
from weft.torch import hyperparallel

SET, ADD = 0, 1
EQUAL, GREATER, LESS = 0, 1, 2


def test_names():
    assert hyperparallel.TorchSymmetricMemoryHandler is symm
    assert symm.is_shmem_available() is True
    assert symm().shmem_put is symm.shmem_put  # HyperParallel's platforms make an instance


# --- HyperParallel's own tests -------------------------------------------------------------------

def test_put_mem(me, n):
    """The last rank puts 4 of 16 to rank 0."""
    target = symm.empty((16,), torch.int64).zero_()
    symm.barrier()
    if me == n - 1:
        symm.shmem_put(target, 0, torch.ones(16, dtype=torch.int64), 0, 4, 0)
    symm.barrier()
    assert target.tolist() == ([1] * 4 + [0] * 12 if me == 0 else [0] * 16)


def test_put_with_signal(me, n):
    target, signal = symm.empty(16, torch.int64).zero_(), symm.empty(2, torch.int32).zero_()
    symm.barrier()
    if me == n - 1:
        symm.shmem_put_with_signal(target, 0, torch.ones(16, dtype=torch.int64), 0, 16, signal, 0, 1, SET, 0)
    if me == 0:
        symm.shmem_wait_for_signal(target, signal, 0, 1, EQUAL)
        assert target.tolist() == [1] * 16 and signal.tolist() == [1, 0]


@pytest.mark.parametrize("numbers", ["python", "int64", "int32"])
def test_wait_for_signal(numbers, me, n):
    """Six signals: 1, -1 and 2, set and added; equal, less and greater."""
    def number(value):
        return value if numbers == "python" else torch.tensor([value], dtype=getattr(torch, numbers))

    signal = symm.empty([6], torch.int32).zero_()
    symm.barrier()
    for slot, value in enumerate([1, 1, -1, -1, 2, 2]):
        symm.shmem_signal_op(signal, number(slot), number(value), slot % 2, (me + 1) % n)
    for slot, (bound, cmp) in enumerate([(1, EQUAL)] * 2 + [(0, LESS)] * 2 + [(1, GREATER)] * 2):
        symm.shmem_wait_for_signal(None, signal, number(slot), number(bound), cmp)
    assert signal.tolist() == [1, 1, -1, -1, 2, 2]  # a wait does not reset


# --- Units ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ALL_TYPES, ids=str)
def test_units_are_elements(dtype, me, n):
    draw, right, left = random.Random(str(dtype)), (me + 1) % n, (me - 1) % n
    for turn in range(8):
        count, to, start = draw.randrange(21), draw.randrange(9), draw.randrange(9)
        target, source = Guarded((30,), dtype), Guarded((30,), dtype)
        source.inside.copy_(data((turn, me), (30,), dtype))
        symm.barrier()
        if turn % 2:
            symm.shmem_put(target.inside, to, source.inside, start, count, right)
        else:
            symm.shmem_get(target.inside, torch.tensor(to), source.inside, torch.tensor([start]),
                           torch.tensor([count], dtype=torch.int32), left)
        symm.barrier()
        expected = torch.empty(30, dtype=dtype)
        bits(expected).fill_(0xee)
        expected[to:to + count] = data((turn, left), (30,), dtype)[start:start + count]
        assert same(target.inside, expected) and target.intact() and source.intact()
        symm.barrier()


def test_private_sides_and_several_dimensions(me, n):
    """src of a put and target of a get need not be symmetric; shapes do not matter."""
    box = symm.empty((3, 4), torch.float32).fill_(-1)
    symm.barrier()
    symm.shmem_put(box, 5, data(me, (2, 5), torch.float32), 2, 6, (me + 1) % n)
    symm.barrier()
    expected = torch.full((12,), -1.0)
    expected[5:11] = data((me - 1) % n, (2, 5), torch.float32).view(-1)[2:8]
    assert torch.equal(box.view(-1), expected)
    got = torch.zeros(6)
    symm.shmem_get(got, 0, box, 5, 6, (me + 1) % n)
    assert torch.equal(got, data(me, (2, 5), torch.float32).view(-1)[2:8])


def test_nothing_is_put_but_the_signal(me, n):
    target, signal = Guarded((4,), torch.float32), symm.empty(1, torch.int32).zero_()
    symm.barrier()
    symm.shmem_put_with_signal(target.inside, 4, torch.ones(0), 0, 0, signal, 0, -3, ADD, (me + 1) % n)
    symm.shmem_wait_for_signal(None, signal, 0, -3, EQUAL)
    assert (bits(target.whole) == 0xee).all()


def test_signals_take_32_bits(me, n):
    signal = symm.empty(2, torch.int32).zero_()
    symm.barrier()
    symm.shmem_signal_op(signal, 0, -2**31, SET, (me + 1) % n)
    symm.shmem_signal_op(signal, 1, 2**31 - 1, SET, (me + 1) % n)
    symm.shmem_wait_for_signal(None, signal, 0, -2**31, EQUAL)
    symm.shmem_wait_for_signal(None, signal, 1, 2**31 - 2, GREATER)
    for value in (2**31, -2**31 - 1):
        with pytest.raises(ValueError, match="32 bits"):
            symm.shmem_signal_op(signal, 0, value, SET, me)


def test_no_addition_is_lost(me, n):
    signal = symm.empty(1, torch.int32).zero_()
    symm.barrier()
    for value in range(-30, 60):
        symm.shmem_signal_op(signal, 0, value, ADD, 0)
    symm.barrier()
    assert me != 0 or signal.item() == n * sum(range(-30, 60))


def test_defaults_are_those_of_the_documentation(me):
    """signal_op 0 and target_rank 0."""
    signal = symm.empty(1, torch.int32).zero_()
    symm.barrier()
    if me == 0:
        symm.shmem_signal_op(signal, 0, 9)
    symm.barrier()
    assert signal.item() == (9 if me == 0 else 0)


def test_a_relay_of_data_and_signals(me, n):
    """Each rank forwards the data that it receives, a hundred times around: data before signals, without a barrier."""
    turns, width = 100, 50
    box, signal = symm.empty((turns, width), torch.int64).zero_(), symm.empty(turns, torch.int32).zero_()
    symm.barrier()
    for turn in range(turns):
        value = torch.full((width,), turn + 1)
        if me != 0:
            symm.shmem_wait_for_signal(box, signal, turn, 1, EQUAL)
            value = box[turn] + 0
        symm.shmem_put_with_signal(box, turn * width, value, 0, width, signal, turn, 1, SET, (me + 1) % n)
        if me == 0:
            symm.shmem_wait_for_signal(box, signal, turn, 1, EQUAL)
    assert torch.equal(box, torch.arange(1, turns + 1).view(-1, 1).expand(turns, width))


def test_the_barrier_completes_puts(me, n):
    box = symm.empty((n, 100), torch.float32)
    for turn in range(20):
        for peer in range(n):
            symm.shmem_put(box, me * 100, data((turn, me, peer), (100,), torch.float32), 0, 100, peer)
        symm.barrier()
        for peer in range(n):
            assert torch.equal(box[peer], data((turn, peer, me), (100,), torch.float32))
        symm.barrier()


def test_what_autograd_watches_is_put_like_anything(me, n):
    box = symm.empty(4, torch.float32)
    weight = torch.nn.Parameter(torch.full((4,), float(me)))
    symm.shmem_put(box, 0, weight, 0, 4, (me + 1) % n)
    symm.barrier()
    assert box.tolist() == [float((me - 1) % n)] * 4


# --- What is refused -----------------------------------------------------------------------------

@pytest.mark.parametrize("rank", [-1, "n", "n + 7"])
def test_ranks_out_of_range(rank, n):
    rank = {"n": n, "n + 7": n + 7}.get(rank, rank)
    box, signal = symm.empty(4, torch.float32), symm.empty(1, torch.int32)
    text = rf"target_rank must be in range \[0, {n - 1}\], but get {rank}"
    for call, arguments in [(symm.shmem_put, (box, 0, box, 0, 1)), (symm.shmem_get, (box, 0, box, 0, 1)),
                            (symm.shmem_signal_op, (signal, 0, 1, SET)),
                            (symm.shmem_put_with_signal, (box, 0, box, 0, 1, signal, 0, 1, SET))]:
        with pytest.raises(ValueError, match=text):
            call(*arguments, rank)


def test_what_is_refused(me):
    box, other, signal = symm.empty(8, torch.float32), symm.empty(8, torch.float64), symm.empty(2, torch.int32)
    private = torch.zeros(8)
    put, get, wait = symm.shmem_put, symm.shmem_get, symm.shmem_wait_for_signal
    signalled, give = symm.shmem_put_with_signal, symm.shmem_signal_op
    for text, call, arguments in [
            ("target is of float32, but src is of float64", put, (box, 0, other, 0, 1, me)),
            ("target is of float64, but src is of float32", get, (other, 0, box, 0, 1, me)),
            ("target is not symmetric", put, (private, 0, box, 0, 1, me)),
            ("src is not symmetric", get, (box, 0, private, 0, 1, me)),
            ("8 elements: there are no 4 from element 5 on", put, (box, 5, private, 0, 4, me)),
            ("8 elements: there are no 4 from element 6 on", put, (box, 0, private, torch.tensor(6), 4, me)),
            ("8 elements: there are no 9 from element 0 on", get, (box, 0, box, 0, 9, me)),
            ("from element -1 on", get, (box, -1, box, 0, 1, me)),
            ("no -1 from", put, (box, 0, private, 0, -1, me)),
            ("not contiguous", put, (box[::2], 0, private, 0, 1, me)),
            ("not contiguous", put, (box, 0, private.view(2, 4).T, 0, 1, me)),
            ("got src on meta, expected it on cpu", put, (box, 0, torch.zeros(8, device="meta"), 0, 1, me)),
            ("size has 2 elements", put, (box, 0, private, 0, torch.tensor([1, 2]), me)),
            ("signal is of float32", give, (box, 0, 1, SET, me)),
            ("signal is not symmetric", give, (torch.zeros(1, dtype=torch.int32), 0, 1, SET, me)),
            ("signal has 2 elements: there are no 1 from element 2 on", wait, (None, signal, 2, 1, EQUAL)),
            ("signal_op 2, expected 0 to 1", give, (signal, 0, 1, 2, me)),
            ("signal_op -1, expected 0 to 1", signalled, (box, 0, private, 0, 1, signal, 0, 1, -1, me)),
            ("target_offset is 'x'", signalled, (box, "x", private, 0, 1, signal, 0, 1, SET, me)),
            ("src_offset is 'x'", signalled, (box, 0, private, "x", 1, signal, 0, 1, SET, me)),
            ("signal_offset is 'x'", signalled, (box, 0, private, 0, 1, signal, "x", 1, SET, me)),
            ("signal_value is 'x'", give, (signal, 0, "x", SET, me)),
            ("compare_value is 'x'", wait, (None, signal, 0, "x", EQUAL)),
            ("compare_op 3, expected 0 to 2", wait, (None, signal, 0, 1, 3))]:
        with pytest.raises(ValueError, match=f"^{call.__name__}: .*{text}"):
            call(*arguments)


def test_what_is_of_another_kind(me, n):
    """TypeErrors that name the argument, before anything is sent."""
    box, signal, a = symm.empty(8, torch.float32), symm.empty(n, torch.int32), torch.zeros(n, n)
    for text, call, arguments in [
            ("src of type list", symm.shmem_put, (box, 0, [1], 0, 1, me)),
            ("target of type NoneType", symm.shmem_put, (None, 0, box, 0, 1, me)),
            ("target of type ndarray", symm.shmem_get, (torch.zeros(1).numpy(), 0, box, 0, 1, me)),
            ("target_rank '1'", symm.shmem_put, (box, 0, box, 0, 1, "1")),
            ("signal of type int", symm.shmem_signal_op, (1, 0, 1, SET, me)),
            ("signal_op 'set'", symm.shmem_signal_op, (signal, 0, 1, "set", me)),
            ("signal of type NoneType", symm.shmem_wait_for_signal, (None, None, 0, 1, EQUAL)),
            ("signal of type NoneType", symm.shmem_put_with_signal, (box, 0, box, 0, 1, None, 0, 1, SET, me)),
            ("input_tensor of type list", symm.shmem_allgather, (box, [1])),
            ("output_tensor of type NoneType", symm.shmem_allgather, (None, box)),
            ("send_tensor_list of type NoneType", symm.shmem_alltoall, (None, box, [8])),
            (r"send_tensor_list\[1\] of type NoneType", symm.shmem_alltoall, ([box, None], box, [8])),
            ("receive_tensor of type list", symm.shmem_alltoall, ([box], [1], [8])),
            ("receive_list of type int", symm.shmem_alltoall, ([box], box, 8)),
            ("b of type NoneType", symm.fused_all_gather_matmul, (a, None, a, a, signal)),
            ("block_size 'x'", symm.fused_all_gather_matmul, (a, a, a, a, signal, "x")),
            ("symm_tensor of type int", symm.fused_matmul_reduce_scatter, (a, a, 3, signal)),
            ("dtype 'float'", symm.empty, (3, "float")), ("shape of type NoneType", symm.empty, (None, torch.float32)),
            ("tensor of type list", symm.free, ([1],)), ("tensor of type list", symm.rendezvous, ([1],))]:
        with pytest.raises(TypeError, match=f"^{call.__name__}: got {text}"):
            call(*arguments)
    with pytest.raises(ValueError, match="empty: got shape"):
        symm.empty(2**62, torch.float32)


# --- What HyperParallel left out -----------------------------------------------------------------

def test_rendezvous(me, n):
    box = symm.empty((3, 5), torch.float32).copy_(data(me, (3, 5), torch.float32))
    handle = symm.rendezvous(box, None)
    assert handle is symm.rendezvous(box[1:]) and (handle.rank, handle.world_size) == (me, n)
    assert handle.buffer_size == 60 and handle.signal_pad_size == symm.get_signal_pad_size()
    handle.barrier()
    symm.barrier()
    for peer in range(n):
        assert torch.equal(handle.get_buffer(peer, (3, 5), torch.float32), data(peer, (3, 5), torch.float32))
        assert torch.equal(handle.get_buffer(peer, (2,), torch.float32, 7), data(peer, (3, 5), torch.float32).view(-1)[7:9])
        assert not handle.get_signal_pad(peer).any()
    symm.barrier()
    with pytest.raises(RuntimeError, match="exceeds the allocated size"):
        handle.get_buffer(me, (16,), torch.float32)
    handle.barrier(1)
    handle.get_buffer((me + 1) % n, (3, 5), torch.float32)[0, 0] = 100 + me
    handle.put_signal((me + 1) % n, 2)
    handle.wait_signal((me - 1) % n, 2)
    assert box[0, 0].item() == 100 + (me - 1) % n
    del box
    handle.barrier()
    assert handle.get_buffer(me, (1,), torch.float32).item() == 100 + (me - 1) % n
    with pytest.raises(ValueError, match="other memory"):
        symm.rendezvous(torch.zeros(4), None)


def test_signal_pad_size(n):
    before = symm.get_signal_pad_size()
    try:
        symm.set_signal_pad_size(4 * n * 3)
        handle = symm.rendezvous(symm.empty(1, torch.uint8))
        assert symm.get_signal_pad_size() == handle.signal_pad_size == 4 * n * 3
        handle.barrier(channel=2)
        with pytest.raises(RuntimeError, match="channel"):
            handle.barrier(channel=3)
    finally:
        symm.set_signal_pad_size(before)
    for size in (-1, 1.5):
        with pytest.raises(ValueError, match="expected a number of bytes"):
            symm.set_signal_pad_size(size)


def test_signal_pads_lie_behind_the_tensor(me):
    """Filling a tensor to its last byte leaves the pad alone."""
    for nbytes in (1, 63, 64, 65, 200):
        box = symm.empty(nbytes, torch.uint8)
        box.fill_(255)
        assert not symm.rendezvous(box).get_signal_pad(me).any()
