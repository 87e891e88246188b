# SPDX-License-Identifier: BSD-3-Clause
"""What the members of a group exchange before a collective call, so that an error of one of them is raised on all. The
hosts communicate. `members` has rank, size and team, as a Group or the World.
"""
import array

import weft

# The first byte of the texts that are exchanged: the kind of the text.
_RECORD_BYTES = 240
_FACTS, _COMPLAINT = b"F", b"C"


def agree(members, call, complaint, facts):
    """Raises ValueError on all members if one has a complaint, or facts that differ from rank 0's. Collective."""
    kind = _COMPLAINT if complaint else _FACTS
    text = (complaint or facts).encode()[:_RECORD_BYTES - 1]
    every = bytearray(_RECORD_BYTES * members.size)
    weft.all_gather(every, bytearray(kind + text.ljust(_RECORD_BYTES - 1, b"\0")), team=members.team)
    records = [every[at:at + _RECORD_BYTES] for at in range(0, len(every), _RECORD_BYTES)]
    kinds = [bytes(record[:1]) for record in records]
    texts = [record[1:].rstrip(b"\0").decode(errors="replace") for record in records]
    if _COMPLAINT in kinds:
        rank = members.rank if complaint else kinds.index(_COMPLAINT)
        raise ValueError(f"{call}: " + ("" if complaint else f"rank {rank} ") + texts[rank])
    for rank in range(1, members.size):
        if texts[rank] != texts[0]:
            raise ValueError(f"{call}: rank {rank} got {texts[rank]}, expected {texts[0]}, as rank 0 has")


def exchange(members, numbers):
    """Exchanges one tuple of numbers with each member: numbers[d] is for rank d. Collective."""
    width = len(numbers[0])
    mine = array.array("q", [n for row in numbers for n in row])
    theirs = array.array("q", bytes(len(mine) * 8))
    weft.all_to_all(theirs, mine, team=members.team)
    return [tuple(theirs[r * width:(r + 1) * width]) for r in range(members.size)]
