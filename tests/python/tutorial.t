#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tutorial's programs, each with the command below it, print what is printed below that; lines of
several ranks come in any order."""
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402

PYTHON = interpreter.find("torch")
TEXT = (interpreter.ROOT / "docs/tutorial-python.md").read_text()
CHAPTER = re.compile(r"```python\n# (\S+)\n(.*?)```\n\n```\noshrun (-n \d+) python \1\n```\n\n```text\n(.*?)```",
                     re.DOTALL)


def program(name, code, options, expected):
    def case(problems):
        if PYTHON is None:
            raise tap.Skip("no Python from 3.11 on has torch here")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.write_text(code)
            done = subprocess.run([interpreter.BUILD / "bin/oshrun", *options.split(), PYTHON, path],
                                  capture_output=True, text=True, timeout=120,
                                  env=interpreter.environment(OMP_NUM_THREADS="1"))
        if done.returncode or sorted(done.stdout.splitlines()) != sorted(expected.splitlines()):
            problems += [f"status {done.returncode}, printed:", *done.stdout.splitlines(),
                         *done.stderr.splitlines()[-30:]]
    return (f"{name} does what it says", case)


cases = [program(*chapter) for chapter in CHAPTER.findall(TEXT)]
assert len(cases) == TEXT.count("```python"), "every program has a command and what it prints"
tap.run(cases)
