# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of gpu_pairs.py: words, rows by splits, tiles. Most are NVSHMEM's in
PyTorch, whose own kernels do not run over its backend CUDA: Weft's are held against what is stated."""
import torch

from gpu_pairs_frame import Here, alone, pair, poisoned, random, refused, scenes


# --- Words --------------------------------------------------------------------------------------------

@scenes("stream_write_value32_", "memset32_", "handle_stream_write_value32", "handle_memset32")
def words(check, name):
    """Must run first: the operators need neither a group nor symmetric memory, and none has been used yet."""
    memset = "memset32" in name
    for offset, value, count in ((0, 1, 1), (3, 0xFFFFFFFF, 2), (7, 0, 1), (2, 1 << 31, 4)):
        def call(m):
            tensor = torch.tensor([9] * 8, dtype=torch.uint32, device=Here.device)
            getattr(m, name)(tensor, offset, value, *([count] if memset else []))
            return tensor
        wanted = [9] * 8
        wanted[offset:offset + (count if memset else 1)] = [value] * (count if memset else 1)
        check.same(call, lambda m: torch.tensor(wanted, dtype=torch.uint32, device=Here.device), groups=False)
    tensor = torch.zeros(8, dtype=torch.uint32, device=Here.device)
    more = [1] if memset else []
    for bad, offset, value in ((tensor, 8, 1), (tensor, -1, 1), (tensor, 0, 1 << 32), (tensor, 0, -1),
                               (tensor.view(2, 4), 0, 1), (tensor.view(torch.int32), 0, 1), (tensor[::2], 0, 1)):
        check.wrong(RuntimeError, lambda m: getattr(m, name)(bad, offset, value, *more))
    if memset:
        for offset, count in ((0, 0), (0, -1), (7, 2)):
            check.wrong(RuntimeError, lambda m: getattr(m, name)(tensor, offset, 1, count))


# --- Rows by splits -----------------------------------------------------------------------------------

def splits_of(m, experts=1):
    """(sender, receiver, expert), the same on all ranks; of several experts one gets nothing."""
    noise = torch.Generator().manual_seed(m.size * 10 + experts)
    splits = torch.randint(0, 9, (m.size, m.size, experts), generator=noise)
    if experts > 1:
        splits[:, :, 1] = 0
    return splits


def exchanged(m, x, room, splits, name, experts, align=None, offsets=None):
    out = m.symmetric(poisoned(room, x.shape[1]))
    books = m.symmetric(torch.zeros(2, splits.numel() if offsets is None else splits.shape[-1], dtype=torch.int64,
                                    device=Here.device))
    more = () if align is None else (align,)
    getattr(m, name)(m.symmetric(x), out, m.symmetric(splits), books, m.group, *more)
    return out, books


@pair
def all_to_all_vdev(check):
    x = random(9 * Here.size, 5)

    def call(m):
        counts = splits_of(m)[m.rank, :, 0].to(Here.device)
        out, books = exchanged(m, x, 9 * m.size, counts, "all_to_all_vdev", 1)
        return [out[:int(books[0].sum())], books]

    def meant(m):
        table, everyone = splits_of(m)[:, :, 0], m.bits(x)
        taken = table[:, m.rank]
        rows = [everyone[peer][int(table[peer, :m.rank].sum()):][:int(taken[peer])] for peer in range(m.size)]
        return [torch.cat(rows), torch.stack([taken, taken.cumsum(0) - taken]).to(Here.device)]
    check.same(call, meant, theirs=False)
    wrong_splits(check, "all_to_all_vdev", x, torch.ones(Here.size, dtype=torch.int64, device=Here.device))


def wrong_splits(check, name, x, splits):
    books = torch.zeros(2, splits.shape[-1], dtype=torch.int64, device=Here.device)

    def call(m, x=x, out=x, splits=splits, books=books):
        getattr(m, name)(m.symmetric(x), m.symmetric(out), m.symmetric(splits), m.symmetric(books),
                         m.group)
    refused(check, RuntimeError, lambda m: call(m, splits=splits.to(torch.int32)))
    refused(check, RuntimeError, lambda m: call(m, books=books[:1]))
    refused(check, RuntimeError, lambda m: call(m, out=x.double()))
    refused(check, RuntimeError, lambda m: call(m, out=x[:, 1:]))
    if Here.gpu:  # rows of CPU tensors may be in any memory
        refused(check, RuntimeError, lambda m: getattr(m, name)(
            x, m.symmetric(x), m.symmetric(splits), m.symmetric(books), m.group))


