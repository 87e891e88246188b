#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What docs/migration.md and README name as a counterpart exists: C's names in the library or its headers,
Python's in the package."""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "python")]
import interpreter  # noqa: E402
import tap  # noqa: E402

ROOT = interpreter.ROOT
C_NAME = re.compile(r"(?:shmemx?|weft|SHMEMX?|WEFT)_[A-Za-z0-9_]+")
PYTHON_NAME = re.compile(r"(?:weft|Buffer|Team|Ctx|Lock)\.\w+")
LOOK = """
import importlib.util, sys, weft
for name in sys.argv[1:]:
    holder, member = name.split(".")
    known = hasattr(weft if holder == "weft" else getattr(weft, holder), member)
    if not known and not (holder == "weft" and importlib.util.find_spec(name)):
        print(name)
"""


def counterparts(document):
    """The names in back quotes in all columns but the first, of every table."""
    for line in document.read_text().splitlines():
        if line.startswith("|"):
            for cell in line.strip("|").split(" | ")[1:]:
                yield from re.findall(r"`([^`]+)`", cell)


DOCUMENTS = [ROOT / "docs/migration.md", ROOT / "README.md"]
NAMES = [name for document in DOCUMENTS for name in counterparts(document)]


def of_c(problems):
    symbols = subprocess.run(["nm", "-D", "--defined-only", interpreter.BUILD / "lib/libweft.so"], check=True,
                             capture_output=True, text=True).stdout
    known = set(symbols.split()) | set(C_NAME.findall(" ".join(
        header.read_text() for header in (ROOT / "include").rglob("*.h"))))
    found = {name for text in NAMES for name in C_NAME.findall(text)}
    problems += [f"there is no {name}" for name in sorted(found - known)]
    if len(found) < 90:
        problems.append(f"only {len(found)} names were found")


def of_python(problems):
    if not (interpreter.BUILD / "python").is_dir() or not interpreter.find():
        raise tap.Skip("the Python package is not built, or no Python from 3.11 on is here")
    found = sorted({name for text in NAMES for name in PYTHON_NAME.findall(text)})
    done = subprocess.run([interpreter.find(), "-c", LOOK, *found], capture_output=True, text=True,
                          env=interpreter.environment())
    problems += [f"there is no {name}" for name in done.stdout.split()] + done.stderr.splitlines()
    if len(found) < 60:
        problems.append(f"only {len(found)} names were found")


def is_said_plainly(problems):
    for document in DOCUMENTS[:1]:
        for number, line in enumerate(document.read_text().splitlines(), 1):
            if line.startswith("|") and re.search(r"\|\s+\|", line):
                problems.append(f"{document.name}:{number} has an empty cell")


tap.run([("C's counterparts exist", of_c), ("Python's counterparts exist", of_python),
         ("no cell is left empty", is_said_plainly)])
