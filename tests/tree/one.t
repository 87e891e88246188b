#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`make test T=...`: it finds every kind of test and what that needs, and says what is wrong with a name;
prove.sh says what is not built; builds for tests are parallel.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import one  # noqa: E402
import tap  # noqa: E402

TESTS = one.all_tests()


def errors(problems):
    for arguments, wanted in ((["core/synk", ""], "no test core/synk; near it: core/sync"),
                              (["sync", ""], "near it: core/sync"), (["", ""], "T=core/sync"),
                              (["core/loop", ""], "core/loop is a program of other tests: boot/death"),
                              (["core/sync", "two"], "N=two is not a number"),
                              (["boot/subset", "7"], "boot/subset does not run on 7 PEs, but on ")):
        # A make that fails: nothing must come as far.
        run = subprocess.run([ROOT / "tests/one.py", *arguments, "", "build", "false"], capture_output=True, text=True)
        if run.returncode != 1 or wanted not in run.stderr or run.stderr.count("\n") != 1:
            problems.append(f"{arguments}: status {run.returncode}, {run.stderr[:200]}")


def needed(problems):
    for asked, wanted in (("core/sync", {"b/tests/core/sync"}), ("tests/core/sync.c", {"b/tests/core/sync"}),
                          ("boot/death.t", {"all", "b/tests/boot/pe", "b/tests/core/loop"}),
                          ("faults/kill", {"all", "b/tests/faults/phases"}), ("python/test_rma", {"all", "python"}),
                          ("gpu/cuda", {"b/tests/gpu/cuda", "b/tests/gpu/driver/libcuda.so.1"}),
                          ("ucx/contract", {"all", "b/tests/ucx/contract"}),
                          ("conformance/index", {"b/tests/conformance/cxx", "b/tests/api/rma"})):
        targets = one.needs(one.resolve(asked, TESTS), TESTS, "b")
        if not wanted | {"b/bin/oshrun"} <= targets:
            problems.append(f"{asked} lacks {wanted - targets}")


def unbuilt(problems):
    with tempfile.TemporaryDirectory(prefix="weft-one-") as folder:
        prove = [ROOT / "tests/prove.sh", "-f", "core/sync"]
        for step, wanted in ((lambda: None, "bin/oshrun is not there"),
                             (lambda: (pathlib.Path(folder) / "bin").mkdir() or
                              shutil.copy("/bin/true", f"{folder}/bin/oshrun"), "tests/core/sync first")):
            step()
            run = subprocess.run([*prove, folder], capture_output=True, text=True)
            if run.returncode != 2 or wanted not in run.stderr or "make test T=" not in run.stderr:
                problems.append(f"status {run.returncode}, {run.stderr[:300]}")
        run = subprocess.run([ROOT / "tests/prove.sh", "-f", "no/such", folder], capture_output=True, text=True)
        if run.returncode != 2 or "no test matches 'no/such'" not in run.stderr:
            problems.append(f"status {run.returncode}, {run.stderr[:300]}")


def commands_of(goal, *settings):
    """The command lines of a make goal that run prove.sh."""
    run = subprocess.run(["make", "-n", "--no-print-directory", goal, *settings], cwd=ROOT, capture_output=True,
                         text=True, check=True)
    return [line.lstrip("@") for line in run.stdout.splitlines() if "tests/prove.sh" in line]


def gpu_parts(problems):
    """A stand-in for prove fails, and prints the tests that it has been given."""
    with tempfile.TemporaryDirectory(prefix="weft-one-") as folder:
        (pathlib.Path(folder) / "tests").symlink_to(ROOT / "build/tests")
        (pathlib.Path(folder) / "bin").symlink_to(ROOT / "build/bin")
        stand_in = pathlib.Path(folder) / "prove"
        stand_in.write_text('#!/bin/sh\necho "$@"\nexit 1\n')
        stand_in.chmod(0o755)
        for settings, wanted in (((), {"1", "2", "3", "4"}), (("PART=2",), {"2"})):
            lines = commands_of("check-gpu", f"BUILD={folder}", *settings)
            run = subprocess.run(["sh", "-c", "\n".join(lines)], cwd=ROOT, capture_output=True, text=True,
                                 env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"})
            counts = set(re.findall(r"/gpu-\w+-(\d)pe\.t", run.stdout))
            if run.returncode == 0 or counts != wanted:
                problems.append(f"{settings}: status {run.returncode}, tests on {sorted(counts)} PEs, not on "
                                f"{sorted(wanted)}: {run.stderr[:200]}")


def parallel(problems):
    """Make gives a make below it its jobs if the line says $(MAKE), or begins with +."""
    for number, line in enumerate((ROOT / "Makefile").read_text().splitlines(), 1):
        if re.match(r"\t@?\$\(PARALLEL\)", line):
            problems.append(f"Makefile:{number}: without + this builds with one job: {line.strip()}")


tap.run([
    ("a wrong name, or number of PEs, is one line that names near ones", errors),
    ("a test gets the programs and tools that it needs", needed),
    ("what is not built is an error ahead of all tests", unbuilt),
    ("make check-gpu runs all parts although one fails, and fails", gpu_parts),
    ("a make below another one shares its jobs", parallel),
])
