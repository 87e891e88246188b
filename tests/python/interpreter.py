# SPDX-License-Identifier: BSD-3-Clause
"""Selects the Python for the package's tests: WEFT_PYTHON, or the first one with pytest; and the numbers of ranks for
tests of weft.torch: WEFT_TEST_RANKS="2 3", or each of 1 to 4.
"""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")).resolve()
CANDIDATES = [os.environ["WEFT_PYTHON"]] if "WEFT_PYTHON" in os.environ else ["python3", "/usr/bin/python3"]
RANKS = [int(ranks) for ranks in os.environ.get("WEFT_TEST_RANKS", "1 2 3 4").split()]


def has(python, *modules):
    check = f"import sys, {', '.join(('os',) + modules)}; sys.exit(sys.version_info < (3, 10))"
    return subprocess.run([python, "-c", check], capture_output=True).returncode == 0


def find(*modules):
    """Returns the first Python that has these modules, or None."""
    return next((python for python in CANDIDATES if has(python, *modules)), None)


def run(problems, *command, timeout_s=300, **more):
    """Returns the output of a program that uses PyTorch, with one thread per rank; its failure is a problem."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout_s,
                          env=environment(OMP_NUM_THREADS="1", **more))
    if done.returncode:
        problems += [f"{' '.join(map(str, command))}: status {done.returncode}", *done.stdout.splitlines()[-60:],
                     *done.stderr.splitlines()[-60:]]
    return done.stdout.splitlines()


def tell(where, lines):
    """Prints the parts of pytest's output that matter: the numbers of tests by area, and the reasons of skipped tests.
    """
    for line in lines:
        if line.startswith("area "):
            print(f"# {line}")
        elif line.startswith("SKIPPED") or " passed" in line:
            print(f"# {where}: {line}")


def environment(build=BUILD, **more):
    """Returns the environment for the package in place, without another launcher's variables."""
    drop = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "WEFT_LAUNCHER",
            "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if name not in drop}
    return {**kept, "PYTHONPATH": f"{build}/python:{ROOT}/tests/python", "PYTHONDONTWRITEBYTECODE": "1", **more}
