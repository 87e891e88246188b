#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_slice.py with memory of GPUs besides: pretended ones, on 1 to 3 PEs."""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402

BUILD = interpreter.BUILD
PYTHON = interpreter.find("pytest")


def on(pes):
    def run(problems):
        if PYTHON is None:
            print("# no Python from 3.11 on has pytest here")
            return
        environment = interpreter.environment(LD_LIBRARY_PATH=f"{BUILD}/tests/gpu/driver")
        done = subprocess.run([BUILD / "bin/oshrun", "-n", str(pes), PYTHON, HERE / "run.py", HERE / "test_slice.py"],
                              capture_output=True, text=True, env=environment, timeout=240)
        if done.returncode or "skipped" in done.stdout:
            problems.append(f"status {done.returncode}")
            problems += done.stdout.splitlines()[-60:] + done.stderr.splitlines()[-60:]
    return run


tap.run([(f"slices in memory of {pes} GPUs", on(pes)) for pes in (1, 2, 3)])
