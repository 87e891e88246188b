# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of gpu_pairs.py: products that are gathered before or scattered behind."""
import torch
import torch.distributed as dist

from gpu_pairs_frame import Here, Left, pair, random

FLOATS = (torch.float32, torch.bfloat16)
REFUSED = (RuntimeError, ValueError)  # PyTorch's product of 8-bit floats raises either, depending on the check


def moved(x, dim):
    """Returns the same values in the layout that avoids a copy."""
    return x.movedim(dim, 0).contiguous().movedim(0, dim)


@pair
def fused_all_gather_matmul(check):
    for dtype in FLOATS:
        for shape, dim in (((64, 256), 0), ((4, 32, 256), 0), ((4, 32, 256), 1), ((64, 256), 1), ((256, 128), 0),
                           ((2, 3, 8, 64), 2)):
            last, x = dim == len(shape) - 1, random(*shape, dtype=dtype)
            bs = [random(shape[-1] * (Here.size if last else 1), n, dtype=dtype) for n in (48, 128)]
            for each in (x, moved(x, dim)):
                check.same(lambda m: m.fused_all_gather_matmul(each, bs, dim, m.group),
                           lambda m: [m.joined(x, dim)] + [m.joined(x, dim).double() @ b.double() for b in bs],
                           groups=not last)
            check.same(lambda m: m.fused_all_gather_matmul(x, bs[:1], dim, m.group, return_A=False),
                       lambda m: [None, m.joined(x, dim).double() @ bs[0].double()], groups=not last)
    x, b = random(8, 16), random(16, 4)

    def call(m, a=x, bs=(b,), dim=0):
        return m.fused_all_gather_matmul(a, list(bs), dim, m.group)
    check.wrong(ValueError, lambda m: call(m, x[0]))
    check.wrong(ValueError, lambda m: call(m, dim=2))
    check.wrong(ValueError, lambda m: call(m, dim=-3))
    check.wrong(ValueError, lambda m: call(m, bs=[b[0]]))
    check.wrong(ValueError, lambda m: call(m, bs=[b.view(4, 4, 4)]))
    check.wrong(RuntimeError, lambda m: call(m, bs=[random(15, 4)]))
    check.wrong(RuntimeError, lambda m: call(m, bs=[b.double()]))
    check.wrong(RuntimeError, lambda m: m.fused_all_gather_matmul(x, [b], 0, "no such group"))


@pair
def fused_matmul_reduce_scatter(check):
    for dtype in FLOATS:
        for shape, dim in (((96, 64), 0), ((4, 24, 64), 1), ((12, 8, 64), 0), ((240, 128), 0), ((24, 64), 1),
                           ((3, 8, 64), 2)):
            x, b = random(*shape, dtype=dtype), random(shape[-1], 96, dtype=dtype)
            for op, of in (("sum", torch.sum), ("avg", torch.mean)):
                for each in (x, moved(x, dim)):
                    check.same(lambda m: m.fused_matmul_reduce_scatter(each, b, op, dim, m.group),
                               lambda m: m.part(of(product(m, x, b), 0), dim))
    x, b = random(4 * Here.size, 16), random(16, 4)

    def call(m, a=x, b=b, op="sum", dim=0):
        return m.fused_matmul_reduce_scatter(a, b, op, dim, m.group)
    check.wrong(ValueError, lambda m: call(m, x[0]))
    check.wrong(ValueError, lambda m: call(m, dim=2))
    check.wrong(ValueError, lambda m: call(m, dim=-1))
    check.wrong(ValueError, lambda m: call(m, b=b[0]))
    check.wrong(ValueError, lambda m: call(m, op="max"))
    check.wrong(RuntimeError, lambda m: call(m, b=random(15, 4)))
    check.wrong(RuntimeError, lambda m: call(m, b=b.double()))
    check.wrong(RuntimeError, lambda m: m.fused_matmul_reduce_scatter(x, b, "sum", 0, "no such group"))


def product(m, x, b):
    """Returns the matrices of all members, in float64."""
    return torch.stack([left @ right for left, right in zip(m.gathered(x), m.gathered(b))])


# --- Of 8-bit floats ----------------------------------------------------------------------------------

def narrow(*shape):
    return random(*shape).to(torch.float8_e4m3fn)


def left_out():
    if Here.gpu and torch.cuda.get_device_capability() < (8, 9):
        raise Left("this GPU has no 8-bit floats")


def scales(rows, columns, by_row):
    """Returns the scales of a and b. A single number is the same on all ranks."""
    a = torch.rand((*rows, 1) if by_row else (), device=Here.device) + .5
    if not by_row:
        dist.broadcast(a, 0)
    return a, torch.rand((1, columns) if by_row else (), device=Here.device) + .5


# PyTorch's product for the CPU does not support scales of rows: Weft's results are compared with float64 there.

def out_dtypes(by_row):
    return (torch.bfloat16,) if by_row or Here.gpu else (torch.bfloat16, torch.float32)


