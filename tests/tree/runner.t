#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The runner of tests: `make test T=...` finds every kind of test and what it needs, and reports wrong names; a program
that is not built is an error; the verdict on a test's output; makes below a make share its jobs.
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
import catalog  # noqa: E402
import matrix  # noqa: E402
import run as runner  # noqa: E402
import tap  # noqa: E402

RUN = ROOT / "tests/run.py"


def run(*words, **options):
    return subprocess.run([RUN, *words], capture_output=True, text=True, cwd=ROOT, **options)


def errors(problems):
    for name, pes, wanted in (("core/synk", "", "no test core/synk; similar names: core/sync"),
                              ("sync", "", "similar names: core/sync"), ("", "", "T=core/sync"),
                              ("core/loop", "", "core/loop is a program of other tests: boot/death"),
                              ("core/sync", "two", "N=two is not a number"),
                              ("boot/subset", "7", "boot/subset does not run on 7 PEs, but on ")):
        ended = run("test", "--", name, pes, "", "false")  # a make that fails: nothing may get as far
        if ended.returncode != 2 or wanted not in ended.stderr or ended.stderr.count("\n") != 1:
            problems.append(f"{name} {pes}: status {ended.returncode}, {ended.stderr[:200]}")


def needed(problems):
    for asked, wanted in (("core/sync", {"b/tests/core/sync"}), ("tests/core/sync.c", {"b/tests/core/sync"}),
                          ("boot/death.t", {"all", "b/tests/boot/pe", "b/tests/core/loop"}),
                          ("faults/kill", {"all", "b/tests/faults/phases"}), ("python/test_rma", {"all", "python"}),
                          ("gpu/cuda", {"b/tests/gpu/cuda", "b/tests/gpu/driver/libcuda.so.1"}),
                          ("ucx/contract", {"all", "b/tests/ucx/contract"}),
                          ("conformance/index", {"b/tests/conformance/cxx", "b/tests/api/rma"})):
        targets = catalog.needs(catalog.resolve(asked), "b")
        if not wanted | {"b/bin/oshrun"} <= targets:
            problems.append(f"{asked} lacks {wanted - targets}")


def unbuilt(problems):
    with tempfile.TemporaryDirectory(prefix="weft-runner-") as folder:
        words = ["check-far", "-b", folder, "-f", "far/bundles"]
        for step, wanted in ((lambda: None, "bin/oshrun is not there"),
                             (lambda: (pathlib.Path(folder) / "bin").mkdir() or
                              shutil.copy("/bin/true", f"{folder}/bin/oshrun"), "tests/far/bundles first")):
            step()
            ended = run(*words)
            if ended.returncode != 2 or wanted not in ended.stderr or "make test T=" not in ended.stderr:
                problems.append(f"status {ended.returncode}, {ended.stderr[:300]}")
        ended = run("check-far", "-b", folder, "-f", "no/such")
        if ended.returncode != 2 or "no test matches 'no/such'" not in ended.stderr:
            problems.append(f"status {ended.returncode}, {ended.stderr[:300]}")


def rows(problems):
    """Each goal has rows, and each expression of the table fits a test."""
    for goal in "check", "check-all", "check-far", "check-hosts", "check-gpu":
        problems += [f"{goal}: no test is like {test}" for row in matrix.rows(goal) for test in row.tests
                     if not any(re.match(test, name) for name in catalog.all_tests())]


def judged(problems):
    for text, cases, bad, skips in (("ok 1 - a\nok 2 - b\n1..2\n", 2, "", []),
                                    ("1..2\nok 1 - a\nok 2 - b # SKIP no b here\n", 2, "", ["no b here"]),
                                    ("1..0 # SKIP no strace\n", 0, "", ["no strace"]),
                                    ("ok 1 - a\nnot ok 2 - b\n1..2\n", 2, "not ok - b", []),
                                    ("ok 1 - a\n", 1, "without its plan", []), ("", 0, "without its plan", []),
                                    ("1..3\nok 1 - a\n", 1, "3 cases were planned, 1 ran", []),
                                    ("# not ok at all\n okay\n1..0\n", 0, "", [""])):
        found = runner.read_cases(text)
        if found[0] != cases or bool(bad) != bool(found[1]) or bad not in "".join(found[1]) or found[2] != skips:
            problems.append(f"{text!r}: {found}")


