#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The parts of make check-all: every script is in one of them, none is too long by its costs, and a part that
does not exist is an error.
"""
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import one  # noqa: E402
import parts  # noqa: E402
import tap  # noqa: E402

PARTS = len(re.search(r"^CHECK_PARTS := (.*)$", (ROOT / "Makefile").read_text(), re.M).group(1).split())
BUILDS = {"build": (1, 2, 3, 4, 5, 8), "build/clang": (2, 3), "build/san-address-undefined": (2, 3), "build/san-thread": (2, 3)}
FAR_RUNS = re.search(r"^check-all: FAR_RUNS +:= (.*)$", (ROOT / "Makefile").read_text(), re.M).group(1).split()
FAR = {"build": FAR_RUNS, **{f"build/{san}": ["2:each", "3:each", "4:each"] for san in ("san-address-undefined", "san-thread")}}
HOST_RUNS = re.search(r"^HOST_RUNS +\?= (.*)$", (ROOT / "Makefile").read_text(), re.M).group(1).split()
FAR["build"] = [*FAR_RUNS, *HOST_RUNS]
FAR["build/san-address-undefined"].append("4:hosts:2x2:carrier")
FAR["build/san-thread"] += ["3:hosts:3x1", "3:hosts:3x1:carrier"]
FAR_ROOMS = "api", "core", "coll", "ops", "conformance", "random"
PROCESSORS, MINUTES_MAX, MINUTES_OF_BUILDS = 2, 60, 15


def where(run):
    words = re.sub("[:,]", "-", run.split(":", 1)[1])
    return words if words.startswith("hosts-") else f"far-{words}"


def scripts():
    """As many as make check-all has at most, by the names that prove.sh gives them."""
    names = one.all_tests()
    found = [f"build/t/{name.replace('/', '-')}.t" for name, paths in names.items() if any(p.suffix == ".t" for p in paths)]
    for build, counts in BUILDS.items():
        found += [f"{build}/t/{name.replace('/', '-')}-{count}pe{form}.t" for name, paths in names.items() for count in counts
                  for form in (("", "-staged", "-delays") if name.startswith("gpu/") else ("",))
                  if any(p.suffix in (".c", ".cc") for p in paths)]
    for build, runs in FAR.items():
        found += [f"{build}/t/{name.replace('/', '-')}-{run.split(':')[0]}pe-{where(run)}.t"
                  for name, paths in names.items() for run in runs
                  if name.split("/")[0] in FAR_ROOMS and any(p.suffix in (".c", ".cc") for p in paths)]
    return found + [f"build/t/{name.replace('/', '-')}-far-each.t" for name, paths in names.items()
                    if any(p.suffix == ".t" and "Far: also" in p.read_text() for p in paths)]


SCRIPTS = scripts()


def complete(problems):
    shuffled = random.sample(SCRIPTS, len(SCRIPTS))
    seen = []
    for part in range(1, PARTS + 1):
        run = subprocess.run([ROOT / "tests/parts.py", f"{part}/{PARTS}", *shuffled], capture_output=True, text=True)
        seen += run.stdout.split()
        if run.stdout.split() != parts.cut(SCRIPTS, PARTS)[part - 1][1]:
            problems.append(f"part {part} depends on the order")
    if sorted(seen) != sorted(SCRIPTS):
        problems.append(f"{len(seen)} scripts of {len(SCRIPTS)}")


def short(problems):
    room = (MINUTES_MAX - MINUTES_OF_BUILDS) * 60
    for number, (seconds, members) in enumerate(parts.cut(SCRIPTS, PARTS), 1):
        print(f"# part {number}: {len(members)} scripts, {seconds / PROCESSORS / 60:.0f} minutes")
        if seconds / PROCESSORS > room or parts.cost(members[0], parts.table()) > room:
            problems.append(f"part {number} takes {seconds / PROCESSORS / 60:.0f} minutes, {members[0]} the most of it: "
                            "more parts (CHECK_PARTS), or a shorter test")


def known(problems):
    """A pattern that fits nothing is of a test that is gone or has another name."""
    names = [parts.name_of(script) for script in SCRIPTS]
    problems += [f"no script is like {pattern}" for pattern, _ in parts.table()
                 if not any(parts.fnmatch.fnmatch(name, pattern) for name in names)]


def wrong(problems):
    for part in ("0/4", "5/4", "two"):
        run = subprocess.run([ROOT / "tests/parts.py", part, "a.t"], capture_output=True, text=True)
        if run.returncode != 1 or f"{part} is no part" not in run.stderr:
            problems.append(f"{part}: status {run.returncode}, {run.stderr}")
    run = subprocess.run(["make", "-n", "check-all", f"PART={PARTS + 1}"], capture_output=True, text=True, cwd=ROOT)
    if run.returncode != 2 or f"not PART={PARTS + 1}" not in run.stderr:
        problems.append(f"make check-all: status {run.returncode}, {run.stderr[:200]}")


tap.run([
    ("every script is in one part, whatever the order", complete),
    (f"each part takes {MINUTES_MAX} minutes at most", short),
    ("every line of costs.txt is of a script that exists", known),
    ("a part that does not exist is an error", wrong),
])
