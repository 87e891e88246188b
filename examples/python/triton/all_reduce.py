# SPDX-License-Identifier: BSD-3-Clause
"""An all-reduce in one Triton kernel: after a barrier each member loads the vectors of all members and adds them in the
order of ranks, so that all get the same bits. After a second barrier the sources may be overwritten.

    oshrun -n 2 python examples/python/triton/all_reduce.py
"""
import torch
import triton
import triton.language as tl
import weft
import weft.triton as wt


@wt.jit
def all_reduce(team, dest, source, nelems, BLOCK: tl.constexpr):
    """source is symmetric, dest is any memory of this GPU. Program i synchronises with program i of the others on
    channel i."""
    i = tl.program_id(0)
    range_of_i = i * BLOCK + tl.arange(0, BLOCK)
    inside = range_of_i < nelems
    wt.barrier(team, i)
    total = tl.zeros([BLOCK], tl.float32)
    for m in range(wt.n(team)):
        total += tl.load(wt.at(team, source, m) + range_of_i, mask=inside, other=0).to(tl.float32)
    tl.store(dest + range_of_i, total.to(dest.dtype.element_ty), mask=inside)
    wt.sync(team, i)


def main():
    weft.init()
    me, n, nelems, block = weft.my_pe(), weft.n_pes(), 50_000, 4096
    torch.cuda.set_device(weft.device())
    programs = triton.cdiv(nelems, block)
    source = torch.from_dlpack(weft.empty(nelems, "bfloat16", space="device"))
    dest = torch.empty(nelems, dtype=torch.bfloat16, device="cuda")
    team = weft.device_team(channels=programs)
    for call in range(10):
        vectors = [torch.randn(nelems, generator=torch.Generator().manual_seed(100 * call + pe)).bfloat16()
                   for pe in range(n)]
        source.copy_(vectors[me])
        all_reduce[(programs,)](team.address, dest, source, nelems, BLOCK=block)
        expected = sum(vector.float() for vector in vectors).bfloat16()
        assert (dest.cpu() == expected).all()
    if me == 0:
        print(f"10 all-reduces over {n} PEs")
    team.free()


if __name__ == "__main__":
    main()
