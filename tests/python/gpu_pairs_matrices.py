# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of gpu_pairs.py: functions that PyTorch has had since 2.12 to 2.15, on every version: blocks of
matrices, which are for NCCL alone there and so held against what is stated, sums of partial products,
and what NCCL's handles and multicast have."""
import torch

from gpu_pairs_frame import Here, Left, WIDTH, alone, pair, poisoned, random, refused, scenes

MOVED = (torch.float32, torch.bfloat16, torch.int64, torch.uint8)
SUMMED = (torch.float32, torch.bfloat16, torch.float16, torch.int64)


# --- Blocks of matrices -------------------------------------------------------------------------------

@pair
def all_to_all_nd(check):
    for dtype in MOVED:
        for rows, cols in ((5, 3), (1, 1), (64, 129)):
            for scatter in (0, 1):
                exchange_blocks(check, scatter, rows, cols, dtype)
    x = random(4, 4 * Here.size)

    def call(m, x=x, out=None, dims=(1, 0), symmetric=True):
        out = poisoned(Here.size, 4, 4) if out is None else out
        m.all_to_all_nd(m.symmetric(x) if symmetric else x, out, *dims, group=m.group)
    refused(check, RuntimeError, lambda m: call(m, symmetric=False))
    refused(check, ValueError, lambda m: call(m, dims=(1, 1)))
    refused(check, ValueError, lambda m: call(m, dims=(2, 0)))
    refused(check, ValueError, lambda m: call(m, out=poisoned(Here.size, 4, 5)))
    refused(check, ValueError, lambda m: call(m, out=poisoned(Here.size, 4, 4, dtype=torch.int32)))
    refused(check, RuntimeError, lambda m: call(m, out=poisoned(Here.size, 4, 8)[:, :, ::2]))
    if Here.size > 1:
        refused(check, ValueError, lambda m: call(m, x=random(4, 4 * Here.size + 1)))


def exchange_blocks(check, scatter, rows, cols, dtype):
    """Input and output of two dimensions and of three."""
    blocks = [rows, cols]
    blocks.insert(scatter, Here.size)
    x = random(*blocks, dtype=dtype)

    def meant(m):
        mine = [each.select(scatter, m.rank) for each in m.bits(x)]
        whole = torch.stack(mine, 1 - scatter)
        return [whole, whole.flatten(1 - scatter, 2 - scatter)]

    def call(m):
        outs = [poisoned(*each.shape, dtype=dtype) for each in meant(m)]
        for source, out in zip((x, x.flatten(scatter, scatter + 1)), outs):
            m.all_to_all_nd(m.symmetric(source), out, scatter, 1 - scatter, group=m.group)
        return outs
    alone(check, call, meant)


@pair
def reduce_scatter_offset(check):
    for dtype in SUMMED:
        for dim in (0, 1):
            scatter_blocks(check, dim, None, None, dtype)
            scatter_blocks(check, dim, [7, 7, 20, 33], [Here.size - 1, 0, 0, Here.size - 1], dtype)
    x = random(8 * Here.size, 8 * Here.size)

    def call(m, x=x, out=None, symmetric=True, dim=0, **more):
        out = [poisoned(8, 8 * Here.size)] if out is None else out
        m.reduce_scatter_offset(m.symmetric(x) if symmetric else x, out, m.group, dim=dim, **more)
    refused(check, RuntimeError, lambda m: call(m, symmetric=False))
    refused(check, ValueError, lambda m: call(m, dim=2))
    refused(check, ValueError, lambda m: call(m, red_op="max"))
    refused(check, ValueError, lambda m: call(m, out=[]))
    refused(check, ValueError, lambda m: call(m, out=[poisoned(7, 8 * Here.size)]))
    refused(check, ValueError, lambda m: call(m, offsets=[8, 4]))
    refused(check, ValueError, lambda m: call(m, offsets=[8 * Here.size + 1]))
    refused(check, ValueError, lambda m: call(m, dst_ranks=[Here.size] * Here.size))
    refused(check, ValueError, lambda m: call(m, x=x[None]))


