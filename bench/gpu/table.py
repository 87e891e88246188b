#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A Markdown table out of the GPU benchmarks' JSON lines.

    bench/gpu/table.py build/results/gpu/*.jsonl

Every figure is the median over rounds of the worst PE; "wrong" says that some PE found a wrong result.
A ratio is the median over rounds of Weft's figure over the best peer's of that round, with the least and
the greatest of them behind it, and the peer that was best most often: of times a smaller ratio is
better, of rates (GB/s) a larger one. The goal is a ratio, too, with a mark where it is missed.
"""
import math
import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import results  # noqa: E402

# Of rows in graphs on four GPUs, for symmetric memory, in place or not; two GPUs have one goal for all.
GOALS = {
    "barrier on a stream,": 0.69,
    "all-reduce 1 KiB": 0.49, "all-reduce 16 KiB": 0.54, "all-reduce 128 KiB": 0.54, "all-reduce 1 MiB": 0.69,
    "all-reduce 8 MiB": 0.82, "all-reduce 64 MiB": 0.92, "all-reduce 256 MiB": 0.95,
    "all-gather 1 KiB": 0.65, "all-gather 1 MiB": 0.75, "all-gather 256 MiB": 0.94,
    "reduce-scatter 1 KiB": 0.50, "reduce-scatter 1 MiB": 0.65, "reduce-scatter 256 MiB": 0.86,
    "all-to-all 4 KiB": 0.43, "all-to-all 64 MiB": 0.88}
GOAL_OF_TWO = 0.95

# Of calls inside kernels, on two GPUs and on four; and GB/s that leave each GPU, by either kind of put.
KERNEL_GOALS = {
    "kernel: put-with-signal 8 B by a thread, one way": 0.70,
    "kernel: word of 8 B with its signal, one way": 0.70,
    "kernel: put-with-signal 16 KiB by 256 threads, one way": 0.86,
    "kernel: put-with-signal 16 KiB by 512 threads, one way": 0.86,
    "kernel: put-with-signal 16 KiB by 1024 threads, one way": 0.86,
    "kernel: packet of 8 B, one way": 0.30, "kernel: barrier of one block": 0.75}
RATE_GOALS = {"kernel: put to the next PE, 8 blocks": 350, "kernel: put to all peers in turn, 8 blocks": 350}


def read(paths):
    """{(row, PEs, GPUs): unit} in the order of the files, {(row, PEs, GPUs): {library: {round: worst PE}}}."""
    units, worst = {}, {}
    for path in paths:
        turn = re.search(r"-(\d+)\.jsonl$", path).group(1)
        for (row, pes, library), lines in results.read([path])[0].items():
            unit, values = lines[0]["unit"], [line["value"] for line in lines]
            key = row, pes, lines[0].get("gpus", pes)
            units[key] = unit
            worst.setdefault(key, {}).setdefault(library, {})[turn] = (
                math.nan if None in values else min(values) if unit.endswith("/s") else max(values))
    return units, worst


def is_ours(library):
    return library.split(",")[0] == results.WEFT


def is_right(rounds):
    return not any(map(math.isnan, rounds.values()))


def ratios(libraries, unit):
    """Of each round, Weft's figure over the best peer's; and which peers were that."""
    best = max if unit.endswith("/s") else min
    found, peers = [], []
    right = {name: rounds for name, rounds in libraries.items() if is_right(rounds)}
    for turn, ours in right.get(results.WEFT, {}).items():
        theirs = {name: rounds[turn] for name, rounds in right.items() if not is_ours(name) and turn in rounds}
        if theirs:
            peers.append(best(theirs, key=theirs.get))
            found.append(ours / theirs[peers[-1]])
    return found, peers


def goal_of(row, gpus):
    if row.startswith("kernel:"):
        return KERNEL_GOALS.get(row) if gpus in (2, 4) else None
    if row.endswith(("eager", "one way", "both ways", "ordinary memory")) or row.startswith("host"):
        return None
    goal = GOALS.get(" ".join(row.split()[:3])) or GOALS.get(" ".join(row.split()[:4]))
    return goal if gpus == 4 else GOAL_OF_TWO if gpus == 2 else None


def goal_text(row, gpus, ours, ratio):
    """A goal with its mark, or nothing: a rate of ours, or a ratio to the best peer."""
    rate, goal = RATE_GOALS.get(row) if gpus in (2, 4) else None, goal_of(row, gpus)
    if rate:
        return f"{rate} GB/s" + " **missed**" * (ours is not None and ours < rate)
    return f"{goal:.2f}" + " **missed**" * (ratio is not None and ratio > goal) if goal else ""


def judged(row, gpus, libraries, unit):
    """The ratio and its range with the peer, and the goal; empty where nothing is to compare."""
    found, peers = ratios(libraries, unit)
    rounds = libraries.get(results.WEFT, {})
    ours = statistics.median(rounds.values()) if rounds and is_right(rounds) else None
    ratio = statistics.median(found) if found else None
    text = f"{ratio:.2f} [{min(found):.2f}, {max(found):.2f}] ({statistics.mode(peers)})" if found else ""
    return text, goal_text(row, gpus, ours, ratio)


def cell(rounds):
    return "" if rounds is None else f"{statistics.median(rounds.values()):.4g}" if is_right(rounds) else "wrong"


def print_rows(units, worst):
    names = dict.fromkeys(library for libraries in worst.values() for library in libraries)
    names = sorted(names, key=lambda name: (not is_ours(name), name))
    print("| row | PEs | unit | " + " | ".join(names) + " | Weft / best peer | goal |")
    print("|---" * (5 + len(names)) + "|")
    for key, libraries in sorted(worst.items(), key=lambda item: item[0][1:]):
        row, pes, gpus = key
        on = str(pes) if pes <= gpus else f"{pes} on {gpus} GPU{'s' * (gpus > 1)}"
        cells = [cell(libraries.get(name)) for name in names]
        compared = judged(row, gpus if pes <= gpus else None, libraries, units[key])
        print("| " + " | ".join([row, on, units[key], *cells, *compared]) + " |")


if len(sys.argv) < 2:
    sys.exit(__doc__)
print_rows(*read(sys.argv[1:]))