@pair
def all_to_all_vdev_2d(check):
    for experts, align in ((1, None), (3, 1), (4, 8)):
        x = random(9 * Here.size * experts, 5)

        def call(m):
            counts = splits_of(m, experts)[m.rank].flatten().to(Here.device)
            out, books = exchanged(m, x, 9 * m.size * experts + 8 * experts, counts, "all_to_all_vdev_2d", experts,
                                   align)
            return [[out[at:at + rows] for rows, at in books.t().tolist()], books]

        def meant(m):
            table, everyone, rows, counts, begins, at = splits_of(m, experts), m.bits(x), [], [], [], 0
            for expert in range(experts):
                begin = at
                for peer in range(m.size):
                    before = int(table[peer].flatten()[:m.rank * experts + expert].sum())
                    count = int(table[peer, m.rank, expert])
                    rows.append(everyone[peer][before:before + count])
                    counts.append(count)
                    begins.append(at)
                    at += count
                step = align or 1
                at = begin + max(step, -(-(at - begin) // step) * step)
            return [rows, torch.tensor([counts, begins], device=Here.device)]
        check.same(call, meant, theirs=False)
    splits = torch.ones(Here.size, dtype=torch.int64, device=Here.device)
    wrong_splits(check, "all_to_all_vdev_2d", x, splits)
    for align in (0, -1):
        refused(check, RuntimeError, lambda m: exchanged(m, x, len(x), splits, "all_to_all_vdev_2d", 1, align))


@pair
def all_to_all_vdev_2d_offset(check):
    """The reverse exchange restores the rows."""
    for experts, align in ((1, None), (3, 8)):
        x = random(9 * Here.size * experts, 5)

        def call(m):
            counts = splits_of(m, experts)[m.rank].flatten().to(Here.device)
            out, books = exchanged(m, x, 9 * m.size * experts + 8 * experts, counts, "all_to_all_vdev_2d", experts,
                                   align)
            back, theirs = exchanged(m, out, len(x), books, "all_to_all_vdev_2d_offset", experts, offsets=True)
            return [back[:int(counts.sum())], theirs]

        def meant(m):
            counts = splits_of(m, experts)[m.rank].flatten()
            return [x[:int(counts.sum())], torch.stack([counts, counts.cumsum(0) - counts]).to(Here.device)]
        check.same(call, meant, theirs=False)
    books = torch.zeros(2, Here.size, dtype=torch.int64, device=Here.device)
    wrong_splits(check, "all_to_all_vdev_2d_offset", x, books)


# --- Tiles --------------------------------------------------------------------------------------------

@scenes("tile_reduce", "multi_root_tile_reduce")
def tiles(check, name):
    for dtype in (torch.float32, torch.bfloat16):
        x = random(16, 24, dtype=dtype)
        roots = list(range(min(Here.size, 2))) if name.startswith("multi") else [Here.size - 1]

        def call(m):
            matrix, kept = m.symmetric(x), m.symmetric(torch.zeros_like(x))
            parts = [matrix[4 * at:4 * at + 4, 8:16] for at in range(len(roots))]
            out = kept[:4, :8]
            if name == "tile_reduce":
                m.tile_reduce(parts[0], out, roots[0], m.group, "sum")
            else:
                m.multi_root_tile_reduce(parts, out, roots, m.group, "sum")
            return kept

        def meant(m):
            wanted, total = torch.zeros(x.shape, dtype=torch.float64, device=Here.device), m.gathered(x).sum(0)
            if m.rank in roots:
                at = 4 * roots.index(m.rank)
                wanted[:4, :8] = total[at:at + 4, 8:16]
            return wanted
        alone(check, call, meant)
    x = random(8, 8)

    def bad(m, tile=x, out=x, root=0, op="sum"):
        tile, out = m.symmetric(tile) if tile is not None else x, m.symmetric(out)
        many = name.startswith("multi")
        getattr(m, name)([tile] if many else tile, out, [root] if many else root, m.group, op)
    refused(check, RuntimeError, lambda m: bad(m, op="max"))
    refused(check, RuntimeError, lambda m: bad(m, root=Here.size))
    refused(check, RuntimeError, lambda m: bad(m, out=x[1:]))
    refused(check, RuntimeError, lambda m: bad(m, tile=x.double()))
    refused(check, RuntimeError, lambda m: bad(m, tile=x[0], out=x[0]))
    refused(check, RuntimeError, lambda m: bad(m, tile=None))