@pair
def fused_all_gather_scaled_matmul(check):
    left_out()
    for by_row in (False, True):
        for shape, dim in (((64, 128), 0), ((2, 32, 128), 0), ((2, 32, 128), 1)):
            x, b = narrow(*shape), narrow(96, 128).t()
            a_scale, b_scale = scales(shape[:-1], 96, by_row)
            for dtype in out_dtypes(by_row):
                def meant(m):
                    a = m.joined(x, dim).double() * (m.joined(a_scale, dim) if by_row else a_scale).double()
                    return [m.joined(x, dim), a @ (b.double() * b_scale.double())]
                check.same(lambda m: m.fused_all_gather_scaled_matmul(
                    x, [b], a_scale, [b_scale], dim, m.group, [None], [None], [dtype], [False]), meant,
                    theirs=Here.gpu or not by_row)
    one, x = torch.ones((), device=Here.device), narrow(16, 128)

    def call(m, a=x, bs=(b,), scale=one, dim=0, biases=(None,), results=(None,), dtypes=(torch.bfloat16,),
             fast=(False,)):
        return m.fused_all_gather_scaled_matmul(a, list(bs), scale, [one], dim, m.group, list(biases), list(results),
                                                list(dtypes), list(fast))
    for lists in ({"biases": ()}, {"results": (None, None)}, {"dtypes": (None, None)}, {"fast": ()}):
        check.wrong(ValueError, lambda m: call(m, **lists))
    check.wrong(ValueError, lambda m: call(m, scale=torch.ones(3, 1, device=Here.device)))
    check.wrong(ValueError, lambda m: call(m, dim=2))
    check.wrong(ValueError, lambda m: call(m, a=x[0]))
    check.wrong(ValueError, lambda m: call(m, bs=[b[0]]))
    check.wrong(REFUSED, lambda m: call(m, bs=[narrow(32, 64).t()]))
    check.wrong(REFUSED, lambda m: call(m, a=random(16, 128)))


@pair
def fused_scaled_matmul_reduce_scatter(check):
    left_out()
    for by_row in (False, True):
        for shape, dim in (((48 * Here.size, 128), 0), ((12 * Here.size, 4, 128), 0), ((3, 16 * Here.size, 128), 1)):
            x, b = narrow(*shape), narrow(96, 128).t()
            a_scale, b_scale = scales(shape[:-1], 96, by_row)
            for dtype, (op, of) in ((dtype, of) for dtype in out_dtypes(by_row)
                                    for of in (("sum", torch.sum), ("avg", torch.mean))):
                def meant(m):
                    a = m.gathered(x) * (m.gathered(a_scale) if by_row else a_scale.double())
                    scale = m.gathered(b_scale).view(m.size, 1, -1)
                    products = [left @ right for left, right in zip(a, m.gathered(b) * scale)]
                    return m.part(of(torch.stack(products), 0), dim)
                check.same(lambda m: m.fused_scaled_matmul_reduce_scatter(
                    x, b, a_scale, b_scale, op, dim, dim, m.group, [*shape[:-1], 96], None, None, dtype), meant,
                    theirs=Here.gpu or not by_row)
    one, x = torch.ones((), device=Here.device), narrow(16 * Here.size, 128)

    def call(m, a=x, b=b, scale=one, op="sum", before=0, after=0):
        return m.fused_scaled_matmul_reduce_scatter(a, b, scale, one, op, before, after, m.group, [len(x), 96], None,
                                                    None, torch.bfloat16)
    check.wrong(ValueError, lambda m: call(m, a=x[0]))
    check.wrong(ValueError, lambda m: call(m, after=2))
    check.wrong(ValueError, lambda m: call(m, before=2))
    check.wrong(ValueError, lambda m: call(m, b=b[0]))
    check.wrong(ValueError, lambda m: call(m, op="max"))
    check.wrong(ValueError, lambda m: call(m, scale=torch.ones(3, 1, device=Here.device)),
                theirs=Here.gpu or Here.registry)
    check.wrong(REFUSED, lambda m: call(m, b=narrow(32, 64).t()), theirs=Here.gpu)


@pair
def async_input_mm(check):
    """It has no memory of peers: words of the stream tell it what has arrived."""
    if not Here.gpu:
        raise Left("a kernel of PyTorch's for one kind of GPU; no memory of peers is in it")
    if torch.cuda.get_device_capability() != (9, 0):
        raise Left("this GPU is not of the kind that PyTorch's kernel is for")
    a, b = random(512, 256, dtype=torch.bfloat16), random(128, 256, dtype=torch.bfloat16).t()

    def call(m):
        words = torch.zeros(4, dtype=torch.uint32, device=Here.device)
        m.memset32_(words, 0, 1, 4)
        return torch.ops.symm_mem._async_input_mm(a, b, words, 1)
    check.same(call, lambda m: a.double() @ b.double(), groups=False)