def scatter_blocks(check, dim, offsets, dst_ranks, dtype):
    x = random(8 * Here.size if offsets is None else 33, 8 * Here.size if offsets is None else 40, dtype=dtype)
    x = x if dim == 0 else x.t().contiguous()

    def blocks(m):
        """(begin, end) of those of this rank."""
        ends = offsets or [8 * (i + 1) for i in range(m.size)]
        ranks = dst_ranks or [i % m.size for i in range(len(ends))]
        return [(begin, end) for begin, end, rank in zip([0, *ends], ends, ranks) if rank == m.rank]

    def call(m):
        outs = [poisoned(*x.narrow(dim, begin, end - begin).shape, dtype=dtype) for begin, end in blocks(m)]
        m.reduce_scatter_offset(m.symmetric(x), outs, m.group, dim=dim, offsets=offsets, dst_ranks=dst_ranks)
        return outs

    def meant(m):
        total = m.gathered(x).sum(0) if dtype in WIDTH else m.bits(x).sum(0)
        return [total.narrow(dim, begin, end - begin) for begin, end in blocks(m)]
    alone(check, call, meant)


# --- Sums of partial products -------------------------------------------------------------------------

def means(x, dim, reduce_op):
    return x.double().sum(dim) if reduce_op == "sum" else x.double().mean(dim)


@pair
def reduce_partials(check):
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for reduce_op in ("sum", "avg"):
            for dim in (0, 1, -1):
                x = random(4, 33, 70, dtype=dtype)
                check.same(lambda m: m.reduce_partials(x, dim=dim, reduce_op=reduce_op, output_dtype=dtype,
                                                       group_size=x.shape[dim]), lambda m: means(x, dim, reduce_op))
    check.wrong(ValueError, lambda m: m.reduce_partials(x, dim=0, reduce_op="max", output_dtype=torch.float32,
                                                        group_size=4))


@pair
def triton_reduce_partials_first_dim(check):
    def call(m, x, reduce_op="sum", dtype=torch.bfloat16, size=4):
        return m.triton_reduce_partials_first_dim(x, reduce_op=reduce_op, output_dtype=dtype, group_size=size)
    for source in (torch.bfloat16, torch.float16):
        for dtype in (torch.bfloat16, torch.float16):
            for reduce_op in ("sum", "avg"):
                for shape in ((4, 33, 70), (4, 1), (4, 5000)):
                    x = random(*shape, dtype=source)
                    check.same(lambda m: call(m, x, reduce_op, dtype),
                               (lambda m: means(x, 0, reduce_op)) if Here.gpu else lambda m: None)
    for bad in (random(4, 8), random(4, dtype=torch.bfloat16), random(4, 8, dtype=torch.bfloat16)[:, ::2]):
        check.same(lambda m: call(m, bad), lambda m: None)
    check.same(lambda m: call(m, x, size=5), lambda m: None)
    check.same(lambda m: call(m, x, dtype=torch.float32), lambda m: None)


# --- What only NCCL's memory and multicast have -------------------------------------------------------

@scenes("handle_get_peer_cft_handle", "handle_get_multimem_cft_handle")
def cft_handles(check, name):
    made = Here.ours.handle(random(4))[1]
    arguments = (0,) if "peer" in name else ()
    refused(check, RuntimeError, lambda m: getattr(made, name.removeprefix("handle_"))(*arguments))


@pair
def handle_is_symm_mem_tensor(check):
    tensor = Here.ours.symmetric(random(8, 4))
    with Here.ours.functions:
        for got, wanted in ((tensor, True), (tensor[3:], True), (tensor.clone(), False)):
            check.is_true(Here.ours.handle_is_symm_mem_tensor(got) is wanted, f"not {wanted} of {tuple(got.shape)}")


@scenes("low_contention_all_gather_ce_multicast", "low_contention_all_gather_ce_multicast_out", "memcpy_to_multicast_")
def multicast_by_copies(check, name):
    """Never used: both have to say that it is not there."""
    x, out = random(4, 4), poisoned(4 * Here.size, 4)

    def call(m):
        whole = m.symmetric(out)
        m.rendezvous(whole, m.group)
        arguments = (whole, x, 0, m.group) if name.startswith("memcpy") else (x, m.group) + (
            (whole,) if name.endswith("_out") else ())
        return getattr(m, name)(*arguments)
    refused(check, RuntimeError, call)


@scenes("nccl_all_to_all_nd", "nccl_reduce_scatter_offset", "nccl_get_out", "nvshmem_get_out")
def of_other_backends(check, name):
    if name.endswith("get_out"):
        raise Left("it takes a handle of another backend; weft.torch has get")
    raise Left(f"NCCL's windows; weft.torch has {name.removeprefix('nccl_')}")
