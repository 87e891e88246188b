# SPDX-License-Identifier: BSD-3-Clause
"""All ranks, with a team of their own, so that the program's use of weft.world does not interfere with calls of
hyperparallel.py. Ranks are PEs, and the global ranks of torch.distributed if it is used.
"""
import array

import weft

# The first byte of the texts that ranks exchange before a call: the kind of the text.
_RECORD_BYTES = 240
_FACTS, _COMPLAINT = b"F", b"C"


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
        """Raises ValueError on all ranks if one has an error, or facts that differ from rank 0's. Collective; the hosts
        communicate."""
        kind = _COMPLAINT if complaint else _FACTS
        text = (complaint or facts).encode()[:_RECORD_BYTES - 1]
        every = bytearray(_RECORD_BYTES * self.size)
        weft.all_gather(every, bytearray(kind + text.ljust(_RECORD_BYTES - 1, b"\0")), team=self.team)
        records = [every[at:at + _RECORD_BYTES] for at in range(0, len(every), _RECORD_BYTES)]
        kinds = [bytes(record[:1]) for record in records]
        texts = [record[1:].rstrip(b"\0").decode(errors="replace") for record in records]
        if _COMPLAINT in kinds:
            rank = self.rank if complaint else kinds.index(_COMPLAINT)
            raise ValueError(f"{call}: " + ("" if complaint else f"rank {rank} ") + texts[rank])
        for rank in range(1, self.size):
            if texts[rank] != texts[0]:
                raise ValueError(f"{call}: rank {rank} got {texts[rank]}, expected {texts[0]}, as "
                                 "rank 0 has")

    def exchange(self, numbers):
        """Exchanges one tuple of numbers with each rank: numbers[d] is for rank d."""
        width = len(numbers[0])
        mine = array.array("q", [n for row in numbers for n in row])
        theirs = array.array("q", bytes(len(mine) * 8))
        weft.all_to_all(theirs, mine, team=self.team)
        return [tuple(theirs[r * width:(r + 1) * width]) for r in range(self.size)]

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
