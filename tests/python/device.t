#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The package's tests of GPU memory on the pretended driver, on 1 and 2 PEs."""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402

DRIVER = interpreter.BUILD / "tests/gpu/driver"
PYTHON = interpreter.find("pytest")


def on(pes):
    def run(problems):
        if PYTHON is None or not (DRIVER / "libcuda.so.1").exists():
            raise tap.Skip("no pytest, or no pretended driver (make tests)")
        done = subprocess.run([interpreter.BUILD / "bin/oshrun", "-n", str(pes), PYTHON, HERE / "run.py",
                               HERE / "test_device.py", HERE / "test_slice.py"], capture_output=True, text=True, timeout=120,
                              env=interpreter.environment(LD_LIBRARY_PATH=str(DRIVER)))
        lines = done.stdout.splitlines()
        print(f"# {pes} PEs: {lines[-1] if lines else 'nothing'}")
        if done.returncode or "skipped" in done.stdout:
            problems += [f"status {done.returncode}", *lines[-60:], *done.stderr.splitlines()[-60:]]
    return run


tap.run([(f"GPU memory on {pes} PEs", on(pes)) for pes in (1, 2)])
