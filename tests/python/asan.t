#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The package's tests once more on two PEs, with library and extension under the address and
undefined-behaviour sanitizers, as `make check` builds them.
"""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import sanitized  # noqa: E402
import tap  # noqa: E402

PYTHON = interpreter.find("pytest")
TESTS = sorted(path for path in HERE.glob("test_*.py") if path.name != "test_surface.py")


def under_sanitizers(problems):
    if not sanitized.is_built() or PYTHON is None:
        raise tap.Skip("no sanitized extension (make SAN=address,undefined python), or no pytest")
    done = subprocess.run(
        [sanitized.BUILD / "bin/oshrun", "-n", "2", *sanitized.WRAPPER, PYTHON, HERE / "run.py", *TESTS],
        capture_output=True, text=True, env=interpreter.environment(sanitized.BUILD, **sanitized.ENVIRONMENT), timeout=280)
    print(f"# {(done.stdout.splitlines() or ['nothing'])[-1]}")
    if done.returncode:
        problems += [f"status {done.returncode}", *(done.stdout + done.stderr).splitlines()[-80:]]


tap.run([("tests under the address sanitizer", under_sanitizers)])
