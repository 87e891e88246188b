# SPDX-License-Identifier: BSD-3-Clause
"""An all-gather combined with a product, in one Triton kernel: each PE has some rows of a matrix A and all of B, and
computes all of A @ B. Every program first puts its share of the tiles of rows to the peers, each with its own signal,
and then multiplies tiles: this PE's rows first, the others' as they arrive.

    oshrun -n 2 python examples/python/triton/all_gather_matmul.py
"""
import torch
import triton
import triton.language as tl
import weft
import weft.triton as wt


@wt.jit
def put_tiles(team, gathered, a, arrived, call, me, n, tiles_m, K, BLOCK_M: tl.constexpr):
    """PE q multiplies the rows of q + 1 first, then those of q + 2, so this PE puts to me - 1 first."""
    tile_bytes_apart = BLOCK_M * K
    for unit in range(tl.program_id(0), (n - 1) * tiles_m, tl.num_programs(0)):
        tile, peer = unit % tiles_m, (me - 1 - unit // tiles_m + n) % n
        wt.put_signal(team, gathered + (me * tiles_m + tile) * tile_bytes_apart, a + tile * tile_bytes_apart,
                      tile_bytes_apart, arrived + me * tiles_m + tile, call, wt.SIGNAL_SET, peer)


@wt.jit
def multiply(a, b, c, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Computes a tile of C from BLOCK_M rows of A and BLOCK_N columns of B."""
    rows, columns, depth = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    a += rows[:, None] * K + depth[None, :]
    b += depth[:, None] * N + columns[None, :]
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for _ in range(0, K, BLOCK_K):
        sums = tl.dot(tl.load(a), tl.load(b), sums)
        a += BLOCK_K
        b += BLOCK_K * N
    tl.store(c + rows[:, None] * N + columns[None, :], sums.to(c.dtype.element_ty))


@wt.jit(do_not_specialize=["call"])
def all_gather_matmul(team, gathered, a, b, c, arrived, call, rows, N, K,
                      BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """a: rows x K, multiples of the blocks; b: K x N; gathered and arrived are symmetric: n * rows x K, and a word for
    each tile of rows. The grid must be resident; program i synchronises with program i of the others on channel i.
    """
    me, n = wt.me(team), wt.n(team)
    tiles_m, tiles_n = rows // BLOCK_M, N // BLOCK_N
    wt.sync(team, tl.program_id(0))  # the result of the last call is not read any more
    put_tiles(team, gathered, a, arrived, call, me, n, tiles_m, K, BLOCK_M)
    for tile in range(tl.program_id(0), n * tiles_m * tiles_n, tl.num_programs(0)):
        source = (me + tile // (tiles_m * tiles_n)) % n
        tile_m, tile_n = tile // tiles_n % tiles_m, tile % tiles_n
        own = a + tile_m * BLOCK_M * K
        if source != me:
            wt.wait_ge(team, arrived + source * tiles_m + tile_m, call)
            own = gathered + (source * tiles_m + tile_m) * BLOCK_M * K
        multiply(own, b + tile_n * BLOCK_N, c + (source * tiles_m + tile_m) * BLOCK_M * N + tile_n * BLOCK_N, N, K,
                 BLOCK_M, BLOCK_N, BLOCK_K)


def main():
    weft.init()
    me, n, rows, N, K = weft.my_pe(), weft.n_pes(), 1024, 1024, 512
    block = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
    torch.cuda.set_device(weft.device())
    programs = min(n * rows * N // 128**2, torch.cuda.get_device_properties().multi_processor_count // n)
    gathered = torch.from_dlpack(weft.empty((n * rows, K), "bfloat16", space="device"))
    arrived = torch.from_dlpack(weft.zeros(n * rows // 128, "uint64", space="device"))
    team = weft.device_team(channels=programs)
    for call in range(1, 4):
        draw = torch.Generator("cuda").manual_seed(call)
        whole, b = (torch.randn(shape, device="cuda", generator=draw).bfloat16() for shape in ((n * rows, K), (K, N)))
        c = torch.empty(n * rows, N, dtype=torch.bfloat16, device="cuda")
        a = whole[me * rows:(me + 1) * rows]
        all_gather_matmul[(programs,)](team.address, gathered, a, b, c, arrived, call, rows, N, K, **block, num_warps=8)
        torch.testing.assert_close(c, whole @ b, rtol=2e-2, atol=2e-2)
    if me == 0:
        print(f"3 products of rows from {n} PEs")
    team.free()


if __name__ == "__main__":
    main()
