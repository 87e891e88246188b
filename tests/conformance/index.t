#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The suite covers what its index says: tests call every routine of the specification, and the index and the files name
each other."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")).resolve()
HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

ROUTINES = {line.split("\t")[2] for line in (ROOT / "tests/api/openshmem-1.6-symbols.txt").read_text().splitlines()
            if not line.startswith("#")}
INDEX = (HERE / "README.md").read_text()


def called():
    """Returns the symbols that test programs leave to the shared library."""
    programs = [path for path in BUILD.glob("tests/*/*") if path.is_file() and os.access(path, os.X_OK)]
    run = subprocess.run(["nm", "-u", *map(str, programs)], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in run.stdout.splitlines() if line.strip().startswith("U ")}


def every_routine(problems):
    missing = sorted(ROUTINES - called())
    print(f"# {len(ROUTINES)} routines")
    if missing:
        problems.append(f"{len(missing)} routines are called by no test: {', '.join(missing[:20])}")


def every_program(problems):
    for path in sorted([*HERE.glob("*.c"), *HERE.glob("*.cc"), *HERE.glob("*.t")]):
        if f"`{path.name}`" not in INDEX:
            problems.append(f"the index does not name {path.name}")


def every_file(problems):
    for name in sorted(set(re.findall(r"`([\w/]+\.(?:c|cc|t))`", INDEX))):
        if not (ROOT / name if "/" in name else HERE / name).exists():
            problems.append(f"the index names {name}, which is not there")


def every_number(problems):
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \|", INDEX, re.M)]
    if numbers != list(range(1, len(numbers) + 1)) or len(numbers) < 59:
        problems.append(f"numbers are missing: {numbers}")


tap.run([
    ("every routine is called by some test", every_routine),
    ("the index names every program", every_program),
    ("every file that the index names is there", every_file),
    ("the points are numbered without a gap", every_number),
])
