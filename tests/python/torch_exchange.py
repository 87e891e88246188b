# SPDX-License-Identifier: BSD-3-Clause
"""all_to_all_vdev and its forms of two dimensions on CPU tensors, against lists of rows; tiles; the
calls that PyTorch has for NVSHMEM; exchange by copies, which is what CUDA tensors take."""
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hypothesis")

from hypothesis import strategies as st  # noqa: E402

import weft.torch as symm_mem  # noqa: E402
from torch_operators import drawn, of_all, symmetric  # noqa: E402
from torch_world import ME, RANKS, on_groups, property_test, raises, seeded  # noqa: E402
from weft.torch import _collectives, _exchange_cuda, _groups  # noqa: E402

seeds = st.integers(0, 999)
tables = st.lists(st.lists(st.integers(0, 5), min_size=16, max_size=16), min_size=4, max_size=4)
TYPES = [torch.float32, torch.bfloat16, torch.int64, torch.uint8]


def rows_of_all(group, splits, rest, dtype, seed):
    """Returns every member's input, as rows; this member's tensor has room to spare."""
    room = sum(map(sum, splits)) + 3
    mine = drawn((room, *rest), dtype, seeded(seed, group))
    return mine, of_all(mine, group)


def cut(rows, counts):
    return rows[:sum(counts)].split(list(counts))


@property_test(40, table=tables, rest=st.lists(st.integers(1, 3), max_size=2),
               dtype=st.sampled_from(TYPES), seed=seeds)
def test_vdev(group, table, rest, dtype, seed):
    n, me = group.size(), group.rank()
    splits = [row[:n] for row in table]
    x, inputs = rows_of_all(group, splits, rest, dtype, seed)
    out = torch.full((sum(map(sum, splits)) + 2, *rest), 9).to(dtype)
    got = torch.empty(2, n, dtype=torch.int64)
    symm_mem.all_to_all_vdev(x, out, torch.tensor(splits[me]), got, group)
    parts = [cut(inputs[sender], splits[sender])[me] for sender in range(n)]
    taken = [len(part) for part in parts]
    assert got.tolist() == [taken, [sum(taken[:at]) for at in range(n)]]
    assert torch.equal(out[:sum(taken)], torch.cat(parts)) and (out[sum(taken):] == 9).all()


@property_test(60, table=tables, experts=st.integers(1, 4), align=st.sampled_from([None, 1, 4, 7]),
               rest=st.lists(st.integers(1, 3), max_size=2), dtype=st.sampled_from(TYPES),
               seed=seeds)
