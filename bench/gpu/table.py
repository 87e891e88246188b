#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a Markdown table of the GPU benchmarks' JSON lines.

    bench/gpu/table.py build/results/gpu/*.jsonl

Every figure is the median over rounds of the slowest PE; "wrong" means that some PE found a wrong result. A ratio is
the median over rounds of Weft's figure over the best peer's of that round, followed by the least and the greatest
ratio, and by the peer that was best most often. Smaller ratios are better for times, larger ones for rates (GB/s)."""
import math
import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import results  # noqa: E402

def read(paths):
    """Returns {(row, PEs, GPUs): unit} in the order of the files, {(row, PEs, GPUs): {library: {round: slowest
    PE}}}."""
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
    """Returns, for each round, Weft's figure over the best peer's, and that peer."""
    best = max if unit.endswith("/s") else min
    found, peers = [], []
    right = {name: rounds for name, rounds in libraries.items() if is_right(rounds)}
    for turn, ours in right.get(results.WEFT, {}).items():
        theirs = {name: rounds[turn] for name, rounds in right.items() if not is_ours(name) and turn in rounds}
        if theirs:
            peers.append(best(theirs, key=theirs.get))
            found.append(ours / theirs[peers[-1]])
    return found, peers


def compared(libraries, unit):
    """Returns the ratio and its range with the peer; empty if there is nothing to compare."""
    found, peers = ratios(libraries, unit)
    if not found:
        return ""
    return f"{statistics.median(found):.2f} [{min(found):.2f}, {max(found):.2f}] ({statistics.mode(peers)})"


def cell(rounds):
    return "" if rounds is None else f"{statistics.median(rounds.values()):.4g}" if is_right(rounds) else "wrong"


def print_rows(units, worst):
    names = dict.fromkeys(library for libraries in worst.values() for library in libraries)
    names = sorted(names, key=lambda name: (not is_ours(name), name))
    print("| row | PEs | unit | " + " | ".join(names) + " | Weft / best peer |")
    print("|---" * (4 + len(names)) + "|")
    for key, libraries in sorted(worst.items(), key=lambda item: item[0][1:]):
        row, pes, gpus = key
        on = str(pes) if pes <= gpus else f"{pes} on {gpus} GPU{'s' * (gpus > 1)}"
        cells = [cell(libraries.get(name)) for name in names]
        print("| " + " | ".join([row, on, units[key], *cells, compared(libraries, units[key])]) + " |")


if len(sys.argv) < 2:
    sys.exit(__doc__)
print_rows(*read(sys.argv[1:]))
