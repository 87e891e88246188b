#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program closes descriptors that it has not opened and uses their numbers again (closed.c): nothing is lost without
oshrun and under another launcher, oshrun says once for each PE that goes on that it has lost its line to it, and
letters to far PEs, which cannot go on, end the job with a line that says why.
"""
import pathlib
import re
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / room) for room in ("boot", "launch")]
import starters  # noqa: E402
from harness import BUILD, case, main, run  # noqa: E402

CLOSED = str(BUILD / "tests/faults/closed")


@case("without oshrun")
def alone():
    result = subprocess.run([CLOSED], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, (result.returncode, result.stdout, result.stderr)


@case("under another launcher")
def torchrun():
    starters.torchrun(3, [CLOSED]).expect(0)


@case("oshrun says so once for each PE")
def said():
    """Once it is certain that they live, which takes a second."""
    result = run("-n", 2, CLOSED, 1500)
    assert result.status == 0, (result.status, result.err)
    lines = re.findall(r"^oshrun: PE (\d) \(pid \d+\) has closed descriptors that it has not opened, .*$", result.err, re.M)
    assert sorted(lines) == ["0", "1"], result.err


@case("far PEs end the job with a line that says why")
def far():
    result = run("-n", 2, "env", "WEFT_PRETEND_HOSTS=each", "WEFT_ENGINE=tcp", CLOSED)
    assert result.status in (70, 71), (result.status, result.err)
    assert "this program has closed descriptors by which letters go to far PEs" in result.err, result.err


if __name__ == "__main__":
    main()
