#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's symmetric memory on real GPUs, with Weft as its backend or with PyTorch's own:

    torchrun --standalone --nproc-per-node 4 tests/python/gpu_backend.py --backend WEFT --out weft.json
    torchrun --standalone --nproc-per-node 4 tests/python/gpu_backend.py --backend CUDA --out cuda.json
    python tests/python/gpu_backend.py --compare weft.json cuda.json

Every scene runs on all ranks, with data that is new each time, outputs poisoned before, and results
compared with float64. --compare says for each result whether Weft's is as near to the truth. Scenes
of weft_ in their name need Weft. oshrun -n 4 in place of torchrun does as well.
"""
import argparse
import gc
import json
import pathlib
import sys
import threading
import time
import traceback

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from torch._C._autograd import DeviceType
from torch._C._distributed_c10d import _SymmetricMemory

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import job  # noqa: E402

DTYPES = (torch.float32, torch.bfloat16)
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
SCENES, ERRORS = [], {}


def scene(function):
    SCENES.append(function)
    return function


# --- Places and data ----------------------------------------------------------------------------------

class Here:
    """This rank; filled in by main."""


def setup(backend):
    Here.rank, Here.size = job.place()
    Here.device = torch.device("cuda", Here.rank % torch.cuda.device_count())
    torch.cuda.set_device(Here.device)
    if backend == "WEFT":
        import weft.torch
        weft.torch.install()
    Here.backend = backend
    Here.world = job.start("nccl", seconds_max=500)
    Here.group = Here.world.group_name
    dist.barrier()


def empty(*shape, dtype=torch.float32):
    return symm_mem.empty(*shape, dtype=dtype, device=Here.device)


def symmetric(values):
    """A symmetric copy, and everybody's values in float64."""
    tensor = empty(*values.shape, dtype=values.dtype)
    assert symm_mem.rendezvous(tensor, Here.group) is not None
    tensor.copy_(values)
    return tensor, gathered(values)


def gathered(values):
    """(ranks, *shape) in float64, by NCCL."""
    parts = [torch.empty_like(values) for _ in range(Here.size)]
    dist.all_gather(parts, values.contiguous())
    return torch.stack([part.double() for part in parts])


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=Here.device).to(dtype)


def poisoned(*shape, dtype=torch.float32):
    return torch.full(shape, float("nan"), dtype=torch.float32, device=Here.device).to(dtype)


def near(name, got, wanted, tolerance):
    """The error in units of the largest wanted value, kept under this name."""
    assert got.shape == wanted.shape, f"{name}: shape {tuple(got.shape)}, wanted {tuple(wanted.shape)}"
    error = (got.double() - wanted).abs().max().item() / max(wanted.abs().max().item(), 1e-30)
    ERRORS[name] = max(ERRORS.get(name, 0.0), error if error == error else float("inf"))
    assert error <= tolerance, f"{name}: error {error:.3g}, at most {tolerance:.3g}"


def same(got, wanted, what=""):
    assert torch.equal(got, wanted), f"{what}: got {got.flatten()[:8]}, wanted {wanted.flatten()[:8]}"


def same_on_all(tensor):
    """Bit by bit."""
    bits = tensor.contiguous().view(torch.uint8)
    parts = [torch.empty_like(bits) for _ in range(Here.size)]
    dist.all_gather(parts, bits)
    for rank, part in enumerate(parts):
        same(part, bits, f"bits of rank {rank}")


def raises(kind, text, function):
    try:
        function()
    except kind as error:
        assert text in str(error), f"error says {error!s}, without {text!r}"
        return
    raise AssertionError(f"no {kind.__name__} with {text!r}")


class _Array:
    """Device memory as NumPy's interface describes it."""

    def __init__(self, address, count):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<i8", "data": (address, False),
                                         "version": 3}


# --- Tensors and handles ------------------------------------------------------------------------------

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
    for address, wanted in ((h.buffer_ptrs_dev, h.buffer_ptrs), (h.signal_pad_ptrs_dev, h.signal_pad_ptrs)):
        array = torch.as_tensor(_Array(address, Here.size), device=Here.device)
        assert array.tolist() == list(wanted), "the device's array"


