# SPDX-License-Identifier: BSD-3-Clause
"""All ranks, with a team of their own, so that the program's use of weft.world does not interfere with calls of
hyperparallel.py. Ranks are PEs, and the global ranks of torch.distributed if it is used.
"""
import weft
from weft.torch._agreement import agree, exchange


class World:
    def __init__(self):
        self.rank, self.size = weft.my_pe(), weft.n_pes()
        self.pes = tuple(range(self.size))
        self.name = "world"
        self._team = None
        self._last = None

    @property
    def team(self):
        """Returns the ranks' team. It is made at the first use, which is collective."""
        if self._team is None:
            self._team = weft.world.split(0, 1, self.size)
        return self._team

    def enter(self, lane):
        """Orders the next collective call after the previous one, whichever lane that used."""
        if lane.at_once:
            return
        if self._last is not None:
            lane.follows(self._last)
        self._last = lane

    def barrier(self, lane):
        lane(weft.barrier, self.team, stream=lane.stream)

    def agree(self, call, complaint, facts):
        """See _agreement.agree()."""
        agree(self, call, complaint, facts)

    def exchange(self, numbers):
        """See _agreement.exchange()."""
        return exchange(self, numbers)

    def close(self):
        if self._team is not None:
            self._team.destroy()
        self._team = self._last = None


_world = None


def world():
    """Returns the World, and calls weft.init() first if necessary."""
    global _world
    if not weft.initialized():
        weft.init()
        _world = None
    if _world is None:
        _world = World()
    return _world
