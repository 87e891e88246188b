# SPDX-License-Identifier: BSD-3-Clause
"""Scenes of gpu_backend.py: torch.ops.symm_mem, against float64."""
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

from gpu_frame import (DTYPES, Here, TOLERANCE, empty, gathered, gpu_scene, near, poisoned, random, same,
                       same_on_all, scene, symmetric)


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


@gpu_scene
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


@gpu_scene
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


@gpu_scene
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


@gpu_scene
def workspace():
    first = symm_mem.get_symm_mem_workspace(Here.group, 1 << 20)
    grown = symm_mem.get_symm_mem_workspace(Here.group, 256 << 20)
    assert grown.buffer_size >= 256 << 20
    first.barrier()
    grown.barrier()
    assert symm_mem.get_symm_mem_workspace(Here.group, 100).buffer_ptrs == grown.buffer_ptrs
