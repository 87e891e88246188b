# SPDX-License-Identifier: BSD-3-Clause
"""An all-reduce made of puts and signals: every PE puts its vector into a slot of every other PE, followed by a signal,
waits for all signals, and adds the slots in the order of the PEs. weft.all_reduce does this for small vectors.

    oshrun -n 4 python examples/python/one_shot_all_reduce.py
"""
import numpy as np
import weft


class OneShot:
    """Alternates between two sets of slots: a PE that is one call ahead writes the other set. It cannot be two calls
    ahead, because each call waits for the vectors of all PEs.
    """

    def __init__(self, nelems):
        self.n, self.me = weft.n_pes(), weft.my_pe()
        self.slots = weft.empty((2, self.n, nelems))
        self.arrived = weft.zeros((2, 1), "uint64")
        self.values = np.asarray(self.slots)
        self.calls = 0

    def __call__(self, vector):
        turn = self.calls % 2
        mine = self.values[turn, self.me]  # this PE's slot, at the same place on every PE
        word = self.arrived.view(1, offset=8 * turn)
        for step in range(self.n):
            weft.put_signal(mine, vector, word, 1, (self.me + step) % self.n, op="add")
        self.calls += 1
        weft.wait(word, self.n * ((self.calls + 1) // 2), ">=")
        return self.values[turn].sum(axis=0)


weft.init()
one_shot = OneShot(1000)
for call in range(10):
    vector = np.random.default_rng(100 * call + weft.my_pe()).standard_normal(1000).astype("float32")
    result = one_shot(vector)
    weft.all_reduce(vector)
    np.testing.assert_allclose(result, vector, rtol=1e-4, atol=1e-5)
if weft.my_pe() == 0:
    print(f"10 all-reduces over {weft.n_pes()} PEs agree with weft.all_reduce")
