# SPDX-License-Identifier: BSD-3-Clause
"""Scenes of gpu_backend.py: tensors, handles, signals, lifetimes."""
import gc
import threading
import time

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from torch._C._distributed_c10d import _SymmetricMemory

from gpu_frame import (ERRORS, Here, Array, empty, gpu_scene, near, raises, random, same, scene, stream,
                       symmetric, wait_for_gpu)


@scene
def handle():
    tensor = empty(1000, 3)
    assert tensor.is_contiguous() and tensor.data_ptr() % 16 == 0
    h = symm_mem.rendezvous(tensor, Here.group)
    assert (h.rank, h.world_size, h.device) == (Here.rank, Here.size, Here.device)
    assert h.buffer_size == 12000, h.buffer_size
    assert h.buffer_ptrs[Here.rank] == tensor.data_ptr()
    assert h.signal_pad_ptrs[Here.rank] == h.get_signal_pad(Here.rank).data_ptr()
    assert h.get_buffer(0, (3000,), torch.float32).untyped_storage().size() == 12000
    assert h.multicast_ptr == 0 or Here.backend == "CUDA"
    raises(RuntimeError, "exceeds the allocated size", lambda: h.get_buffer(0, (3001,), torch.float32))


@gpu_scene
def arrays_on_the_gpu():
    h = symm_mem.rendezvous(empty(10), Here.group)
    for address, wanted in ((h.buffer_ptrs_dev, h.buffer_ptrs), (h.signal_pad_ptrs_dev, h.signal_pad_ptrs)):
        array = torch.as_tensor(Array(address, Here.size), device=Here.device)
        assert array.data_ptr() == address and array.tolist() == list(wanted)


@scene
def fresh_memory_is_zero():
    for numel in (1, 1000, 1 << 22):
        tensor = empty(numel)
        h = symm_mem.rendezvous(tensor, Here.group)
        assert not tensor.any() and not h.get_signal_pad(Here.rank).view(torch.int32).any()
        tensor.fill_(1)
        h.get_signal_pad(Here.rank)
        del tensor, h


@scene
def peers_see_each_other():
    for round in range(20):
        tensor, everyone = symmetric(random(4097))
        h = symm_mem.rendezvous(tensor, Here.group)
        h.barrier()
        for peer in range(Here.size):
            same(h.get_buffer(peer, tensor.shape, tensor.dtype).double(), everyone[peer])
            same(h.get_remote_tensor(peer, tensor.shape, tensor.dtype).double(), everyone[peer])
        h.barrier()
        right = (Here.rank + 1) % Here.size
        h.get_buffer(right, (4097,), torch.float32).fill_(1000 * round + Here.rank)
        h.barrier()
        assert (tensor == 1000 * round + (Here.rank - 1) % Here.size).all()
        h.barrier()


@scene
def storage_offsets():
    whole = empty(64)
    part = whole[16:32]
    h = symm_mem.rendezvous(part, Here.group)
    whole.copy_(torch.arange(64.) + 100 * Here.rank)
    h.barrier()
    peer = (Here.rank + 1) % Here.size
    same(h.get_buffer(peer, (4,), torch.float32, 16), torch.arange(16., 20, device=Here.device) + 100 * peer)
    h.barrier()


@scene
def foreign_memory_is_none():
    """Called by one rank only: the other ranks do not take part."""
    if Here.rank == 0:
        other = torch.empty(100, device=Here.device)
        assert symm_mem.rendezvous(other, Here.group) is None
        calls = 1000 if Here.backend == "WEFT" else 2  # PyTorch's own warns each time
        began = time.perf_counter()
        for _ in range(calls):
            symm_mem.rendezvous(other, Here.group)
        ERRORS["us of a rendezvous that is None"] = (time.perf_counter() - began) * 1e6 / calls
    raises(ValueError, "not allocated from Symmetric Memory", lambda: torch.ops.symm_mem.get_remote_tensors(
        torch.empty(4, device=Here.device), Here.group))


