# SPDX-License-Identifier: BSD-3-Clause
"""What tests take, by tests/costs.txt: the order in which they start, and parts of equal cost (make check-all PART=2)."""
import fnmatch
import pathlib
import re
import sys

import catalog

OTHERS = 1.5    # seconds of a test that costs.txt does not name
DEAR = 5        # seconds from which on a test has a line there


def table(long):
    """(pattern, seconds) of the short forms or of the long ones."""
    lines = (line.split("#")[0].split() for line in catalog.TESTS.joinpath("costs.txt").read_text().splitlines())
    return [(line[0], float(line[2 if long else 1])) for line in lines if line and line[2 if long else 1] != "-"]


def cost(run, rows):
    return next((seconds for pattern, seconds in rows if fnmatch.fnmatch(run.name, pattern)), OTHERS)


def dearest_first(runs, long):
    rows = table(long)
    return sorted(runs, key=lambda run: (-cost(run, rows), run.name))


def cut(runs, parts, long):
    """[seconds, runs] of each part: the next in order of cost goes to the part that has least so far."""
    rows, cuts = table(long), [[0.0, []] for _ in range(parts)]
    for run in dearest_first(runs, long):
        least = min(cuts, key=lambda part: part[0])
        least[0] += cost(run, rows)
        least[1].append(run)
    return cuts


def part(runs, which, long):
    match = re.fullmatch(r"(\d+)/(\d+)", which)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        catalog.fail(f"{which} is no part: 1/4 is the first of four")
    seconds, chosen = cut(runs, int(match[2]), long)[int(match[1]) - 1]
    print(f"tests: part {which} has {len(chosen)} of {len(runs)} tests, some {seconds / 60:.0f} minutes one after the other",
          file=sys.stderr)
    return chosen


def learn(logs):
    """Prints the name and the seconds of each test that costs much, from logs of runs."""
    found = {}
    for log in logs:
        for name, seconds in re.findall(r"^\[[\d:]+\] (\S+) \.* .*\(\d+ cases, ([\d.]+) s,", pathlib.Path(log).read_text(), re.M):
            found[name] = max(float(seconds), found.get(name, 0))
    for name, seconds in sorted(found.items(), key=lambda row: -row[1]):
        if seconds >= DEAR:
            print(f"{name:<44} {seconds:.0f}")
