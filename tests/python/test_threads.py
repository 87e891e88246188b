# SPDX-License-Identifier: BSD-3-Clause
"""Threads: a call that waits lets the other threads of Python run, and threads of one PE may call at
the same time.
"""
import array
import threading

import pytest
import weft

BLOCKING = {
    "barrier": lambda: weft.barrier(), "sync": lambda: weft.sync(), "Team.sync": lambda: weft.world.sync(),
    "Team.barrier": lambda: weft.world.barrier(), "Team.split": lambda: weft.world.split(0, 1, 1),
    "empty": lambda: weft.empty(3), "all_reduce": lambda: weft.all_reduce(array.array("f", [1])),
    "all_gather": lambda: weft.all_gather(array.array("f", [1] * weft.n_pes()), array.array("f", [1])),
    "reduce_scatter": lambda: weft.reduce_scatter(array.array("f", [1]), array.array("f", [1] * weft.n_pes())),
    "matmul_all_reduce": lambda: weft.matmul_all_reduce(*[memoryview(bytearray(16)).cast("f", (2, 2))] * 3),
    "reserve": lambda: weft.reserve(weft.world, 1000),
}


@pytest.mark.parametrize("call", BLOCKING)
def test_a_waiting_call_lets_others_run(call, me, n):
    """PE 0 is in the call, in a thread, before it sends the others there, so the call must release the GIL."""
    word = weft.zeros(1, "uint64")
    weft.barrier()
    if me == 0:
        thread = threading.Thread(target=BLOCKING[call])
        thread.start()
        for pe in range(1, n):
            weft.signal(word, 1, pe)
        thread.join(60)
        assert not thread.is_alive()
    else:
        weft.wait(word, 1)
        BLOCKING[call]()


def test_many_threads(me, n):
    """Each thread plays ping-pong with its counterpart on the next PE, with words and buffers of its own."""
    count, rounds, right = 4, 200, (me + 1) % n
    words, data = weft.zeros((count, 1), "uint64"), weft.zeros((count, 16), "int32")
    errors = []

    def play(lane):
        word, mine = words.view(1, offset=8 * lane), data.view(16, offset=64 * lane)
        try:
            for turn in range(1, rounds + 1):
                weft.put_signal(mine, array.array("i", [turn] * 16), word, 1, right, op="add")
                weft.wait(word, turn, ">=")
                got = array.array("i", [0] * 16)
                weft.get(got, mine, me)
                assert turn <= got[0] <= turn + n  # the left neighbour may be ahead, but by less than a round
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=play, args=(lane,)) for lane in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
