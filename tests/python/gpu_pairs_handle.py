# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of gpu_pairs.py: the members of a handle, and the static functions of its class."""
import ctypes

import torch
import torch.distributed as dist
from torch._C._autograd import DeviceType

from gpu_pairs_frame import Here, pair, random, scenes


def of_handle(check, of, reference, values=None):
    """of(m, tensor, handle) of a new handle on either side."""
    for shape in ((10, 3), (1000,), (1,)):
        values = random(*shape)

        def call(m):
            tensor, handle = m.handle(values)
            handle.barrier()
            got = [each.clone() if isinstance(each, torch.Tensor) else each for each in of(m, tensor, handle)]
            handle.barrier()
            return got
        check.same(call, lambda m: reference(m, values))


def at(address, count):
    """Returns the addresses in an array."""
    if not Here.gpu:
        return list((ctypes.c_uint64 * count).from_address(address))
    words = type("", (), {"__cuda_array_interface__": {"shape": (count,), "typestr": "<i8", "version": 3,
                                                       "data": (address, False)}})()
    return torch.as_tensor(words, device=Here.device).tolist()


SIMPLE = {
    "rank": (lambda m, tensor, handle: [handle.rank], lambda m, x: [m.rank]),
    "world_size": (lambda m, tensor, handle: [handle.world_size], lambda m, x: [m.size]),
    "device": (lambda m, tensor, handle: [handle.device], lambda m, x: [Here.device]),
    "buffer_size": (lambda m, tensor, handle: [handle.buffer_size], lambda m, x: [x.numel() * 4]),
    "offset": (lambda m, tensor, handle: [handle.offset], lambda m, x: [0]),
    "multicast_ptr": (lambda m, tensor, handle: [handle.multicast_ptr], lambda m, x: [0]),
    "buffer_ptrs": (lambda m, tensor, handle: [len(handle.buffer_ptrs), handle.buffer_ptrs[m.rank] == tensor.data_ptr(),
                                               len(set(handle.buffer_ptrs))],
                    lambda m, x: [m.size, True, m.size]),
    "signal_pad_ptrs": (lambda m, tensor, handle: [len(handle.signal_pad_ptrs)] + [
        handle.get_signal_pad(peer).data_ptr() == handle.signal_pad_ptrs[peer] for peer in range(m.size)],
        lambda m, x: [m.size] + [True] * m.size),
    "buffer_ptrs_dev": (lambda m, tensor, handle: [at(handle.buffer_ptrs_dev, m.size) == handle.buffer_ptrs],
                        lambda m, x: [True]),
    "signal_pad_ptrs_dev": (lambda m, tensor, handle: [at(handle.signal_pad_ptrs_dev, m.size)
                                                       == handle.signal_pad_ptrs], lambda m, x: [True]),
}


@scenes(*[f"handle_{name}" for name in SIMPLE])
def simple(check, name):
    of_handle(check, *SIMPLE[name.removeprefix("handle_")])


@pair
def handle_get_buffer(check):
    of_handle(check, lambda m, tensor, handle: [handle.get_buffer(peer, tensor.shape, tensor.dtype)
                                                for peer in range(m.size)], lambda m, x: list(m.bits(x)))
    of_handle(check, lambda m, tensor, handle: [
        handle.get_buffer(m.right, [tensor.numel() * 2 - 1], torch.bfloat16, 1)], lambda m, x: [
            m.bits(x)[m.right].flatten().view(torch.bfloat16)[1:]])
    of_handle(check, lambda m, tensor, handle: [handle.get_buffer(m.rank, (1,), tensor.dtype).data_ptr()
                                                == tensor.data_ptr()], lambda m, x: [True])
    made = handles(4, 6)
    for sizes, dtype, more in (((25,), torch.float32, ()), ((24,), torch.float32, (1,)), ((13,), torch.float64, ())):
        check.wrong(RuntimeError, lambda m: made(m).get_buffer(0, sizes, dtype, *more))
    for arguments in (("a", (1,), torch.float32), (0, (1,), 3), (0, 1.5, torch.float32), (0, (1,), torch.float32, "a")):
        check.wrong(TypeError, lambda m: made(m).get_buffer(*arguments))
    for peer in (-1, Here.size):
        check.wrong(RuntimeError, lambda m: made(m).get_buffer(peer, (1,), torch.float32), theirs=False)


