#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes Markdown tables of the benchmarks' JSON lines: the median of all given runs.

    bench/table.py build/results/*.jsonl

`limit` is the time of the machine itself for the same access in the same run. Each other library has a column, with how
many times faster Weft is."""
import sys

import results


def libraries_table(rows):
    peers = results.peers(rows)
    print("| row | PEs | Weft | runs | machine's limit |" + "".join(f" {peer} | |" for peer in peers))
    print("|---" * (5 + 2 * len(peers)) + "|")
    for (name, pes, library), runs in rows.items():
        if library != results.WEFT:
            continue
        unit, value, limit = runs[0]["unit"], results.median(runs, "value"), results.median(runs, "limit")
        cells = [name, pes, f"{value:.3g} {unit}", results.spread(runs, "value"), f"{limit:.3g}" if limit else ""]
        for peer in peers:
            theirs = rows.get((name, pes, peer))
            middle = theirs and results.median(theirs, "value")
            cells += [f"{middle:.3g}", f"{results.times_better(unit, middle, value):.1f}x"] if theirs else ["", ""]
        print("| " + " | ".join(map(str, cells)) + " |")


def operators_table(rows):
    print("| operator | type | M x N x K | PEs | fused us | / matmul alone | / unfused |")
    print("|---|---|---|---|---|---|---|")
    for runs in rows.values():
        r = runs[0]
        print(f"| {r['operator']} | {r['dtype']} | {r['M']} x {r['N']} x {r['K']} | {r['pes']} "
              f"| {results.median(runs, 'fused_us'):.0f} | {results.ratio(runs, 'fused_us', 'matmul_us'):.3f} "
              f"| {results.ratio(runs, 'fused_us', 'unfused_us'):.3f} |")


if len(sys.argv) < 2:
    sys.exit(__doc__)
rows, operators = results.read(sys.argv[1:])
if rows:
    libraries_table(rows)
if operators:
    print()
    operators_table(operators)
