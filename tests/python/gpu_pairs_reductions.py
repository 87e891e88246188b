# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of gpu_pairs.py: gathers, scatters and reductions."""
import torch

from gpu_pairs_frame import Here, Left, meet, pair, poisoned, random, scenes

FLOATS = (torch.float32, torch.bfloat16)
MOVED = (torch.float32, torch.bfloat16, torch.int64, torch.uint8)
ASSERTED = "an assertion of PyTorch's, which CUDA tensors meet here, too"


# --- Of tensors in any memory -------------------------------------------------------------------------

def layouts(x):
    """Yields the same values, contiguous and not."""
    wide = x.new_zeros((*x.shape[:-1], 2 * x.shape[-1]))
    wide[..., ::2] = x
    return [x, wide[..., ::2]]


@pair
def all_gather(check):
    for dtype in MOVED:
        for shape, dim in (((6,), 0), ((4, 6), 0), ((4, 6), 1), ((3, 4, 6), -2), ((300, 64), 0)):
            for x in layouts(random(*shape, dtype=dtype)):
                check.same(lambda m: m.all_gather(x, dim, m.group), lambda m: m.joined(x, dim), strides=False)
    x = random(4, 6)
    for dim in (2, -3):
        check.wrong(ValueError, lambda m: m.all_gather(x, dim, m.group))
    wrong_groups(check, lambda m, group: m.all_gather(x, 0, group))


@pair
def reduce_scatter(check):
    for dtype in FLOATS:
        for shape, dim in (((12,), 0), ((12, 24), 0), ((12, 24), 1), ((3, 12, 8), -2), ((1200, 64), 0)):
            for x in layouts(random(*shape, dtype=dtype)):
                for op, of in (("sum", torch.sum), ("avg", torch.mean)):
                    check.same(lambda m: m.reduce_scatter(x, op, dim, m.group),
                               lambda m: m.part(of(m.gathered(x), 0), dim))
    x = random(12 * Here.size, 6)
    check.wrong(ValueError, lambda m: m.reduce_scatter(x, "sum", 2, m.group))
    check.wrong(ValueError, lambda m: m.reduce_scatter(x, "sub", 0, m.group))
    if Here.size > 1:
        check.wrong(ValueError, lambda m: m.reduce_scatter(x[1:], "sum", 0, m.group))
    wrong_groups(check, lambda m, group: m.reduce_scatter(x, "sum", 0, group))


@pair
def all_reduce(check):
    for dtype in FLOATS:
        for shape in ((), (7,), (4, 6), (300, 512)):
            for x in layouts(random(*shape, dtype=dtype)) if shape else [random(*shape, dtype=dtype)]:
                for op, of in (("sum", torch.sum), ("avg", torch.mean), ("max", torch.amax), ("min", torch.amin)):
                    check.same(lambda m: m.all_reduce(x, op, m.group), lambda m: of(m.gathered(x), 0))
    check.wrong(ValueError, lambda m: m.all_reduce(random(4), "sub", m.group))
    wrong_groups(check, lambda m, group: m.all_reduce(random(4), "sum", group))


@pair
def all_to_all(check):
    for dtype in MOVED:
        for rest in ((), (5,)):
            x = random(12, *rest, dtype=dtype)
            check.same(lambda m: m.all_to_all(x, m.group),
                       lambda m: torch.cat([each.chunk(m.size)[m.rank] for each in m.bits(x)]))
            y = random(sum(range(1, Here.size + 1)), *rest, dtype=dtype)
            check.same(lambda m: m.all_to_all(y, m.group, [m.rank + 1] * m.size, [r + 1 for r in range(m.size)]),
                       lambda m: torch.cat([each[sum(range(m.rank + 1)):][:m.rank + 1] for each in m.bits(y)]),
                       groups=False)
    check.wrong(ValueError, lambda m: m.all_to_all(x, m.group, [1] * Here.size, [13] * Here.size))
    check.wrong(ValueError, lambda m: m.all_to_all(x, m.group, [1] * Here.size))
    wrong_groups(check, lambda m, group: m.all_to_all(x, group))


