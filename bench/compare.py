#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares two builds of Weft, measured in turns, row by row.

    bench/compare.py BEFORE AFTER [--rounds 9] [--pes 2 4]

BEFORE and AFTER are build folders (`make all benches` in two checkouts). Each round runs the benchmarks of both, in an
order that changes from round to round, so that a slow minute of the machine affects both. `ratio` is the median over
the rounds of after/before, as times (more than 1 is slower). `noise` compares BEFORE with itself in the same way: its
rounds with the neighbouring rounds. A row is marked if it is slower by more than 2 % and by more than its noise; then
the exit status is 1."""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

import results

PROGRAMS = (("point_to_point", (2, 4)), ("collectives", (2,)))
TOLERANCE = 0.02


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--pes", type=int, nargs="+", default=[2, 4])
    return parser.parse_args()


def measure(build, program, pes):
    """Returns {row: seconds or similar}: smaller is better, whatever the row's unit."""
    with tempfile.NamedTemporaryFile("w+", suffix=".jsonl") as lines:
        run = subprocess.run([build / "bin/oshrun", "-n", str(pes), build / "bench" / program],
                             stdout=lines, stderr=subprocess.PIPE, text=True)
        if run.returncode:
            sys.exit(f"{build}: {program} on {pes} PEs ended with {run.returncode}:\n{run.stderr}")
        rows, _ = results.read([lines.name])
    return {name: 1 / row[0]["value"] if row[0]["unit"].endswith("/s") else row[0]["value"]
            for (name, _, _), row in rows.items()}


def measure_rounds(options, program, pes):
    """Returns the rows of both builds for each round."""
    rounds = []
    for number in range(options.rounds):
        builds = [("before", options.before), ("after", options.after)]
        if number % 2:
            builds.reverse()
        rounds.append({name: measure(build, program, pes) for name, build in builds})
        print(f"{program}, {pes} PEs: round {number + 1} of {options.rounds}", file=sys.stderr)
    return rounds


def row_ratio(rounds, row):
    return statistics.median(pair["after"][row] / pair["before"][row] for pair in rounds)


def row_noise(rounds, row):
    """Returns how far two runs of one build are from each other, as a ratio of at least 1."""
    values = [pair["before"][row] for pair in rounds]
    return statistics.median(max(a, b) / min(a, b) for a, b in zip(values, values[1:])) if values[1:] else 1


def main():
    options = arguments()
    slower = 0
    print("| row | PEs | ratio | noise | |\n|---|---|---|---|---|")
    for program, counts in PROGRAMS:
        for pes in (count for count in counts if count in options.pes):
            rounds = measure_rounds(options, program, pes)
            for row in rounds[0]["before"]:
                ratio, noise = row_ratio(rounds, row), row_noise(rounds, row)
                mark = ratio > 1 + TOLERANCE and ratio > noise
                slower += mark
                print(f"| {row} | {pes} | {ratio:.3f} | {noise:.3f} | {'slower' if mark else ''} |")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
