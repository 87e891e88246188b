#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The parts of make check-all: every run is in one of them, none is too long by its costs, and a part that does not
exist is an error.
"""
import fnmatch
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import costs  # noqa: E402
import matrix  # noqa: E402
import tap  # noqa: E402

PARTS = len(re.search(r"^CHECK_PARTS := (.*)$", (ROOT / "mk/tests.mk").read_text(), re.M).group(1).split())
PROCESSORS, MINUTES_MAX, MINUTES_OF_BUILDS = 2, 60, 15
RUNS = matrix.Plan("build", long=True).add_rows(matrix.rows("check-all"))


def complete(problems):
    seen = []
    for part in range(1, PARTS + 1):
        chosen = costs.part(random.sample(RUNS, len(RUNS)), f"{part}/{PARTS}", True)
        seen += chosen
        if chosen != costs.cut(RUNS, PARTS, True)[part - 1][1]:
            problems.append(f"part {part} depends on the order")
    if sorted(seen) != sorted(RUNS):
        problems.append(f"{len(seen)} runs of {len(RUNS)}")


def short(problems):
    room = (MINUTES_MAX - MINUTES_OF_BUILDS) * 60
    for number, (seconds, members) in enumerate(costs.cut(RUNS, PARTS, True), 1):
        print(f"# part {number}: {len(members)} runs, {seconds / PROCESSORS / 60:.0f} minutes")
        if seconds / PROCESSORS > room or costs.cost(members[0], costs.table(True)) > room:
            problems.append(f"part {number} takes {seconds / PROCESSORS / 60:.0f} minutes, {members[0].name} the most of it: "
                            "more parts (CHECK_PARTS), or a shorter test")


def known(problems):
    """A row that counts for no run is of a test that is gone or has another name, or stands below a wider one."""
    for goal, long in ("check", False), ("check-all", True):
        rows = [pattern for pattern, _ in costs.table(long)]
        runs = matrix.Plan("build", long=long).add_rows(matrix.rows(goal))
        counted = {next((row for row in rows if fnmatch.fnmatch(run.name, row)), None) for run in runs}
        problems += [f"{goal}: {row} counts for no test" for row in rows if row not in counted]


def wrong(problems):
    for part in ("0/4", "5/4", "two"):
        run = subprocess.run([ROOT / "tests/run.py", "check-all", "-l", "-p", part], capture_output=True, text=True)
        if run.returncode != 2 or f"{part} is no part" not in run.stderr:
            problems.append(f"{part}: status {run.returncode}, {run.stderr}")
    run = subprocess.run(["make", "-n", "check-all", f"PART={PARTS + 1}"], capture_output=True, text=True, cwd=ROOT)
    if run.returncode != 2 or f"not PART={PARTS + 1}" not in run.stderr:
        problems.append(f"make check-all: status {run.returncode}, {run.stderr[:200]}")


tap.run([
    ("every run is in one part, whatever the order", complete),
    (f"each part takes {MINUTES_MAX} minutes at most", short),
    ("every row of costs.txt is of a test that exists", known),
    ("a part that does not exist is an error", wrong),
])
