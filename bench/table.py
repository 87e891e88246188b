#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Markdown tables out of the benchmarks' JSON lines: the median of all runs given.

    bench/table.py build/results/*.jsonl

`limit` is what the machine itself takes for the same access in the same run. Libraries other than
Weft get a column each, with how many times faster Weft is.
"""
import sys

import results

# (row, PEs): the goal, in the row's unit; a time at most, a rate at least.
GOALS = {
    ("put 8 B + quiet", 2): 7,
    ("get 8 B", 2): 6,
    ("fetch_add", 2): 8,
    ("put_nbi 8 B", 2): 250,
    ("add 8 B", 2): 150,
    ("put 4 KiB", 2): 120,
    ("put 64 KiB", 2): 115,
    ("put 1 MiB", 2): 57,
    ("put 16 MiB", 2): 36,
    ("wait_until ping-pong, one way", 2): 60,
    ("put_signal ping-pong, one way", 2): 65,
    ("barrier_all", 2): 130,
    ("barrier_all", 4): 2500,
    ("broadcast 8 B", 2): 0.10,
    ("broadcast 64 KiB", 2): 0.9,
    ("broadcast 4 MiB", 2): 75,
    ("alltoall 8 B", 2): 0.15,
    ("alltoall 64 KiB", 2): 1.5,
    ("alltoall 4 MiB", 2): 160,
    ("fcollect 8 B", 2): 0.13,
    ("fcollect 64 KiB", 2): 1.5,
    ("fcollect 4 MiB", 2): 300,
    ("sum_reduce 8 B", 2): 0.13,
    ("sum_reduce 64 KiB", 2): 3.0,
    ("sum_reduce 4 MiB", 2): 250,
    ("shmem_malloc + shmem_free 1 KiB", 2): 300,
    ("empty program under the launcher", 2): 10,
}


def verdict(name, pes, unit, value):
    goal = GOALS.get((name, pes))
    if goal is None:
        return ""
    return "reached" if results.times_better(unit, goal, value) >= 1 else "missed"


def libraries_table(rows):
    peers = results.peers(rows)
    print("| row | PEs | Weft | runs | machine's limit | goal | |" + "".join(f" {peer} | |" for peer in peers))
    print("|---" * (7 + 2 * len(peers)) + "|")
    for (name, pes, library), runs in rows.items():
        if library != results.WEFT:
            continue
        unit, value, limit = runs[0]["unit"], results.median(runs, "value"), results.median(runs, "limit")
        cells = [name, pes, f"{value:.3g} {unit}", results.spread(runs, "value"), f"{limit:.3g}" if limit else "",
                 GOALS.get((name, pes), ""), verdict(name, pes, unit, value)]
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
