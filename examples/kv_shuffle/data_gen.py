#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the caches and the tables of every PE, and the caches that every PE must have after the shuffle.

    data_gen.py FOLDER PES BLOCKS HEADS PAGE_SIZE HEAD_DIM

Each PE has a K and a V cache of BLOCKS blocks; a block has HEADS x PAGE_SIZE x HEAD_DIM elements of two random bytes.
Requests have from 1 to BLOCKS / 8 blocks, scattered over the cache; the fullest PE uses all its blocks. The PE with the
most blocks in use sends requests to the PE with the fewest, the second to the last but one, and so on, until both PEs
of a pair have about the same number. FOLDER receives for each PE:

    k_input_PE.bin, v_input_PE.bin    the caches
    pair_PE.bin                       two int32: the other PE of the pair (or -1), and 0 to send or 1 to receive
    nblocks_PE.bin                    an int64: the number of blocks that this PE sends
    from_PE.bin, to_PE.bin            that many int64 each: the blocks of this PE, and their places on the other PE
    k_golden_PE.bin, v_golden_PE.bin  the expected caches

Files have the byte order of this host. The same arguments make the same files."""
import array
import pathlib
import random
import sys

ELEMENT_BYTES = 2
SENDS, RECEIVES = 0, 1


def requests_of(load, blocks, numbers):
    """Returns a list of the blocks of each request; together the requests have `load` blocks."""
    places, requests = numbers.sample(range(blocks), load), []
    while places:
        length = numbers.randint(1, max(1, blocks // 8))
        requests.append(places[:length])
        places = places[length:]
    return requests


def pairs_of(loads):
    """Returns (sender, receiver) of each pair. The middle PE of an odd number has no pair."""
    order = sorted(range(len(loads)), key=lambda pe: loads[pe])
    return [(order[-1 - i], order[i]) for i in range(len(order) // 2)]


def chosen_of(requests, most):
    """Returns the blocks of the requests to send, at most this many blocks. Large requests are chosen first."""
    chosen = []
    for request in sorted(requests, key=len, reverse=True):
        if len(chosen) + len(request) <= most:
            chosen += request
    return chosen


def plan_of(pes, blocks, numbers):
    """Returns the numbers of blocks in use on each PE, before and after, and for each pair: sender, receiver, the
    sender's blocks and their places on the receiver. A PE frees the blocks that it has sent."""
    loads = [blocks * (pe + 1) // pes for pe in range(pes)]
    numbers.shuffle(loads)
    requests = [requests_of(load, blocks, numbers) for load in loads]
    plan, after = [], loads.copy()
    for sender, receiver in pairs_of(loads):
        used = {block for request in requests[receiver] for block in request}
        free = [block for block in range(blocks) if block not in used]
        chosen = chosen_of(requests[sender], (loads[sender] - loads[receiver]) // 2)
        plan.append((sender, receiver, chosen, numbers.sample(free, len(chosen))))
        after[sender] -= len(chosen)
        after[receiver] += len(chosen)
    return loads, after, plan


def write_tables(folder, pes, plan):
    rows = {pe: (-1, SENDS, [], []) for pe in range(pes)}
    for sender, receiver, chosen, places in plan:
        rows[sender] = receiver, SENDS, chosen, places
        rows[receiver] = sender, RECEIVES, [], []
    for pe, (peer, role, chosen, places) in rows.items():
        for name, kind, values in (("pair", "i", [peer, role]), ("nblocks", "q", [len(chosen)]), ("from", "q", chosen),
                                   ("to", "q", places)):
            (folder / f"{name}_{pe}.bin").write_bytes(array.array(kind, values).tobytes())


def write_caches(folder, name, caches):
    for pe, cache in enumerate(caches):
        (folder / f"{name}_{pe}.bin").write_bytes(b"".join(cache))


def main():
    folder = pathlib.Path(sys.argv[1])
    pes, blocks, heads, page_size, head_dim = map(int, sys.argv[2:])
    block_bytes = heads * page_size * head_dim * ELEMENT_BYTES
    numbers = random.Random(42)
    folder.mkdir(parents=True, exist_ok=True)
    before, after, plan = plan_of(pes, blocks, numbers)
    write_tables(folder, pes, plan)
    for name in "k", "v":
        caches = [[numbers.randbytes(block_bytes) for _ in range(blocks)] for _ in range(pes)]
        write_caches(folder, f"{name}_input", caches)
        for sender, receiver, chosen, places in plan:
            for block, place in zip(chosen, places):
                caches[receiver][place] = caches[sender][block]
        write_caches(folder, f"{name}_golden", caches)
    print("data_gen.py: blocks in use on each PE:", *before, "- after the shuffle:", *after, flush=True)


main()