@scene
def fresh_memory_is_zero():
    for numel in (1, 1000, 1 << 22):
        tensor = empty(numel)
        h = symm_mem.rendezvous(tensor, Here.group)
        assert not tensor.any() and not h.get_signal_pad(Here.rank).any()
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
    """By one rank alone: no other is asked."""
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
    torch.cuda.synchronize()
    dist.barrier()
    assert not h.get_signal_pad(Here.rank).any(), "pads are zero behind"
    raises(RuntimeError, "channel for barrier(), put_signal() and wait_signal()", lambda: h.barrier(-1))
    raises(RuntimeError, "maximum supported channel", lambda: h.barrier(1 << 20))


@scene
def signals_order_data():
    """A message a hop, many times around: each rank adds one."""
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


@scene
def channels_on_two_streams():
    h = symm_mem.rendezvous(empty(1), Here.group)
    streams = [torch.cuda.Stream() for _ in range(2)]
    for _ in range(50):
        for channel, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                h.barrier(channel)
    torch.cuda.synchronize()


@scene
def empty_is_local():
    """Each rank makes as many as it likes before and between those that are shared."""
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
            torch.cuda.synchronize()
            dist.barrier()
            assert not h.get_signal_pad(Here.rank).any()
            del tensor, h
    finally:
        symm_mem.set_signal_pad_size(default)


# --- Groups -------------------------------------------------------------------------------------------

