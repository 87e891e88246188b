#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Finds the shortest beginning of an epoch of the random program that still diverges.

    tests/random/shrink.py -n PES --seed S --epoch E [--build build]

A divergence that is found at an epoch's end may have begun long before. This program bisects the epoch, and prints the
output of the shortest failing run, and its last operations. Failures that depend on timing are tried a few times."""
import argparse
import subprocess

EPOCH_OPS, TRIES, TAIL = 4000, 3, 12


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-n", dest="pes", type=int, required=True)
    parser.add_argument("--seed", required=True)
    parser.add_argument("--epoch", required=True)
    parser.add_argument("--build", default="build")
    return parser.parse_args()


def diverges(options, operations):
    """Returns the output of a failing run, or None."""
    command = [f"{options.build}/bin/oshrun", "-n", str(options.pes),
               f"{options.build}/tests/random/random", "--seed", options.seed,
               "--epoch", options.epoch, "--to", str(operations), "--trace"]
    for _ in range(TRIES):
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            return run
    return None


def main():
    options = arguments()
    passes, fails, shortest = 0, EPOCH_OPS, diverges(options, EPOCH_OPS)
    if not shortest:
        raise SystemExit("the whole epoch does not diverge")
    while fails - passes > 1:
        middle = (passes + fails) // 2
        run = diverges(options, middle)
        if run:
            fails, shortest = middle, run
        else:
            passes = middle
    print(shortest.stderr, end="")
    print(f"the shortest beginning that diverges has {fails} operations; the last of them:")
    trace = [line for line in shortest.stdout.splitlines() if line.startswith("# operation")]
    print("\n".join(trace[-TAIL:]))


main()