@scene
def signals():
    h = symm_mem.rendezvous(empty(1), Here.group)
    right, left = (Here.rank + 1) % Here.size, (Here.rank - 1) % Here.size
    for channel in (0, 3, 7):
        for _ in range(50):
            h.put_signal(right, channel)
            h.wait_signal(left, channel)
    wait_for_gpu()
    dist.barrier()
    assert not h.get_signal_pad(Here.rank).view(torch.int32).any(), "pads are zero behind"
    raises(RuntimeError, "channel for barrier(), put_signal() and wait_signal()", lambda: h.barrier(-1))
    raises(RuntimeError, "maximum supported channel", lambda: h.barrier(1 << 20))


@scene
def signals_order_data():
    """Sends a message around the ring many times: each rank adds one."""
    tensor = empty(1 << 16)
    h = symm_mem.rendezvous(tensor, Here.group)
    right, left = (Here.rank + 1) % Here.size, (Here.rank - 1) % Here.size
    to = h.get_buffer(right, tensor.shape, tensor.dtype)
    h.barrier()
    for lap in range(100):
        if Here.rank > 0 or lap > 0:
            h.wait_signal(left, 1)
        to.copy_(tensor + 1)
        h.put_signal(right, 1)
    if Here.rank == 0:
        h.wait_signal(left, 1)
        wanted = 100 * Here.size
        assert (tensor == wanted).all(), f"{tensor[:4]} after 100 laps, wanted {wanted}"
    h.barrier()


@gpu_scene
def channels_on_two_streams():
    h = symm_mem.rendezvous(empty(1), Here.group)
    streams = [torch.cuda.Stream() for _ in range(2)]
    for _ in range(50):
        for channel, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                h.barrier(channel)
    wait_for_gpu()


@scene
def empty_is_local():
    """Each rank makes any number of tensors before and between the shared ones."""
    mine = [empty(100 + i) for i in range(3 * Here.rank + 1)]
    tensor, everyone = symmetric(random(5000))
    mine += [empty(7) for _ in range(Here.size - Here.rank)]
    result = torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", Here.group)
    near("uneven", result, everyone.sum(0), 1e-5)
    assert all(not t.any() for t in mine)


@scene
def handles_outlive_tensors():
    tensor = empty(10000)
    h = symm_mem.rendezvous(tensor, Here.group)
    tensor.fill_(Here.rank)
    del tensor
    gc.collect()
    other = empty(10000).fill_(-1)
    h.barrier()
    for peer in range(Here.size):
        assert (h.get_buffer(peer, (10000,), torch.float32) == peer).all()
    h.barrier()
    del h, other


@scene
def freed_in_any_order():
    for round in range(5):
        tensors = [empty(1000 * (i + 1)) for i in range(6)]
        handles = [symm_mem.rendezvous(t, Here.group) for t in tensors]
        handles[-1].barrier()
        order = torch.randperm(6).tolist()
        for i in order:
            tensors[i] = None
            if (i + round) % 2:
                handles[i] = None
        threads = [threading.Thread(target=handles.pop) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del handles, tensors
        dist.barrier()


@scene
def persistent_allocations():
    def make(numel, alloc_id):
        return _SymmetricMemory.empty_strided_p2p((numel,), (1,), torch.float32, Here.device, Here.group, alloc_id)
    tensor = make(100, 42)
    address = tensor.data_ptr()
    h = _SymmetricMemory.rendezvous(tensor)
    raises(RuntimeError, "still active", lambda: make(100, 42))
    del tensor
    tensor = make(100, 42)
    assert tensor.data_ptr() == address
    assert _SymmetricMemory.rendezvous(tensor).buffer_ptrs == h.buffer_ptrs
    del tensor
    raises(RuntimeError, "different from the size", lambda: make(200, 42))


@scene
def pads_of_any_size():
    default = symm_mem.get_signal_pad_size()
    try:
        for nbytes in (1 << 20, 16 << 20, 1 << 30):
            symm_mem.set_signal_pad_size(nbytes)
            tensor = empty(1000)
            h = symm_mem.rendezvous(tensor, Here.group)
            last = nbytes // 4 // Here.size - 1
            h.barrier(last)
            h.barrier(min(last, 1000))
            assert h.get_signal_pad(Here.rank).numel() == nbytes // 4
            wait_for_gpu()
            dist.barrier()
            assert not h.get_signal_pad(Here.rank).view(torch.int32).any()
            del tensor, h
    finally:
        symm_mem.set_signal_pad_size(default)