@scene
def subgroup_alone():
    """Its members meet while all others wait in a collective call."""
    ranks = list(range(Here.size))[:max(Here.size // 2, 1)]
    group = dist.new_group(ranks)
    if Here.rank in ranks:
        tensor = empty(100)
        symm_mem.rendezvous(tensor, group).barrier()
    dist.barrier()


@scene
def subgroups():
    pairs = [[r, r + 1] for r in range(0, Here.size - 1, 2)]
    groups = [dist.new_group(pair) for pair in pairs]
    for pair, group in zip(pairs, groups):
        values = random(3000)
        everyone = gathered(values)
        if Here.rank in pair:
            tensor = empty(3000)
            h = symm_mem.rendezvous(tensor, group)
            tensor.copy_(values)
            assert h.rank == pair.index(Here.rank)
            result = torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", group.group_name)
            near("subgroups", result, everyone[pair].sum(0), 1e-5)


@scene
def overlapping_subgroups():
    """One tensor in several groups, and ranks in two of them."""
    chains = [[r, r + 1] for r in range(Here.size - 1)]
    groups = [dist.new_group(chain) for chain in chains]
    tensor = empty(2000)
    h = symm_mem.rendezvous(tensor, Here.group)
    tensor.fill_(Here.rank)
    h.barrier()
    for chain, group in zip(chains, groups):
        if Here.rank in chain:
            inner = symm_mem.rendezvous(tensor, group)
            inner.barrier(1)
            for member, rank in enumerate(chain):
                assert (inner.get_buffer(member, (2000,), torch.float32) == rank).all()
            inner.barrier(1)
    h.barrier()


@scene
def names_of_groups_again():
    for _ in range(3):
        group = dist.new_group(list(range(Here.size)))
        tensor = empty(64)
        symm_mem.rendezvous(tensor, group).barrier()
        torch.cuda.synchronize()
        dist.barrier()
        dist.destroy_process_group(group)


@scene
def weft_groups_at_once_in_threads():
    groups = [dist.new_group(list(range(Here.size))) for _ in range(4)]
    tensors = [empty(1000).fill_(i) for i in range(4)]
    torch.cuda.synchronize()
    failed = []

    def meet(i):
        try:
            torch.cuda.set_device(Here.device)
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                h = symm_mem.rendezvous(tensors[i], groups[i])
                h.barrier()
                assert (h.get_buffer((Here.rank + 1) % Here.size, (1000,), torch.float32) == i).all()
                h.barrier()
        except Exception as error:
            failed.append(error)
    threads = [threading.Thread(target=meet, args=(i,)) for i in torch.randperm(4).tolist()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


# --- Operators ----------------------------------------------------------------------------------------

@scene
def one_shot_all_reduce():
    op = torch.ops.symm_mem
    for dtype in DTYPES:
        for numel in (8, 4096, 100000, 1 << 20):
            tensor, everyone = symmetric(random(numel, dtype=dtype))
            wanted, name = everyone.sum(0), f"one_shot_all_reduce {dtype} {numel}"
            result = op.one_shot_all_reduce(tensor, "sum", Here.group)
            near(name, result, wanted, TOLERANCE[dtype])
            same_on_all(result)
            out = poisoned(numel, dtype=dtype)
            op.one_shot_all_reduce_out(tensor, "sum", Here.group, out)
            near(name + " out", out, wanted, TOLERANCE[dtype])
            values = random(numel, dtype=dtype)
            wanted = gathered(values).sum(0)
            near(name + " copy", op.one_shot_all_reduce_copy(tensor, values, "sum", Here.group), wanted,
                 TOLERANCE[dtype])
            out = poisoned(numel, dtype=dtype)
            op.one_shot_all_reduce_copy_out(tensor, values, "sum", Here.group, out)
            near(name + " copy_out", out, wanted, TOLERANCE[dtype])


@scene
def two_shot_all_reduce():
    op = torch.ops.symm_mem
    for dtype in DTYPES:
        for numel in (4096, 1 << 20, 1 << 24):
            tensor, everyone = symmetric(random(numel, dtype=dtype))
            op.two_shot_all_reduce_(tensor, "sum", Here.group)
            near(f"two_shot_all_reduce_ {dtype} {numel}", tensor, everyone.sum(0), TOLERANCE[dtype])
            same_on_all(tensor)
            if Here.size in (2, 4, 8):
                tensor, everyone = symmetric(random(numel, dtype=dtype))
                out = poisoned(numel, dtype=dtype)
                op.two_shot_all_reduce_out(tensor, "sum", Here.group, out)
                near(f"two_shot_all_reduce_out {dtype} {numel}", out, everyone.sum(0), TOLERANCE[dtype])


@scene
def reduce_scatter_out():
    if Here.size not in (2, 4, 8):
        return
    for dtype in DTYPES:
        tensor, everyone = symmetric(random(4096 * Here.size, dtype=dtype))
        out = poisoned(4096, dtype=dtype)
        torch.ops.symm_mem.reduce_scatter_out(tensor, Here.group, False, out)
        near(f"reduce_scatter_out {dtype}", out, everyone.sum(0).chunk(Here.size)[Here.rank], TOLERANCE[dtype])
        tensor, everyone = symmetric(random(64, 128 * Here.size, dtype=dtype))
        out = poisoned(64, 128, dtype=dtype)
        torch.ops.symm_mem.reduce_scatter_out(tensor, Here.group, True, out)
        near(f"reduce_scatter_out last dim {dtype}", out, everyone.sum(0).chunk(Here.size, 1)[Here.rank],
             TOLERANCE[dtype])


@scene
def low_contention():
    def wait(tensor):
        return torch.ops._c10d_functional.wait_tensor(tensor)
    op = torch.ops.symm_mem
    for is_symmetric in (True, False):
        values = random(64 * Here.size, 512)
        everyone = gathered(values)
        tensor = symmetric(values)[0] if is_symmetric else values
        near("low_contention_all_gather", wait(op._low_contention_all_gather(tensor, Here.group)),
             everyone.flatten(0, 1), 0)
        for name, wanted in (("sum", everyone.sum(0)), ("avg", everyone.mean(0))):
            got = wait(op._low_contention_reduce_scatter(tensor, name, Here.group))
            near(f"low_contention_reduce_scatter {name}", got, wanted.chunk(Here.size)[Here.rank], 1e-5)


@scene
def get_remote_tensors():
    tensor, everyone = symmetric(random(32, 16))
    symm_mem.rendezvous(tensor, Here.group).barrier()
    for peer, remote in enumerate(torch.ops.symm_mem.get_remote_tensors(tensor, Here.group)):
        same(remote.double(), everyone[peer])
    symm_mem.rendezvous(tensor, Here.group).barrier()


@scene
def words_by_streams():
    words = empty(16, dtype=torch.uint32)
    h = symm_mem.rendezvous(words, Here.group)
    peer = (Here.rank + 1) % Here.size
    h.barrier()
    torch.ops.symm_mem.stream_write_value32_(h.get_buffer(peer, (16,), torch.uint32), 3, 7 + Here.rank)
    torch.ops.symm_mem.memset32_(h.get_buffer(peer, (16,), torch.uint32), 8, 5, 4)
    h.barrier()
    left = (Here.rank - 1) % Here.size
    assert words.tolist() == [0] * 3 + [7 + left] + [0] * 4 + [5] * 4 + [0] * 4, words.tolist()
    h.barrier()


@scene
def all_gather_matmul():
    for shape, dim in (((64, 256), 0), ((4, 32, 256), 0), ((4, 32, 256), 1), ((64, 256), 1), ((1024, 512), 0)):
        for dtype in DTYPES:
            shard = random(*shape, dtype=dtype)
            inner = shape[-1] * (Here.size if dim == len(shape) - 1 else 1)
            bs = [random(inner, n, dtype=dtype) for n in (128, 64)]
            full = torch.cat(list(gathered(shard)), dim)
            a, outs = torch.ops.symm_mem.fused_all_gather_matmul(shard, bs, dim, Here.group)
            near("fused_all_gather_matmul A", a, full, 0)
            tolerance = 5e-2 if dtype == torch.bfloat16 else 1e-2
            for b, out in zip(bs, outs):
                near(f"fused_all_gather_matmul {dtype} {shape} {dim}", out, full @ b.double(), tolerance)
    a, outs = torch.ops.symm_mem.fused_all_gather_matmul(shard, bs, 0, Here.group, return_A=False)
    assert a is None and len(outs) == 2


@scene
def matmul_reduce_scatter():
    for shape, dim in (((256, 64), 0), ((4, 64, 64), 1), ((8, 64, 64), 0), ((2048, 512), 0)):
        for dtype in DTYPES:
            for op in ("sum", "avg"):
                a, b = random(*shape, dtype=dtype), random(shape[-1], 96, dtype=dtype)
                product = gathered(a) @ gathered(b) if a.dim() == 2 else torch.stack(
                    [x @ y for x, y in zip(gathered(a), gathered(b))])
                wanted = product.sum(0) if op == "sum" else product.mean(0)
                got = torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b, op, dim, Here.group)
                near(f"fused_matmul_reduce_scatter {op} {dtype} {shape} {dim}", got,
                     wanted.chunk(Here.size, dim)[Here.rank], 5e-2 if dtype == torch.bfloat16 else 1e-2)


def _fp8(*shape, by_row):
    """Values in e4m3, their scale, and what they mean in float64."""
    values = random(*shape)
    top = values.abs().amax(-1, keepdim=True) if by_row else values.abs().amax()
    scale = (top / 448).float()
    fp8 = (values / scale).to(torch.float8_e4m3fn)
    return fp8, scale, fp8.double() * scale.double()


def _columns(*shape, by_row):
    """The right side of a scaled product: column-major."""
    fp8, scale, meant = _fp8(*reversed(shape), by_row=by_row)
    return fp8.t(), scale.t() if by_row else scale, meant.t()


@scene
def all_gather_scaled_matmul():
    if torch.cuda.get_device_capability() < (8, 9):
        return
    for by_row in (False, True):
        for shape, dim in (((256, 512), 0), ((2, 128, 512), 1)):
            a, a_scale, a_means = _fp8(*shape, by_row=by_row)
            if not by_row:  # one scale for all ranks
                dist.broadcast(a_scale, 0)
                a_means = a.double() * a_scale.double()
            b, b_scale, b_means = _columns(512, 256, by_row=by_row)
            full = torch.cat(list(gathered(a_means)), dim)
            got, outs = torch.ops.symm_mem.fused_all_gather_scaled_matmul(
                a, [b], a_scale, [b_scale], dim, Here.group, [None], [None], [torch.bfloat16], [False])
            assert list(got.shape) == list(full.shape)
            near(f"fused_all_gather_scaled_matmul {'row' if by_row else 'tensor'} {shape}", outs[0],
                 full @ b_means, 2e-2)


@scene
def scaled_matmul_reduce_scatter():
    if torch.cuda.get_device_capability() < (8, 9):
        return
    for by_row in (False, True):
        for op in ("sum", "avg"):
            a, a_scale, a_means = _fp8(256 * Here.size, 512, by_row=by_row)
            b, b_scale, b_means = _columns(512, 256, by_row=by_row)
            products = torch.stack([x @ y for x, y in zip(gathered(a_means), gathered(b_means))])
            wanted = products.sum(0) if op == "sum" else products.mean(0)
            got = torch.ops.symm_mem.fused_scaled_matmul_reduce_scatter(
                a, b, a_scale, b_scale, op, 0, 0, Here.group, [256 * Here.size, 256], out_dtype=torch.bfloat16)
            near(f"fused_scaled_matmul_reduce_scatter {op} {'row' if by_row else 'tensor'}", got,
                 wanted.chunk(Here.size)[Here.rank], 3e-2)


@scene
def workspace():
    first = symm_mem.get_symm_mem_workspace(Here.group, 1 << 20)
    grown = symm_mem.get_symm_mem_workspace(Here.group, 256 << 20)
    assert grown.buffer_size >= 256 << 20
    first.barrier()
    grown.barrier()
    assert symm_mem.get_symm_mem_workspace(Here.group, 100).buffer_ptrs == grown.buffer_ptrs


# --- Memory pools -------------------------------------------------------------------------------------

@scene
def pool():
    with torch.cuda.use_mem_pool(symm_mem.get_mem_pool(Here.device)):
        for round in range(4):
            tensor = torch.randn(100000, device=Here.device)
            everyone = gathered(tensor)
            result = torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", Here.group)
            near("pool", result, everyone.sum(0), 1e-5)
            torch.cuda.synchronize()
            dist.barrier()
            del tensor, result


@scene
def pool_of_small_parts():
    """A pool that splits: tensors begin inside an allocation."""
    pool = torch.cuda.MemPool(symm_mem.get_mempool_allocator(Here.device))
    with torch.cuda.use_mem_pool(pool):
        tensors = [torch.full((1000,), 10. * Here.rank + i, device=Here.device) for i in range(5)]
    handles = [symm_mem.rendezvous(tensor, Here.group) for tensor in tensors]
    torch.cuda.synchronize()
    dist.barrier()
    peer = (Here.rank + 1) % Here.size
    for i, (tensor, h) in enumerate(zip(tensors, handles)):
        assert h.offset == tensor.data_ptr() - h.buffer_ptrs[Here.rank]
        assert (h.get_remote_tensor(peer, (1000,), torch.float32) == 10. * peer + i).all()
    assert any(h.offset for h in handles), "no tensor begins inside"
    torch.cuda.synchronize()
    dist.barrier()
    del tensors, handles
    del pool


# --- Graphs -------------------------------------------------------------------------------------------

def captured(function):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        function()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph


@scene
def graphs():
    tensor = empty(10000)
    h = symm_mem.rendezvous(tensor, Here.group)
    out = poisoned(10000)
    right, left = (Here.rank + 1) % Here.size, (Here.rank - 1) % Here.size

    def step():
        h.barrier(2)
        torch.ops.symm_mem.one_shot_all_reduce_out(tensor, "sum", Here.group, out)
        h.put_signal(right, 3)
        h.wait_signal(left, 3)
    graph = captured(step)
    for _ in range(30):
        values = random(10000)
        wanted = gathered(values).sum(0)
        tensor.copy_(values)
        out.fill_(float("nan"))
        graph.replay()
        near("graphs", out, wanted, 1e-5)


@scene
def graph_of_a_fused_product():
    shard, b = random(256, 512, dtype=torch.bfloat16), random(512, 128, dtype=torch.bfloat16)
    outs = []

    def step():
        outs[:] = torch.ops.symm_mem.fused_all_gather_matmul(shard, [b], 0, Here.group)[1]
    symm_mem.get_symm_mem_workspace(Here.group, 1 << 22)
    graph = captured(step)
    for _ in range(10):
        shard.copy_(random(256, 512, dtype=torch.bfloat16))
        full = gathered(shard).flatten(0, 1)
        outs[0].fill_(float("nan"))
        graph.replay()
        near("graph of fused_all_gather_matmul", outs[0], full @ b.double(), 5e-2)


@scene
def workspace_grows_in_no_graph():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        raises(RuntimeError, "graph capture", lambda: symm_mem.get_symm_mem_workspace(Here.group, 4 << 30))


@scene
def weft_graphs_forbid_little():
    """Frees do not end a capture; a rendezvous of new memory is refused, and does not either."""
    kept = empty(100)
    h = symm_mem.rendezvous(kept, Here.group)
    doomed = [empty(1000) for _ in range(3)]
    unknown = empty(1000)
    count = torch.zeros(1, device=Here.device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        count.add_(1)
        doomed.clear()
        raises(RuntimeError, "being captured", lambda: symm_mem.rendezvous(unknown, Here.group))
        h.barrier()
    for _ in range(5):
        graph.replay()
    assert count.item() == 5
    import weft.torch
    before = weft.torch.counters()["releases"]
    again = empty(10)
    assert weft.torch.counters()["releases"] >= before + 3, "what was freed in the capture is gone by now"
    del again


# --- What only NVSHMEM's backend has in PyTorch -------------------------------------------------------

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
    """Dispatch to experts, and back again: every row comes home."""
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


@scene
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

@scene
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
    if torch.cuda.device_count() > 1:
        other = torch.device("cuda", (Here.device.index + 1) % torch.cuda.device_count())
        raises(RuntimeError, "cannot be on", lambda: symm_mem.empty(10, device=other))
    raises(RuntimeError, "must be in [0", lambda: symm_mem.rendezvous(empty(1), Here.group).put_signal(Here.size))


@scene
def weft_memory_comes_back():
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    dist.barrier()
    free = torch.cuda.mem_get_info()[0]
    for _ in range(20):
        tensor = empty(1 << 28)
        symm_mem.rendezvous(tensor, Here.group).barrier()
        del tensor
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    dist.barrier()
    lost = free - torch.cuda.mem_get_info()[0]
    assert lost < 64 << 20, f"{lost >> 20} MiB are gone"


# --- Running ------------------------------------------------------------------------------------------

def run(function):
    """True if it went well on all ranks."""
    failed = None
    try:
        function()
        torch.cuda.synchronize()
    except Exception:
        failed = traceback.format_exc()
    told = [None] * Here.size
    dist.all_gather_object(told, failed)
    if Here.rank == 0:
        print(f"{'not ok' if any(told) else 'ok'} - {function.__name__}", flush=True)
        for rank, text in enumerate(told):
            if text:
                print(f"# rank {rank}: " + text.replace("\n", "\n#   "), flush=True)
    return not any(told)


def worst_errors():
    parts = [None] * Here.size
    dist.all_gather_object(parts, ERRORS)
    return {name: max(part.get(name, 0.0) for part in parts) for name in sorted(set().union(*parts))}


def compare(one, other):
    """Whether each of one's results is as near to float64 as the other's."""
    one, other = (json.loads(pathlib.Path(path).read_text()) for path in (one, other))
    worse = 0
    for name in sorted(set(one) & set(other)):
        ok = name.startswith("us ") or one[name] <= other[name] * 1.5 + 1e-6
        worse += not ok
        print(f"{'ok' if ok else 'not ok'} - {name}: {one[name]:.3g} against {other[name]:.3g}")
    print(f"# {len(set(one) - set(other))} results of the first alone, {len(set(other) - set(one))} of the second")
    return 1 if worse else 0


def arguments():
    parser = argparse.ArgumentParser(description="PyTorch's symmetric memory on real GPUs")
    parser.add_argument("--backend", choices=["WEFT", "CUDA"], default="WEFT")
    parser.add_argument("--only", default="", help="scenes with this in their name")
    parser.add_argument("--out", help="file for the errors found")
    parser.add_argument("--compare", nargs=2)
    return parser.parse_args()


def main():
    args = arguments()
    if args.compare:
        return compare(*args.compare)
    setup(args.backend)
    scenes = [s for s in SCENES if args.only in s.__name__ and
              (args.backend == "WEFT" or not s.__name__.startswith("weft_"))]
    good = [run(function) for function in scenes]
    errors = worst_errors()
    if Here.rank == 0:
        print(f"# {sum(good)} of {len(good)} scenes on {Here.size} GPUs, {args.backend}, torch {torch.__version__}")
        if args.backend == "WEFT":
            import weft.torch
            print(f"# {weft.torch.counters()}", flush=True)
        if args.out:
            pathlib.Path(args.out).write_text(json.dumps(errors, indent=1))
    job.end()
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