def wrong_groups(check, call):
    check.wrong(RuntimeError, lambda m: call(m, "no such group"))
    if Here.gpu or Here.registry:
        check.wrong(TypeError, lambda m: call(m, 3), decided="what is no group is a TypeError, as in rendezvous()")
    else:
        check.wrong(TypeError, lambda m: call(m, 3), theirs=False)


# --- Of symmetric tensors -----------------------------------------------------------------------------

def into(m, name, x, out=None):
    """The call of a reduction of symmetric tensors."""
    if "copy" in name:
        arguments = (m.symmetric(torch.zeros_like(x)), x, "sum", m.group)
    else:
        arguments = (m.symmetric(x), "sum", m.group)
    return getattr(m, name)(*arguments) if out is None else getattr(m, name)(*arguments, out)


@scenes("one_shot_all_reduce", "one_shot_all_reduce_out", "one_shot_all_reduce_copy",
        "one_shot_all_reduce_copy_out", "two_shot_all_reduce_", "two_shot_all_reduce_out")
def reductions(check, name):
    has_out = name.endswith("_out")
    theirs = not (Here.gpu and name == "two_shot_all_reduce_out" and Here.size not in (2, 4, 8))
    for dtype in FLOATS if Here.gpu else FLOATS + (torch.float16,):
        for shape in ((8,), (4096,), (64, 100), (3, 4, 20), (1 << 18,), (0,)):
            x = random(*shape, dtype=dtype)
            refused = Here.gpu and x.numel() == 0 and name.startswith("two_shot")  # by PyTorch's own
            check.same(lambda m: into(m, name, x, poisoned(*shape, dtype=dtype) if has_out else None),
                       lambda m: m.gathered(x).sum(0), theirs=theirs and not refused)
    x = random(16)
    alike_on_all(check, lambda m: into(m, name, x, poisoned(16) if has_out else None))
    returned(check, name, x)
    wrong_reductions(check, name, x, poisoned(16) if has_out else None)


def alike_on_all(check, call):
    result = call(Here.ours)
    meet()
    parts = Here.ours.bits(result)
    check.is_true(all(torch.equal(part, result) for part in parts), "the ranks have different bits")


def returned(check, name, x):
    """The result is the tensor that the call writes to."""
    if name.endswith("_out"):
        out = poisoned(16)
        check.is_true(into(Here.ours, name, x, out) is out, "it does not return what it was to write to")
    elif name.endswith("_"):
        tensor = Here.ours.symmetric(x)
        check.is_true(getattr(Here.ours, name)(tensor, "sum", Here.ours.group) is tensor, "it returns another tensor")
    meet()


def wrong_reductions(check, name, x, out):
    copies = "copy" in name
    outs = () if out is None else (out,)

    def call(m, tensor, op="sum", group=None, outs=outs):
        group = m.group if group is None else group
        arguments = (tensor, x[:tensor.numel()]) if copies else (tensor,)
        return getattr(m, name)(*arguments, op, group, *outs)
    check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x), "avg"))
    check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x), "nonsense"))
    check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x)[::2]))
    check.wrong(RuntimeError, lambda m: call(m, x.clone()))  # private memory
    check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x), group="no such group"))
    check.wrong(TypeError, lambda m: call(m, m.symmetric(x), group=3),
                decided="what is no group is a TypeError, as in rendezvous()")
    if out is not None:
        check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x), outs=(poisoned(12),)))
        check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x), outs=(poisoned(16, dtype=torch.float64),)))
        check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x), outs=(poisoned(32)[::2],)))
    whole = random(16, dtype=torch.int64)
    outs = () if out is None else (torch.zeros_like(whole),)
    x = whole
    check.wrong(NotImplementedError, lambda m: call(m, m.symmetric(whole), outs=outs))


