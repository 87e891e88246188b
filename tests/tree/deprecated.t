#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What OpenSHMEM deprecates goes in one move: without the files that docs/openshmem.md names, all
others compile, and the headers declare what is not deprecated.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

GUIDE = re.search(r"To build without.*?\n\n(.*?)\n\n", (ROOT / "docs/openshmem.md").read_text(), re.S).group(1)
FILES = re.findall(r"(?:src|include)/[\w/]+\.(?:\[ch\]|[ch])", GUIDE)
INCLUDER = "include/shmem_typed.h"


def removed():
    for name in FILES:
        if name != INCLUDER:
            stem, ending = name.rsplit(".", 1)
            yield from (pathlib.Path(f"{stem}.{letter}") for letter in ending.strip("[]"))


def strip(tree):
    for folder in ("src", "include"):
        shutil.copytree(ROOT / folder, tree / folder)
    for path in removed():
        (tree / path).unlink()
    header = tree / INCLUDER
    header.write_text(re.sub(r"#include .shmem_deprecated.h.\n", "", header.read_text()))


def compiles_without(problems):
    with tempfile.TemporaryDirectory(prefix="weft-deprecated-") as folder:
        tree = pathlib.Path(folder)
        strip(tree)
        for source in sorted([*(tree / "src/api").glob("*.c"), *(tree / "src/coll").glob("*.c")]):
            run = subprocess.run(["gcc", "-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Werror",
                                  "-Iinclude", "-Isrc", source],
                                 cwd=tree, capture_output=True, text=True)
            if run.returncode:
                problems.append(f"{source.relative_to(tree)}: {run.stderr[:300]}")
        declared = subprocess.run(["gcc", "-E", "-P", "-Iinclude", "-x", "c", "-"], cwd=tree, text=True,
                                  input="#include <shmem.h>\n", capture_output=True).stdout
    names = set(re.findall(r"\b(\w+)\(", declared))
    for line in (ROOT / "tests/api/openshmem-1.6-symbols.txt").read_text().splitlines():
        _, flag, name, _ = ["#"] * 4 if line.startswith("#") else line.split("\t")
        if name != "#" and (flag == "dep") == (name in names):
            problems.append(f"{name} is {'still' if flag == 'dep' else 'not'} declared")


tap.run([("nothing else needs what is deprecated", compiles_without)])
