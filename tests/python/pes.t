#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The package's tests under pytest: on 1 and 3 PEs (in the long form on 1 to 4), with far PEs, and the tests of calls in
checked mode. asan.t runs them on 2 PEs. Tests that pytest skips are listed with their reasons.

    tests/python/pes.t [test_rma [2]]       one file, on 2 PEs
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402

BUILD = interpreter.BUILD
PYTHON = interpreter.find("pytest")
LONG = bool(os.environ.get("WEFT_TEST_LONG"))
TESTS = sorted(str(path) for path in HERE.glob("test_*.py"))
CALLS = [str(HERE / f"test_{name}.py") for name in ("atomics", "contexts", "scans", "single", "strided", "waits")]
FAR = {"WEFT_PRETEND_HOSTS": "each", "WEFT_ENGINE": f"{BUILD}/tests/far/libweft_fake_engine.so",
       "FAKE_ENGINE": "seed=2,reorder=16"}


def on(pes, tests, **more):
    def run(problems):
        if PYTHON is None:
            raise tap.Skip("no Python from 3.10 on has pytest here")
        command = [BUILD / "bin/oshrun", "-n", str(pes), PYTHON, HERE / "run.py", *tests]
        done = subprocess.run(command, capture_output=True, text=True, env=interpreter.environment(**more),
                              timeout=240)
        lines = done.stdout.splitlines()
        for line in lines:
            if line.startswith("SKIPPED") or " passed" in line:
                print(f"# {pes} PEs: {line}")
        if done.returncode:
            problems.append(f"status {done.returncode}")
            problems += lines[-60:] + done.stderr.splitlines()[-60:]
    return run


if len(sys.argv) > 1:
    counts = [int(sys.argv[2])] if len(sys.argv) > 2 else [1, 2, 3, 4]
    tap.run([(f"{sys.argv[1]} on {pes} PEs", on(pes, [str(HERE / f"{sys.argv[1]}.py")])) for pes in counts])
tap.run([(f"tests on {pes} PEs", on(pes, TESTS)) for pes in ((1, 2, 3, 4) if LONG else (1, 3))]
        + [("tests on 2 PEs that are far", on(2, TESTS, **FAR))]
        + [("calls in checked mode on 2 PEs", on(2, CALLS, SHMEM_DEBUG="1"))])
