# SPDX-License-Identifier: BSD-3-Clause
"""Memory of one PE that other PEs share later, teams of any list, and signal pads."""
import array
import gc
import threading

import pytest
import weft


def test_a_block_is_local(me):
    for turn in range(me + 1):
        block = weft.Block("host", 1000 * (turn + 1))
        assert (block.nbytes, block.space) == (1000 * (turn + 1), "host")
        view = memoryview(block.view())
        assert bytes(view) == bytes(block.nbytes)
        view[5] = 9
        assert block.view(1, "uint8", 5).ptr == block.ptr + 5 and block.view(dtype="int64").shape == (125 * (turn + 1),)
    assert "1000 bytes" in repr(weft.Block("host", 1000))


def test_block_of():
    block = weft.Block("host", 4096)
    for pointer in (block.ptr, block.ptr + 4095):
        found = weft.block_of(pointer)
        assert found == block and hash(found) == hash(block) and found.ptr == block.ptr and found != weft.Block("host", 1)
    for pointer in (0, block.ptr - 1, block.ptr + 4096, 2**64 - 1, weft.zeros(4).ptr):
        assert weft.block_of(pointer) is None
    pointer = block.ptr
    del block
    assert weft.block_of(pointer).nbytes == 4096  # `found` keeps it
    del found
    assert weft.block_of(pointer) is None


def test_views_keep_a_block():
    block = weft.Block("host", 64)
    pointer, view = block.ptr, memoryview(block.view(dtype="int32"))
    del block
    gc.collect()
    view[3] = 7
    assert view[3] == 7 and weft.block_of(pointer) is not None
    weft.block_of(pointer).free()
    view[3] = 8
    assert view[3] == 8 and weft.block_of(pointer) is None
    del view
    gc.collect()
    assert weft.block_of(pointer) is None


def test_blocks_are_not_symmetric(me):
    block = weft.Block("host", 16)
    with pytest.raises(ValueError, match="argument dest is not symmetric"):
        weft.put(block.view(), bytes(16), me)
    weft.get(block.view(), weft.zeros(16, "uint8"), me)
    weft.all_reduce(block.view(4, "float32"))


def test_wrong_blocks():
    for arguments, kind, message in [
            (("gpu", 4), ValueError, "argument space is 'gpu'"), (("host", 0), ValueError, "bytes is 0"),
            (("host", -1), ValueError, "argument nbytes is -1"), (("host",), TypeError, "missing"),
            (("host", 1 << 60), MemoryError, "")]:
        with pytest.raises(kind, match=message):
            weft.Block(*arguments)
    block = weft.Block("host", 8)
    block.free()
    for use in (lambda: block.ptr, block.view, block.free, lambda: block.share([weft.my_pe()])):
        with pytest.raises(ValueError, match="was freed"):
            use()


def test_share(me, n, mapped):
    pes = list(range(n))[::-1]
    block = weft.Block("host", 8 * n)
    share = block.share(pes, tag=me * 0 + 77)
    assert (share.size, share.nbytes) == (n, 8 * n)
    assert share.ptr(pes.index(me)) == block.ptr
    for member, pe in enumerate(pes):
        memoryview(share.view(member, dtype="int64"))[me] = 100 * me + pe
    weft.barrier()
    assert memoryview(block.view(dtype="int64")).tolist() == [100 * pe + me for pe in range(n)]
    again = block.share(pes, tag=77)
    assert [again.ptr(i) for i in range(n)] == [share.ptr(i) for i in range(n)]
    for member in (-1, n):
        with pytest.raises(ValueError, match=f"argument member is {member}: the share has members 0 to {n - 1}"):
            share.view(member)
    weft.barrier()


def test_shares_of_some(me, n, mapped):
    """Two groups at once, with blocks of different sizes; other PEs do not take part."""
    group = [pe for pe in range(n) if pe % 2 == me % 2]
    block = weft.Block("host", 64 * (1 + me % 2))
    share = block.share(group)
    memoryview(share.view(0))[group.index(me)] = me + 1
    weft.barrier()
    assert bytes(memoryview(share.view(0)))[:len(group)] == bytes(pe + 1 for pe in group)
    weft.barrier()


