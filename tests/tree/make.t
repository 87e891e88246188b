#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What make does for somebody who types it for the first time: it takes all processors and obeys a given -j; `make`
ends with what to do next and says what a missing package costs; the demo compiles for GPUs only where there is one;
`make check` says how many tests will run."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

TESTS_APART = 0.03  # of the number that is announced


def make(*words, more=""):
    """Runs make as from a shell, not as a make below another one; `more` is read behind Makefile."""
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(["make", "-f", "Makefile", "-f", "-", *words], cwd=ROOT, env=own, input=more, capture_output=True,
                          text=True, check=True).stdout


def would_run(*words):
    """The commands for a build folder that is empty."""
    return make("-n", "-B", "V=1", "BUILD=build/no-such-folder", *words)


def jobs(problems):
    here = int(subprocess.check_output(["nproc"]))  # fewer than all where a container or taskset limits them
    for words, wanted in (((), here), (("-j1",), 1), (("-j", "3"), 3)):
        flags = make(*words, "flags", more="flags:; @echo '$(MAKEFLAGS)'\n")
        if re.findall(r"-j(\d+)", flags)[-1:] != [str(wanted)]:
            problems.append(f"make {' '.join(words)} has the flags {flags}")


def ending(problems):
    for goal, wanted in ([], True), (["all"], True), (["all", "benches"], False):
        last = would_run("NVCC=", "CLANG=", *goal).splitlines()[-1]
        if bool(re.search("Next: .*make demo", last)) != wanted:
            problems.append(f"the last line of make {' '.join(goal)}: {last}")


def missing(problems):
    said = would_run("UCX=", "NVCC=", "CLANG=")
    if "optional" not in said or "TCP" not in said:
        problems.append("nothing says what the headers of UCX are for")


def demo(problems):
    compiled = [line for line in would_run("demo-program", "GPU_DEVICE=", "NVCC=no-nvcc").splitlines() if "no-nvcc" in line]
    problems += [f"without a GPU: {line}" for line in compiled]
    if "no-nvcc" not in would_run("demo-program", "GPU_DEVICE=/dev/some-gpu", "NVCC=no-nvcc"):
        problems.append("with a GPU nothing is compiled for it")


def length(problems):
    announced = int(re.search(r"runs (\d+) tests", would_run("check-begin"))[1])
    listed = subprocess.run([ROOT / "tests/run.py", "check", "-l"], capture_output=True, text=True, check=True, cwd=ROOT)
    found = len(listed.stdout.splitlines())
    if abs(announced - found) > TESTS_APART * found:
        problems.append(f"make check announces {announced} tests and runs {found}")


tap.run([("make uses all processors, or as many as -j says", jobs), ("make says what to do next", ending),
         ("and what is lost without UCX", missing), ("the demo compiles for GPUs where there is one", demo),
         ("make check says how many tests it runs", length)])
