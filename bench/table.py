#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Markdown tables out of the benchmarks' JSON lines: the median of all runs given.

    bench/table.py build/bench/*.jsonl

A latency's `limit` is what the machine itself takes for the same access in the same run.
"""
import json
import statistics
import sys

# (row, PEs): the goal, in the row's unit; a latency at most, a rate at least.
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
    ("shmem_malloc + shmem_free 1 KiB", 2): 300,
}


def read(paths):
    rows = {}
    for path in paths:
        with open(path) as file:
            for line in file:
                if line.startswith("{"):
                    row = json.loads(line)
                    key = tuple(row[k] for k in ("row", "operator", "dtype", "M", "N", "K", "pes")
                                if k in row)
                    rows.setdefault(key, []).append(row)
    return rows


def middle(runs, field):
    return statistics.median(run[field] for run in runs)


def spread(runs, field):
    values = [run[field] for run in runs]
    return f"{min(values):.3g} - {max(values):.3g}"


def point_to_point(rows):
    print("| row | PEs | median | runs | machine's limit | goal | |")
    print("|---|---|---|---|---|---|---|")
    for key, runs in rows.items():
        if "row" not in runs[0]:
            continue
        name, pes, unit = runs[0]["row"], runs[0]["pes"], runs[0]["unit"]
        value, limit = middle(runs, "value"), middle(runs, "limit")
        goal = GOALS.get((name, pes))
        good = goal and (value <= goal if unit == "ns" else value >= goal)
        verdict = "" if goal is None else "reached" if good else "missed"
        print(f"| {name} | {pes} | {value:.3g} {unit} | {spread(runs, 'value')} "
              f"| {f'{limit:.3g}' if limit else ''} | {goal or ''} | {verdict} |")


def operators(rows):
    print("| operator | type | M x N x K | PEs | fused us | / matmul alone | / unfused |")
    print("|---|---|---|---|---|---|---|")
    for key, runs in rows.items():
        if "operator" not in runs[0]:
            continue
        r = runs[0]
        fused = middle(runs, "fused_us")
        alone = statistics.median(x["fused_us"] / x["matmul_us"] for x in runs)
        unfused = statistics.median(x["fused_us"] / x["unfused_us"] for x in runs)
        print(f"| {r['operator']} | {r['dtype']} | {r['M']} x {r['N']} x {r['K']} | {r['pes']} "
              f"| {fused:.0f} | {alone:.3f} | {unfused:.3f} |")


if len(sys.argv) < 2:
    sys.exit(__doc__)
found = read(sys.argv[1:])
if any("row" in runs[0] for runs in found.values()):
    point_to_point(found)
if any("operator" in runs[0] for runs in found.values()):
    print()
    operators(found)