def test_vdev_2d_there_and_back(group, table, experts, align, rest, dtype, seed):
    n, me = group.size(), group.rank()
    splits = [row[:n * experts] for row in table]
    x, inputs = rows_of_all(group, splits, rest, dtype, seed)
    out = torch.full((sum(map(sum, splits)) + 8 * (experts + 1), *rest), 9).to(dtype)
    got = torch.empty(2, n * experts, dtype=torch.int64)
    symm_mem.all_to_all_vdev_2d(x, out, torch.tensor(splits[me]), got, group, align)
    begin, step = 0, align or 1
    for expert in range(experts):
        at = begin
        for sender in range(n):
            part = cut(inputs[sender], splits[sender])[me * experts + expert]
            assert got[:, expert * n + sender].tolist() == [len(part), at]
            assert torch.equal(out[at:at + len(part)], part)
            at += len(part)
        begin = max(-(-at // step) * step, begin + step)
    back, back_books = torch.zeros_like(x), torch.empty_like(got)
    symm_mem.all_to_all_vdev_2d_offset(out, back, got, back_books, group)
    assert torch.equal(back[:sum(splits[me])], x[:sum(splits[me])])
    assert back_books[0].tolist() == splits[me]
    assert back_books[1].tolist() == [sum(splits[me][:at]) for at in range(n * experts)]


@on_groups
def test_vdev_complains_on_all(group):
    n, me = group.size(), group.rank()
    x, out = torch.zeros(4 * n, 2), torch.zeros(4 * n, 2)
    splits, books = torch.full((n,), 4), torch.empty(2, n, dtype=torch.int64)
    call = symm_mem.all_to_all_vdev
    raises(RuntimeError, r"PE \d: source_splits\[.*\] is 4 from row \d on, but source has 2 rows", call,
           x[:2] if me == 0 else x, out, splits, books, group)
    raises(RuntimeError, r"PE \d: source_splits\[0\] is -1", call, x, out, splits if me else splits - 5, books, group)
    raises(RuntimeError, r"vdev: PE \d receives rows up to row \d+ of dest, which has 3 rows", call, x, out[:3] if me == 0 else out, splits,
           books, group)
    raises(RuntimeError, "expected .* torch.int64", call, x, out, splits.int(), books, group)
    raises(RuntimeError, "expected rows as of input", call, x, out.double(), splits, books, group)
    raises(RuntimeError, "contiguous", call, x.t(), out, splits, books, group)
    raises(RuntimeError, "positive", symm_mem.all_to_all_vdev_2d, x, out, splits, books, group, 0)
    if n > 1:
        raises(RuntimeError, "multiple of", symm_mem.all_to_all_vdev_2d, x, out, splits[:n - 1],
               books, group)
    call(x.fill_(me), out, splits, books, group)
    assert out[::4, 0].tolist() == list(range(n))


@on_groups
def test_kv_shuffle(group):
    """The first half of the ranks sends to the second half; a rank that is left has no pair."""
    n, me, blocks, count = group.size(), group.rank(), 6, 3
    half = n // 2
    peer = -1 if me >= 2 * half else me + half if me < half else me - half
    draw = seeded(5, group)
    for dtype in TYPES:
        caches = [symmetric((blocks, 2, 3), dtype, drawn((blocks, 2, 3), dtype, draw)) for _ in range(2)]
        before = [of_all(cache.clone(), group) for cache in caches]
        tables = [torch.randperm(blocks, generator=draw)[:count] for _ in range(2)]
        of_senders = of_all(torch.stack(tables), group)
        pair = torch.tensor([peer, int(me >= half)], dtype=torch.int32)
        symm_mem.kv_shuffle(caches, pair, *(tables if me < half else (None, None)), group)
        for cache, all_before in zip(caches, before):
            expected = all_before[me].clone()
            if half <= me < 2 * half:
                sent, kept = of_senders[peer]
                expected[kept] = all_before[peer][sent]
            assert torch.equal(cache, expected)
    raises(RuntimeError, "not symmetric", symm_mem.kv_shuffle, [torch.zeros(2, 2)], pair, None, None, group)
    raises(ValueError, "peer_and_role has elements of type int64", symm_mem.kv_shuffle, caches, pair.long(), None, None,
           group)


@on_groups
def test_all_reduce_rms_norm(group):
    """Against doubles; also compiled, in 8 bits with one scale and with groups, and without what is optional."""
    for dtype in torch.float32, torch.bfloat16, torch.float16:
        rms_norm(group, dtype)


def rms_norm(group, dtype):
    size, cols = (3, 2, 32), 32
    x = drawn(size, dtype, seeded(6, group))
    weight, bias, residual = (drawn(each, dtype, seeded(7, group, each=False)) for each in ((cols,), (cols,), size))
    total, bound = of_all(x, group).double().sum(0), {torch.float32: 1e-4, torch.bfloat16: 0.04, torch.float16: 0.01}[dtype]

    def check(y, z, weight, bias, residual):
        wanted = sum(each.double() for each in (total, bias, residual) if each is not None)
        assert (z.double() - wanted).abs().max() <= bound * wanted.abs().max()
        norm = torch.nn.functional.rms_norm(z.double(), (cols,), None if weight is None else weight.double(), 1e-3)
        assert (y.double() - norm).abs().max() <= bound * norm.abs().max()
        return norm
    call = symm_mem.all_reduce_rms_norm
    check(*call(x, epsilon=1e-3, group=group), None, None, None)
    check(*call(x, weight, 1e-3, residual=residual, bias=bias, group=group), weight, bias, residual)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: call(x, weight, 1e-3, residual=residual, group=group), backend="aot_eager", fullgraph=True)
    check(*compiled(x), weight, None, residual)
    for given in {"group_size": 8}, {"scale": torch.tensor([0.01])}:
        y, z, narrow, scales = call(x, weight, 1e-3, group=group, **given)
        norm = check(y, z, weight, None, None)
        each = scales.repeat_interleave(8, -1) if "group_size" in given else scales
        limited = norm.clamp(-448 * each, 448 * each)
        assert narrow.shape == x.shape and ((narrow.double() * each - limited).abs() <= 0.07 * limited.abs() + 0.01 * each).all()
    raises(ValueError, "weight of", call, x, weight[:4], group=group)
    raises(ValueError, "expected a multiple of 8", call, x, group_size=5, group=group)


@property_test(20, table=tables, rest=st.lists(st.integers(1, 3), max_size=2), seed=seeds)
def test_exchange_by_copies(group, table, rest, seed):
    n, me = group.size(), group.rank()
    splits = [row[:n] for row in table]
    taken = [splits[sender][me] for sender in range(n)]
    x, inputs = rows_of_all(group, splits, rest, torch.float32, seed)
    dest = torch.empty(sum(taken), *rest)
    known = _groups.group_of(group)

    def exchange(taken):
        sizes = _exchange_cuda.exchange_sizes(lambda t: _collectives.all_gather(t[None], 0, known.name), splits[me],
                                              taken, x.device)
        _exchange_cuda.exchange(sizes, known, dest, taken, x[:sum(splits[me])], splits[me])
    exchange(taken)
    assert torch.equal(dest, torch.cat([cut(inputs[sender], splits[sender])[me]
                                        for sender in range(n)]))
    raises(ValueError, "expected", exchange, [taken[0] + 1, *taken[1:]])


# --- What PyTorch has for NVSHMEM ----------------------------------------------------------------


@on_groups
def test_broadcast_and_all_to_all(group):
    n, me, name = group.size(), group.rank(), group.group_name
    t = symmetric((5,), torch.int64, torch.full((5,), me))
    for root in range(n):
        t.fill_(10 * root + me)
        assert torch.ops.symm_mem.nvshmem_broadcast(t, root, name).tolist() == [11 * root] * 5
    x = symmetric((n, 3), torch.float32, torch.arange(3. * n).view(n, 3) + 100 * me)
    out = symm_mem.empty(n, 3, device="cpu")
    torch.ops.symm_mem.nvshmem_all_to_all(x, out, name)
    assert out.tolist() == [[100 * peer + 3 * me + i for i in range(3)] for peer in range(n)]


def test_put_get_and_signal():
    right, left, ops = (ME + 1) % RANKS, (ME - 1) % RANKS, torch.ops.symm_mem
    t = symmetric((6,), torch.float32, torch.full((6,), float(ME)))
    word = symmetric((1,), torch.int64, torch.zeros(1))
    handle = symm_mem.rendezvous(word, "0")
    symm_mem.rendezvous(t, "0")
    if ME == 0:
        ops.nvshmem_get(t[:3], right)
        assert t.tolist() == [float(right)] * 3 + [0.0] * 3
    handle.barrier()
    if ME == RANKS - 1:
        ops.nvshmem_put(t[3:], right)
    handle.barrier()
    assert t[3] == (RANKS - 1 if ME == 0 else ME)
    handle.barrier()
    if ME == 0:
        ops.nvshmem_put_with_signal(t.fill_(50), word, -7, right)
    if left == 0:
        ops.nvshmem_wait_for_signal(word, -7, left)
        assert t.tolist() == [50.0] * 6
    handle.barrier()
    raises(RuntimeError, "invalid peer", ops.nvshmem_put, t, RANKS)
    raises(RuntimeError, "symm_mem.empty", ops.nvshmem_get, torch.zeros(3), 0)


# --- Tiles ---------------------------------------------------------------------------------------


@on_groups
def test_tiles_are_reduced_at_their_roots(group):
    n, me, name, ops = group.size(), group.rank(), group.group_name, torch.ops.symm_mem
    whole = symmetric((8, 8), torch.float32, torch.arange(64.).view(8, 8) * (me + 1))
    tiles = [whole[r * 2:r * 2 + 2, 4:8] for r in range(n)]
    out = torch.full((2, 4), -1.)
    ops.multi_root_tile_reduce(tiles, out, list(range(n)), name)
    factor = n * (n + 1) / 2
    assert torch.equal(out, torch.arange(64.).view(8, 8)[me * 2:me * 2 + 2, 4:8] * factor)
    out.fill_(-1)
    ops.tile_reduce(whole[:2, :4], out, 0, name)
    assert torch.equal(out, torch.arange(64.).view(8, 8)[:2, :4] * factor) if me == 0 else (
        out == -1).all()
    raises(RuntimeError, "one root", ops.multi_root_tile_reduce, tiles, out, [0] * (n + 1), name)
    raises(RuntimeError, "'sum'", ops.tile_reduce, whole[:2, :4], out, 0, name, "max")
