#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A Markdown table out of the GPU benchmarks' JSON lines.

    bench/gpu/table.py build/results/gpu/*.jsonl

Every figure is the median over rounds of the worst PE. A ratio is the median over rounds of Weft's
figure over the best peer's of the same round: of times a smaller one is better, of rates (GB/s) a
larger one.
"""
import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import results  # noqa: E402


def read(paths):
    """{(row, PEs): unit} in the order of the files, {(row, PEs): {library: {round: worst PE}}}."""
    units, worst = {}, {}
    for path in paths:
        turn = re.search(r"-(\d+)\.jsonl$", path).group(1)
        for (row, pes, library), lines in results.read([path])[0].items():
            unit = lines[0]["unit"]
            values = [line["value"] for line in lines]
            units[row, pes] = unit
            worst.setdefault((row, pes), {}).setdefault(library, {})[turn] = (
                min(values) if unit.endswith("/s") else max(values))
    return units, worst


def median(rounds):
    return statistics.median(rounds.values())


def is_ours(library):
    return library.split(",")[0] == results.WEFT


def best_peer(libraries, unit):
    peers = {name: median(rounds) for name, rounds in libraries.items() if not is_ours(name)}
    if not peers:
        return None
    return max(peers, key=peers.get) if unit.endswith("/s") else min(peers, key=peers.get)


def ratio(ours, theirs):
    common = ours.keys() & theirs.keys()
    return statistics.median(ours[turn] / theirs[turn] for turn in common) if common else None


def print_rows(units, worst):
    names = dict.fromkeys(library for libraries in worst.values() for library in libraries)
    names = sorted(names, key=lambda name: (not is_ours(name), name))
    print("| row | PEs | unit | " + " | ".join(names) + " | Weft / best peer |")
    print("|---" * (4 + len(names)) + "|")
    for (row, pes), libraries in sorted(worst.items(), key=lambda item: item[0][1]):
        unit = units[row, pes]
        peer = best_peer(libraries, unit)
        value = ratio(libraries[results.WEFT], libraries[peer]) if peer and results.WEFT in libraries else None
        cells = [f"{median(libraries[name]):.4g}" if name in libraries else "" for name in names]
        against = f"{value:.2f} ({peer})" if value else ""
        print("| " + " | ".join([row, str(pes), unit, *cells, against]) + " |")


if len(sys.argv) < 2:
    sys.exit(__doc__)
print_rows(*read(sys.argv[1:]))