@pair
def reduce_scatter_out(check):
    theirs = not (Here.gpu and Here.size not in (2, 4, 8))
    for dtype in FLOATS:
        for part in (16, 4096):
            x = random(part * 2 * Here.size, dtype=dtype)
            check.same(lambda m: m.reduce_scatter_out(m.symmetric(x), m.group, False,
                                                      poisoned(len(x) // m.size, dtype=dtype)),
                       lambda m: m.part(m.gathered(x).sum(0)), theirs)
            y = x.view(2, -1)
            check.same(lambda m: m.reduce_scatter_out(m.symmetric(y), m.group, True,
                                                      poisoned(2, y.shape[1] // m.size, dtype=dtype)),
                       lambda m: m.part(m.gathered(y).sum(0), 1), theirs)
    x, out = random(16 * Here.size), poisoned(16)

    def call(m, tensor, last=False, output=out, group=None):
        return m.reduce_scatter_out(tensor, m.group if group is None else group, last, output)
    check.wrong(RuntimeError, lambda m: call(m, x.clone()))
    check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x)[::2]))
    check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x.view(2, -1))))
    check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x), output=poisoned(15)))
    check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x), output=poisoned(32)[::2]))
    check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x), output=poisoned(16, dtype=torch.float64)))
    check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x.view(4, -1)), True, poisoned(3, 4)))
    check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x), group="no such group"))
    if Here.size > 1:
        check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x[1:])))
        check.wrong(RuntimeError, lambda m: call(m, m.symmetric(x.view(2, -1)[:, 1:].clone()), True))
    whole = random(16 * Here.size, dtype=torch.int64)
    check.wrong(NotImplementedError, lambda m: call(m, m.symmetric(whole), output=torch.zeros_like(whole[:16])))


# --- By copy engines ----------------------------------------------------------------------------------

def arrived(tensor):
    return torch.ops._c10d_functional.wait_tensor(tensor)


@pair
def low_contention_all_gather(check):
    for dtype in MOVED:
        for shape in ((8,), (6, 20), (256, 512)):
            x = random(*shape, dtype=dtype)
            for own in (False, True):
                check.same(lambda m: arrived(m.low_contention_all_gather(m.symmetric(x) if own else x, m.group)),
                           lambda m: m.joined(x, 0))
    wrong_groups(check, lambda m, group: m.low_contention_all_gather(x, group))


@pair
def low_contention_reduce_scatter(check):
    for dtype in FLOATS:
        for shape in ((12,), (12, 20), (240, 512)):
            x = random(*shape, dtype=dtype)
            for op, of in (("sum", torch.sum), ("avg", torch.mean)):
                for own in (False, True):
                    check.same(
                        lambda m: arrived(m.low_contention_reduce_scatter(m.symmetric(x) if own else x, op, m.group)),
                        lambda m: m.part(of(m.gathered(x), 0)))
    check.wrong(ValueError, lambda m: m.low_contention_reduce_scatter(x, "max", m.group))
    if Here.size > 1:
        check.wrong(AssertionError if Here.gpu else ValueError, lambda m: m.low_contention_reduce_scatter(
            random(2 * Here.size + 1, 4), "sum", m.group), decided=ASSERTED)


@scenes("multimem_all_reduce_", "multimem_one_shot_all_reduce", "multimem_one_shot_all_reduce_out",
        "multimem_one_shot_reduce_out", "multimem_all_gather_out")
def multicast(check, name):
    """Never used: both have to say that it is not there."""
    if Here.gpu and name == "multimem_one_shot_reduce_out":
        raise Left("NVSHMEM's multicast")
    x, out = random(16), (poisoned(16),)
    rest = {"multimem_one_shot_reduce_out": ("sum", 0), "multimem_all_gather_out": ()}.get(name, ("sum",))
    out = (torch.zeros(16 * Here.size, device=Here.device),) if "gather" in name else \
        out if name.endswith("_out") else ()

    def call(m):
        outs = [m.symmetric(each) for each in out]
        return getattr(m, name)(x if "gather" in name else m.symmetric(x), *rest, m.group, *outs)
    check.wrong(RuntimeError, call)
