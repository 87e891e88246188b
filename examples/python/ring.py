# SPDX-License-Identifier: BSD-3-Clause
"""A token goes round all PEs three times; each adds its number. A signal announces the token, so no barrier is needed:
a PE waits only for its left neighbour.

    oshrun -n 4 python examples/python/ring.py
"""
import array

import weft

ROUNDS = 3

weft.init()
me, n = weft.my_pe(), weft.n_pes()
right = (me + 1) % n
inbox, arrived = weft.zeros(1, "int64"), weft.zeros(1, "uint64")

if me == 0:
    weft.put_signal(inbox, array.array("q", [0]), arrived, 1, right)
for turn in range(1, ROUNDS + 1):
    # PE 0 has started the round, so a token that arrives there ends it.
    weft.wait(arrived, turn)
    token = inbox[0] + me
    if me != 0 or turn < ROUNDS:
        weft.put_signal(inbox, array.array("q", [token]), arrived, turn + (me == 0), right)

if me == 0:
    expected = ROUNDS * n * (n - 1) // 2
    print(f"after {ROUNDS} rounds the token is {token}, expected {expected}")
    assert token == expected
