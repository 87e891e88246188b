#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The programs of docs/python.md run as they stand, on 1, 2 and 3 PEs; fragments behind what they presume."""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "python")]
import interpreter  # noqa: E402
import tap  # noqa: E402

BEGIN = """import weft
weft.init()
team, rank, dest, source = weft.world, weft.my_pe(), weft.zeros(4), weft.zeros(4)
"""
PYTHON = interpreter.find("numpy")
TEXT = (interpreter.ROOT / "docs/python.md").read_text()
PROGRAMS = [text for text in re.findall(r"```python\n(.*?)```", TEXT, re.S) if "ipyparallel" not in text]


def run_on(pes):
    def run(problems):
        if PYTHON is None or not (interpreter.BUILD / "python").is_dir():
            raise tap.Skip("no Python from 3.10 on has numpy here, or the package is not built")
        for text in PROGRAMS:
            program = text if "import weft" in text else BEGIN + text
            done = subprocess.run([interpreter.BUILD / "bin/oshrun", "-n", str(pes), PYTHON, "-c", program],
                                  capture_output=True, text=True, env=interpreter.environment(), timeout=60)
            if done.returncode or done.stderr:
                problems += [f"status {done.returncode} of", *text.splitlines(), *done.stderr.splitlines()[-20:]]
        if len(PROGRAMS) < 3:
            problems.append(f"only {len(PROGRAMS)} programs were found")
    return run


tap.run([(f"programs of docs/python.md on {pes} PEs", run_on(pes)) for pes in (1, 2, 3)])
