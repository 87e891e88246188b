#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cuts the long run into parts of like cost (make check-all PART=2).

    tests/parts.py PART/PARTS SCRIPT...        prints the scripts of that part, the dearest first
    tests/parts.py --costs LOG...              costs from prove's times in logs of check-all, for costs.txt

Every script is in one part, and always in the same for the same scripts and costs: the dearest one
first goes to the part that has least so far. costs.txt has the seconds of those that cost much.
"""
import fnmatch
import pathlib
import re
import sys

COSTS = pathlib.Path(__file__).with_name("costs.txt")
OTHERS = 1.5    # seconds: what a script takes that costs.txt does not name
DEAR = 20       # seconds from which on a script has a line there


def fail(text):
    sys.exit(f"parts.py: {text}")


def name_of(script):
    """build/san-thread/t/api-threads-2pe.t -> san-thread/api-threads-2pe; of the first build the name alone."""
    return re.sub(r"^(.*/)?build/|t/(?=[^/]*$)|\.t$", "", str(script))


def table():
    lines = [line.split() for line in COSTS.read_text().splitlines() if line and not line.startswith("#")]
    return [(pattern, float(seconds)) for pattern, seconds, *_ in lines]


def cost(script, costs):
    name = name_of(script)
    return next((seconds for pattern, seconds in costs if fnmatch.fnmatch(name, pattern)), OTHERS)


def cut(scripts, parts):
    """A list of (seconds, scripts) for each part."""
    costs = table()
    cuts = [[0.0, []] for _ in range(parts)]
    for script in sorted(scripts, key=lambda script: (-cost(script, costs), name_of(script))):
        least = min(cuts, key=lambda part: part[0])
        least[0] += cost(script, costs)
        least[1].append(script)
    return cuts


def learn(logs):
    found = {}
    for log in logs:
        for script, ms in re.findall(r"^\[[\d:]+\] (\S+\.t) \.+ .*?(\d+) ms", pathlib.Path(log).read_text(), re.M):
            found.setdefault(name_of(script), []).append(int(ms) / 1000)
    rows = [(max(seconds), name) for name, seconds in found.items() if max(seconds) >= DEAR]
    for seconds, name in sorted(rows, reverse=True):
        print(f"{name:<44} {seconds:.0f}")


def main():
    if sys.argv[1] == "--costs":
        return learn(sys.argv[2:])
    match = re.fullmatch(r"(\d+)/(\d+)", sys.argv[1])
    if not match or not 1 <= int(match.group(1)) <= int(match.group(2)):
        fail(f"{sys.argv[1]} is no part: 1/4 is the first of four")
    seconds, scripts = cut(sys.argv[2:], int(match.group(2)))[int(match.group(1)) - 1]
    print(f"parts.py: part {sys.argv[1]} has {len(scripts)} of {len(sys.argv) - 2} scripts, "
          f"some {seconds / 60:.0f} minutes one behind the other", file=sys.stderr)
    print(*scripts)


if __name__ == "__main__":
    main()