def ended(problems):
    """What a run of two tests reports: oshrun is a stand-in, which fails one of them by its status alone."""
    with tempfile.TemporaryDirectory(prefix="weft-runner-") as folder:
        for name in "bin", "tests/far":
            (pathlib.Path(folder) / name).mkdir(parents=True)
        for name in "bundles", "busy", "libweft_fake_engine.so":
            shutil.copy("/bin/true", f"{folder}/tests/far/{name}")
        oshrun = pathlib.Path(folder) / "bin/oshrun"
        oshrun.write_text('#!/bin/sh\necho "ok 1 - a\nok 2 - b # SKIP no b here\n1..2"\necho a reason >&2\n'
                          'case "$*" in *far/bundles) exit 3;; esac\n')
        oshrun.chmod(0o755)
        for words, status, wanted in ((["-f", "far/bundles"], 1, ["status 3", "a reason", "Result: FAIL", "skipped 1: no b here"]),
                                      (["-f", "far/busy"], 0, ["Result: PASS", "skipped"])):
            seen = run("check-far", "-b", folder, *words)
            if seen.returncode != status or not all(word in seen.stdout for word in wanted):
                problems.append(f"{words}: status {seen.returncode}: {seen.stdout[-600:]}{seen.stderr[-300:]}")


def gpu_parts(problems):
    """A stand-in for oshrun fails: all parts run in spite of that, and the whole fails."""
    with tempfile.TemporaryDirectory(prefix="weft-runner-") as folder:
        (pathlib.Path(folder) / "tests").symlink_to(ROOT / "build/tests")
        (pathlib.Path(folder) / "bin").mkdir()
        shutil.copy("/bin/false", f"{folder}/bin/oshrun")
        for settings, wanted in (((), {"1", "2", "3", "4"}), (("PART=2",), {"2"})):
            dry = subprocess.run(["make", "-n", "--no-print-directory", "check-gpu", f"BUILD={folder}", *settings], cwd=ROOT,
                                 capture_output=True, text=True, check=True)
            line = next(line for line in dry.stdout.splitlines() if "tests/run.py" in line)
            ran = subprocess.run(["sh", "-c", f"{line} -f gpu/blocks-"], cwd=ROOT, capture_output=True, text=True)
            counts = set(re.findall(r"^FAILED gpu/blocks-(\d)pe", ran.stdout, re.M))
            if ran.returncode == 0 or counts != wanted:
                problems.append(f"{settings}: status {ran.returncode}, tests on {sorted(counts)} PEs, not on "
                                f"{sorted(wanted)}: {ran.stdout[-300:]}{ran.stderr[:200]}")


def parallel(problems):
    """Make gives a make below it its jobs if the line says $(MAKE), or begins with +."""
    for file in ROOT / "Makefile", *(ROOT / "mk").glob("*.mk"):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if re.match(r"\t@?\$\(PARALLEL\)", line):
                problems.append(f"{file.name}:{number}: without + this builds with one job: {line.strip()}")


tap.run([
    ("a wrong name, or number of PEs, is one line that names similar ones", errors),
    ("a test gets the programs and tools that it needs", needed),
    ("what is not built is an error before all tests", unbuilt),
    ("every row of tests/matrix.txt has tests", rows),
    ("a test's output is judged by its cases and its plan", judged),
    ("a test that ends with a status fails, and skips are counted with their reasons", ended),
    ("make check-gpu runs all parts although one fails, and fails", gpu_parts),
    ("a make below another one shares its jobs", parallel),
])
