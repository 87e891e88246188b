#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the Python tests of weft.torch with PyTorch as a user installs it, one version after the other:

    [WEFT_TEST_RANKS="2"] python3 tests/python/check_torch.py build 2.11.0 2.13.0 newest

Each version gets its own virtual environment below the build folder, which is removed before the next version. A test
that could not run is a SKIP with its reason. Prints TAP, after each version a row for the table in docs/torch.md, and
at the end one line with the numbers of passed, failed and skipped cases. The number of ranks does not depend on the
version, so one number is enough for most versions.
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import interpreter  # noqa: E402

SCRIPTS = ("python/torch", "python/torch_backend", "python/torch_handler", "python/torch_process_group",
           "python/triton", "python/tutorial", "hosts/python")
BESIDE = ("numpy", "pytest", "hypothesis", "mypy", "setuptools")  # required by the tests
ROOM_BYTES = 10 * 10**9
TRIES = 3
TABLE = ("install", "alike", "names", "memory", "operators", "gradients", "compile", "opcheck", "registry", "handler",
         "groups", "tutorial")
OWN = {"python/torch_backend": "install", "python/tutorial": "tutorial"}  # their cases are counted, not pytest's
AREA = re.compile(r"# area (.+): (\d+) passed, (\d+) skipped")
ALIKE = re.compile(r"# .*: (\d+) of (\d+) functions alike on .*, (\d+) not compared")
OUTCOME = re.compile(r"(ok|not ok) \d+ - (.*?)(?: # SKIP (.*))?$")


class Tally:
    """The results of all cases so far."""

    def __init__(self):
        self.cases = collections.Counter()

    def case(self, name, kind, reason=""):
        self.cases[kind] += 1
        said = f" # SKIP {reason}" if kind == "skipped" else ""
        print(f"{'not ok' if kind == 'failed' else 'ok'} {self.cases.total()} - {name}{said}", flush=True)


# --- An environment -----------------------------------------------------------------------------------

def run(*command, **more):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)


def install(folder, version):
    """Returns the environment's Python, or the reason why there is none."""
    wanted = "torch" if version == "newest" else f"torch=={version}"
    done = run(interpreter.find("venv", "ensurepip"), "-m", "venv", folder)
    for turn in range(TRIES if done.returncode == 0 else 0):
        time.sleep(10 * turn)
        done = run(folder / "bin/python", "-m", "pip", "install", "--disable-pip-version-check", wanted, *BESIDE)
        if done.returncode == 0:
            return folder / "bin/python", None
    return None, done.stdout[-2000:]


def version_of(python):
    return run(python, "-c", "import torch; print(torch.__version__.partition('+')[0])").stdout.split()[-1]


# --- Its tests ----------------------------------------------------------------------------------------

def lines_of(script, python, cache):
    """Yields the lines that a test script prints."""
    environment = {**os.environ, "WEFT_PYTHON": str(python), "XDG_CACHE_HOME": str(cache)}
    done = run(HERE.parent / f"{script}.t", env=environment)
    return done.returncode, done.stdout.splitlines()


def count(areas, line):
    """Adds a line to the row of the table."""
    if found := AREA.match(line):
        areas[found[1]].update(passed=int(found[2]), skipped=int(found[3]))
    if found := ALIKE.match(line):
        areas["alike"].update(passed=int(found[1]), failed=int(found[2]) - int(found[1]), skipped=int(found[3]))


def cell(counts):
    shown = [f"{counts[kind]} {kind}" for kind in ("failed", "skipped") if counts[kind]]
    return ", ".join([str(counts["passed"]), *shown])


def report(tally, version, script, status, lines, areas):
    """Reports the script's cases."""
    found = [outcome for outcome in map(OUTCOME.match, lines) if outcome]
    for line in lines:
        count(areas, line)
        if outcome := OUTCOME.match(line):
            kind = "skipped" if outcome[3] else "passed" if outcome[1] == "ok" else "failed"
            if script in OWN and ".py on " not in outcome[2]:
                areas[OWN[script]][kind] += 1
            tally.case(f"torch {version}: {outcome[2]}", kind, outcome[3])
        elif not line.startswith("1.."):
            print(line if line.startswith("#") else f"# {line}")
    if not found or (status and all(outcome[1] == "ok" for outcome in found)):
        tally.case(f"torch {version}: {script}.t ends with status {status}", "failed")


def test(tally, version, python, folder):
    areas = collections.defaultdict(collections.Counter)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        started = [(script, pool.submit(lines_of, script, python, folder / "cache")) for script in SCRIPTS]
        for script, future in started:
            report(tally, version, script, *future.result(), areas)
    print("# | PyTorch | " + " | ".join(TABLE) + f" |\n# | {version} | " + " | ".join(
        cell(areas[name]) for name in TABLE) + " |", flush=True)


def check(tally, build, asked):
    folder = build / "check-torch"
    shutil.rmtree(folder, ignore_errors=True)
    free = shutil.disk_usage(build).free
    if free < ROOM_BYTES:
        tally.case(f"torch {asked}", "skipped", f"{free / 10**9:.1f} GB are free below {build}, and 10 are needed")
        return
    began = time.monotonic()
    python, failure = install(folder, asked)
    if python is None:
        print(*[f"# {line}" for line in failure.splitlines()], sep="\n")
        tally.case(f"torch {asked} can be installed, at try {TRIES}", "failed")
    else:
        version = version_of(python)
        tally.case(f"torch {asked} is installed: {version}, in {time.monotonic() - began:.0f} s", "passed")
        test(tally, version, python, folder)
        print(f"# torch {version}: {time.monotonic() - began:.0f} s with its installation")
    shutil.rmtree(folder, ignore_errors=True)


def main():
    build, versions = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] or ["newest"]
    os.environ["WEFT_BUILD"] = str(build)
    tally = Tally()
    if interpreter.find("venv", "ensurepip") is None:
        tally.case("torch", "skipped", "no Python from 3.10 on has venv and ensurepip here")
        versions = []
    for asked in versions:
        check(tally, build, asked)
    cases = tally.cases
    print(f"1..{cases.total()}\ncheck-torch: {cases['passed']} passed, {cases['failed']} failed, "
          f"{cases['skipped']} skipped")
    return 1 if cases["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
