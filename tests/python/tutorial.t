#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tutorial's programs, each with its command, print the output shown below it; lines of several ranks may come in
any order. On 1 to 4 PEs each program ends without an error.
"""
import json
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


# Runs all programs one after the other, in processes that import PyTorch once: argv[1] has their code.
ALL = """
import json, sys, weft
for name, code in json.loads(sys.argv[1]):
    print(f"{name} begins", flush=True)
    exec(compile(code, name, "exec"), {"__name__": "__main__"})
    if "torch.distributed" in sys.modules and sys.modules["torch.distributed"].is_initialized():
        weft.barrier()
        sys.modules["torch.distributed"].destroy_process_group()
    print(f"{name} ends", flush=True)
"""


def run(pes, *command):
    return subprocess.run([interpreter.BUILD / "bin/oshrun", "-n", str(pes), PYTHON, *command], capture_output=True,
                          text=True, timeout=120, env=interpreter.environment(OMP_NUM_THREADS="1"))


def with_torch(test):
    def case(problems):
        if PYTHON is None:
            raise tap.Skip("no Python from 3.10 on has torch here")
        test(problems)
    return case


def program(name, code, options, expected):
    def test(problems):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.write_text(code)
            done = run(options.removeprefix("-n "), path)
        if done.returncode or sorted(done.stdout.splitlines()) != sorted(expected.splitlines()):
            problems += [f"status {done.returncode}, printed:", *done.stdout.splitlines(),
                         *done.stderr.splitlines()[-30:]]
    return (f"{name} does what it says", with_torch(test))


def on(pes, chapters):
    def test(problems):
        done = run(pes, "-c", ALL, json.dumps([(name, code) for name, code, _, _ in chapters]))
        ends = sum(line.endswith(" ends") for line in done.stdout.splitlines())
        if done.returncode or "False" in done.stdout or ends != pes * len(chapters):
            problems += [f"status {done.returncode}, {ends} ends, printed:", *done.stdout.splitlines(),
                         *done.stderr.splitlines()[-30:]]
    return (f"all programs run on {pes} PEs", with_torch(test))


CHAPTERS = CHAPTER.findall(TEXT)
assert len(CHAPTERS) == TEXT.count("```python"), "every program has a command and what it prints"
tap.run([program(*chapter) for chapter in CHAPTERS] + [on(pes, CHAPTERS) for pes in interpreter.RANKS])