def handles(*shape):
    """Both sides' handles: made once, by name of the side."""
    made = {}
    for side in (Here.theirs, Here.ours):
        if side.has("handle_get_buffer"):
            made[id(side)] = side.handle(random(*shape))
            dist.barrier()
    return lambda m: made[id(m)][1]


@pair
def handle_get_remote_tensor(check):
    of_handle(check, lambda m, tensor, handle: [handle.get_remote_tensor(peer, tensor.shape, tensor.dtype)
                                                for peer in range(m.size)], lambda m, x: list(m.bits(x)))
    made = handles(4, 6)
    check.wrong(RuntimeError, lambda m: made(m).get_remote_tensor(0, (25,), torch.float32))
    check.wrong(TypeError, lambda m: made(m).get_remote_tensor(0, (1,), 3))


@pair
def handle_get_signal_pad(check):
    words = Here.ours.get_signal_pad_size() // 4
    of_handle(check, lambda m, tensor, handle: [
        handle.get_signal_pad(peer)[m.size:] for peer in range(m.size)], lambda m, x: [  # after the barrier's word
            torch.zeros(words - m.size, dtype=torch.uint32, device=Here.device)] * m.size)
    of_handle(check, lambda m, tensor, handle: [
        handle.get_signal_pad(m.right, (2, 3), torch.int64, 40), handle.get_signal_pad(m.right, (5,), torch.int16, 99),
        handle.get_signal_pad(m.rank, (1,), torch.int16, 5).data_ptr() - handle.signal_pad_ptrs[m.rank]],
        lambda m, x: [torch.zeros(2, 3, dtype=torch.int64, device=Here.device),
                      torch.zeros(5, dtype=torch.int16, device=Here.device), 10])
    made = handles(4)
    check.wrong(RuntimeError, lambda m: made(m).get_signal_pad(0, (words + 1,)))
    check.wrong(RuntimeError, lambda m: made(m).get_signal_pad(0, (words,), torch.uint32, 1))
    check.wrong(TypeError, lambda m: made(m).get_signal_pad(0, (1,), 3))


@pair
def handle_barrier(check):
    """Writes of a peer before the barrier are visible after it."""
    def turns(m, tensor, handle):
        seen = []
        for turn in range(4):
            handle.get_buffer(m.right, (1,), torch.float32).fill_(turn)
            handle.barrier(channel=turn % 3)
            seen.append(tensor.flatten()[:1].clone())
            handle.barrier(turn % 3, 20000)
        return seen
    of_handle(check, turns, lambda m, x: [torch.full((1,), float(turn), device=Here.device) for turn in range(4)])
    made = handles(4)
    for channel in (-1, 1 << 20):
        check.wrong(RuntimeError, lambda m: made(m).barrier(channel))
    check.wrong(TypeError, lambda m: made(m).barrier("a"))


@scenes("handle_put_signal", "handle_wait_signal")
def handle_signals(check, name):
    def ring(m, tensor, handle):
        seen = []
        for turn in range(4):
            handle.get_buffer(m.right, (1,), torch.float32).fill_(turn)
            handle.put_signal(m.right, channel=turn % 2)
            handle.wait_signal(m.left, channel=turn % 2)
            seen.append(tensor.flatten()[:1].clone())
            handle.barrier(channel=2)
        return seen + [int(handle.get_signal_pad(m.rank).view(torch.int32)[m.size:].abs().sum())]
    of_handle(check, ring, lambda m, x: [
        torch.full((1,), float(turn), device=Here.device) for turn in range(4)] + [0])
    made = handles(4)
    call = name.removeprefix("handle_")
    for channel in (-1, 1 << 20):
        check.wrong(RuntimeError, lambda m: getattr(made(m), call)(0, channel))
    check.wrong(TypeError, lambda m: getattr(made(m), call)("a"))
    for peer in (-1, Here.size):
        check.wrong(RuntimeError, lambda m: getattr(made(m), call)(peer), theirs=False)


