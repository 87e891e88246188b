# SPDX-License-Identifier: BSD-3-Clause
"""A ring all-gather inside a Triton kernel: every PE puts the block that it received last to its right neighbour,
followed by a signal, until all PEs have all blocks.

    oshrun -n 2 python examples/python/triton/ring.py
"""
import torch
import triton
import triton.language as tl
import weft
import weft.triton as wt


@wt.jit(do_not_specialize=["call"])
def ring(team, blocks, arrived, nelems, call, SLICE: tl.constexpr):
    """Program i moves the i-th slice of every block, and signals with its own word."""
    me, n, i = wt.me(team), wt.n(team), tl.program_id(0)
    wt.sync(team, i)  # the result of the last call is not read any more
    count = tl.minimum(SLICE, nelems - i * SLICE)
    for step in range(n - 1):
        part = blocks + (me - step + n) % n * nelems + i * SLICE
        wt.put_signal(team, part, part, count, arrived + i, call * n + step, wt.SIGNAL_SET, (me + 1) % n)
        wt.wait_ge(team, arrived + i, call * n + step)


def main():
    weft.init()
    me, n, nelems = weft.my_pe(), weft.n_pes(), 100_000
    torch.cuda.set_device(weft.device())
    programs = triton.cdiv(nelems, 16384)
    blocks = torch.from_dlpack(weft.empty((n, nelems), space="device"))
    arrived = torch.from_dlpack(weft.zeros(programs, "uint64", space="device"))
    team = weft.device_team(channels=programs)
    for call in range(1, 11):
        blocks[me] = me + 100 * call
        ring[(programs,)](team.address, blocks, arrived, nelems, call, SLICE=16384)
        expected = torch.arange(n, device="cuda", dtype=torch.float32) + 100 * call
        assert (blocks == expected[:, None]).all()
    if me == 0:
        print(f"10 rings of {n} blocks")
    team.free()


if __name__ == "__main__":
    main()
