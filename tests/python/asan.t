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
import tap  # noqa: E402

BUILD = interpreter.ROOT / "build/san-address-undefined"
PYTHON = interpreter.find("pytest")


def runtimes():
    found = [subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
             for name in ("libasan.so", "libubsan.so")]
    return ":".join(found)


def sanitized(problems):
    if not (BUILD / "python/weft/_core.abi3.so").exists() or PYTHON is None:
        print("# no sanitized extension (make SAN=address,undefined python), or no pytest: not tried")
        return
    # CPython itself leaks by design, so leaks are not asked for (test_leaks.py does).
    environment = interpreter.environment(BUILD, PYTHONMALLOC="malloc", ASAN_OPTIONS="detect_leaks=0")
    done = subprocess.run(
        [BUILD / "bin/oshrun", "-n", "2", "env", f"LD_PRELOAD={runtimes()}", PYTHON, HERE / "run.py",
         *sorted(path for path in HERE.glob("test_*.py") if path.name != "test_surface.py")], capture_output=True, text=True, env=environment, timeout=280)
    print(f"# {(done.stdout.splitlines() or ['nothing'])[-1]}")
    if done.returncode:
        problems += [f"status {done.returncode}", *(done.stdout + done.stderr).splitlines()[-80:]]


tap.run([("tests under the address sanitizer", sanitized)])