@scenes("_rendezvous", "_barrier", "handle_boxed")
def boxed(check, name):
    """Returns the arguments and results of the operators for tests."""
    if not (Here.gpu or Here.registry):
        made = Here.ours.handle(random(4))[1]
        check.wrong(NotImplementedError, lambda m: made.boxed(), theirs=False)
        return
    def call(m):
        tensor = m.symmetric(random(8))
        inner = torch.ops.symm_mem._rendezvous(tensor, m.group)
        torch.ops.symm_mem._barrier(inner)
        torch.ops.symm_mem._barrier(m.rendezvous(tensor, m.group).boxed())
        return [type(inner).__name__]
    check.same(call)


# --- Static functions ---------------------------------------------------------------------------------

@pair
def handle_empty_strided_p2p(check):
    for shape, strides in (((4, 6), (6, 1)), ((4, 6), (1, 4)), ((3,), (1,)), ((2, 3, 4), (4, 8, 1))):
        values = random(*shape)

        def call(m):
            tensor = m.handle_empty_strided_p2p(shape, strides, torch.float32, Here.device, m.group).copy_(values)
            return [tensor, tensor.stride(), m.handle_rendezvous(tensor).world_size]
        check.same(call, lambda m: [values, *strides, m.size])
    for number in (1000, 1001):
        def again(m):
            own = number + 10 * (m is Here.ours) + 20 * (m is Here.part)
            return m.handle_empty_strided_p2p((8,), (1,), torch.float32, Here.device, m.group, own).fill_(2)
        for _ in range(2):  # the same memory the second time
            check.same(again, lambda m: torch.full((8,), 2., device=Here.device))
    held = []

    def twice(m):
        """Called while the first tensor is alive."""
        for _ in range(2):
            held.append(m.handle_empty_strided_p2p((8,), (1,), torch.float32, Here.device, m.group,
                                                   5000 + (m is Here.ours)))
    check.wrong(RuntimeError, twice)
    check.wrong(TypeError, lambda m: m.handle_empty_strided_p2p((8,), (1,), 3, Here.device, m.group))
    check.wrong(RuntimeError, lambda m: m.handle_empty_strided_p2p((8,), (1,), torch.float32, torch.device("meta"),
                                                                   m.group))


@pair
def handle_rendezvous(check):
    def call(m):
        tensor = m.symmetric(random(6))
        handle = m.handle_rendezvous(tensor, m.group)
        return [handle.rank, handle.world_size, m.handle_rendezvous(torch.ones(3, device=Here.device), m.group)]
    check.same(call, lambda m: [m.rank, m.size, None])
    check.wrong(RuntimeError, lambda m: m.handle_rendezvous(m.symmetric(random(4)), "no such group"))
    check.wrong(RuntimeError, lambda m: m.handle_rendezvous(m.symmetric(random(4))))


@pair
def handle_has_multicast_support(check):
    for kind in (DeviceType.CPU, DeviceType.CUDA) if Here.gpu else (DeviceType.CPU,):
        check.same(lambda m: m.handle_has_multicast_support(kind, 0), lambda m: False)


@pair
def handle_set_group_info(check):
    store = dist.distributed_c10d._get_default_store()

    def call(m):
        name = f"pairs-{'ours' if m is Here.ours else 'theirs'}-{Here.registry}"
        return m.handle_set_group_info(name, m.rank, m.size, store)
    check.same(call, lambda m: None, groups=False)


@pair
def handle_get_mempool_allocator(check):
    check.wrong(RuntimeError, lambda m: m.handle_get_mempool_allocator(torch.device("cpu")))
    if Here.gpu:
        check.same(lambda m: type(m.handle_get_mempool_allocator(Here.device)).__name__)