def test_a_share_outlives_blocks(me, n, mapped):
    block = weft.Block("host", 16)
    memoryview(block.view())[0] = me + 1
    share = block.share(range(n))
    view = memoryview(share.view((me + 1) % n))
    if me % 2:
        block.free()
    del block, share
    gc.collect()
    weft.barrier()
    assert view[0] == (me + 1) % n + 1
    weft.barrier()


def test_released_shares(me, n, mapped):
    share = weft.Block("host", 16).share(range(n))
    view = memoryview(share.view(0))
    share.release()
    for use in (lambda: share.ptr(0), lambda: share.view(0), share.release, lambda: share.handle):
        with pytest.raises(ValueError, match="was freed"):
            use()
    assert view[0] == 0


def test_wrong_shares(me, n, far):
    block = weft.Block("host", 16)
    for pes, message in [([], "npes is 0"), ([me, me], "are both|npes is 2"), ([n], f"is {n}: the job has"),
                         ([(me + 1) % n] if n > 1 else [], "does not name this PE|npes")]:
        with pytest.raises(ValueError, match=message):
            block.share(pes)
        with pytest.raises(ValueError):
            weft.team(pes)
    for pes in (3, ["a"], None):
        with pytest.raises(TypeError):
            block.share(pes)
    if far:
        with pytest.raises(NotImplementedError, match=f"PE {far[0]} is far from PE {me}: blocks are shared"):
            block.share([me, far[0]])
    elif n > 1:
        with pytest.raises(ValueError, match="has 1[67] bytes"):
            weft.Block("host", 16 + (me == 0)).share(range(n))


def test_teams_of_any_list(me, n):
    team = weft.team(range(n)[::-1], tag=3)
    assert (team.rank, team.size, team.pes) == (n - 1 - me, n, tuple(range(n))[::-1])
    values = array.array("f", [me, 1])
    weft.all_reduce(values, team=team)
    assert values.tolist() == [n * (n - 1) / 2, n]
    gathered = array.array("i", [0] * n)
    weft.all_gather(gathered, array.array("i", [me]), team=team)
    assert gathered.tolist() == list(range(n))[::-1]
    team.destroy()
    alone = weft.team([me])
    assert alone.pes == (me,)
    alone.destroy()


def test_teams_in_threads(me, n):
    """Tags tell them apart."""
    results, threads = {}, []

    def work(tag):
        with weft.team(range(n), tag) as team:
            values = array.array("i", [tag * (me + 1)])
            weft.all_reduce(values, team=team)
            results[tag] = values[0]
    for tag in (1, 2, 3):
        threads.append(threading.Thread(target=work, args=(tag,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert results == {tag: tag * n * (n + 1) // 2 for tag in (1, 2, 3)}


def test_pads(me, n, mapped):
    share = weft.Block("host", 4 * 3 * n).share(range(n))
    pads = array.array("Q", [share.ptr(r) for r in range(n)])
    right, left = (me + 1) % n, (me - 1) % n
    for turn in range(10):
        weft.pad_put(pads, me, n, right, 1)
        weft.pad_wait(pads, me, n, left, 1, timeout_ms=20000)
        weft.pad_barrier(pads.buffer_info()[0], me, n, 0, timeout_ms=20000)
    assert bytes(memoryview(share.view(me))) == bytes(4 * 3 * n)
    with pytest.raises(TimeoutError, match=f"rank {me} has heard nothing from rank {left} on channel 2"):
        weft.pad_wait(pads, me, n, left, 2, timeout_ms=20)
    for use, message in [(lambda: weft.pad_put(pads, n, n, 0, 0), f"rank is {n}"),
                         (lambda: weft.pad_put(pads, me, n, -1, 0), "peer is -1"),
                         (lambda: weft.pad_wait(pads, me, n, 0, -1), "channel is -1"),
                         (lambda: weft.pad_barrier(pads, me, n + 1, 0), f"pads has {n} elements"),
                         (lambda: weft.pad_barrier(array.array("i", [1] * n), me, n, 0), "elements of int32")]:
        with pytest.raises(ValueError, match=message):
            use()
    weft.barrier()
