#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program closes descriptors that it has not opened and reuses their numbers (closed.c). Without oshrun, and under
another launcher, nothing is lost. oshrun reports once, for each PE that continues, that it has lost its connection to
the PE. Messages to far PEs, which cannot continue, end the job with an error line that says why."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / room) for room in ("boot", "launch")]
import starters  # noqa: E402
from harness import BUILD, Result, Skip, case, gone, main, read_numbers, run, start, wait_until  # noqa: E402

CLOSED = str(BUILD / "tests/faults/closed")
MUTE = str(BUILD / "tests/faults/mute")
LINE = "this program has closed descriptors of the engine that reaches far PEs"


@case("without oshrun")
def alone():
    result = subprocess.run([CLOSED], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, (result.returncode, result.stdout, result.stderr)


@case("under another launcher")
def torchrun():
    starters.torchrun(3, [CLOSED]).expect(0)


@case("oshrun says so once for each PE")
def said():
    """Returns the lines about lost connections, once it is certain that the PEs live, which takes a second."""
    result = run("-n", 2, CLOSED, 1500)
    assert result.status == 0, (result.status, result.err)
    lines = re.findall(r"^oshrun: PE (\d) \(pid \d+\) has closed descriptors that it has not opened, .*$", result.err, re.M)
    assert sorted(lines) == ["0", "1"], result.err


@case("a PE that has closed its socket to the job ends it when some PEs make a team: the others do not wait")
def mute():
    expect_mute(run("-n", 3, MUTE))
    starters.torchrun(3, [MUTE]).expect(70)


@case("it is to blame also if the launcher had no processor until all PEs had ended because of it")
def mute_unseen():
    job = start("-n", 3, MUTE, "stop")
    pids = read_numbers(job, "pid", 3)
    wait_until(lambda: all(gone(pid) for pid in pids), 20, "the end of the PEs")
    os.kill(job.pid, signal.SIGCONT)
    result = Result(job)
    expect_mute(result)
    assert "oshrun" not in result.err, result.err


def expect_mute(result):
    said = r"PE 1 .*shmemx_team_create: cannot send to the 3 members of an exchange: .*; ending the job"
    assert result.status == 71 and re.search(said, result.err), (result.status, result.err)


def expect_end(engine, statuses, line):
    with tempfile.TemporaryDirectory(prefix="weft-closed-") as folder:
        result = run("-n", 2, "env", "WEFT_PRETEND_HOSTS=each", f"WEFT_ENGINE={engine}", CLOSED, 0, folder)
        assert result.status in statuses and re.search(line, result.err), (result.status, result.err)
        for file in pathlib.Path(folder).iterdir():  # a PE may be ended before it has written all
            count = file.stat().st_size
            assert count <= 1 << 20 and file.read_bytes() == b"x" * count, f"{count} bytes of the program's file are not all its own"


@case("far PEs end the job with a line that says why, and the program's file is as it was")
def far():
    expect_end("tcp", (70, 71), LINE)


@case("so do far PEs over UCX, whose descriptors have low numbers")
def far_over_ucx():
    if not (BUILD / "lib/libweft_ucx.so").exists():
        raise Skip("there is no engine over UCX here")
    # Or UCX's own thread finds it first.
    expect_end("ucx", (70, 71, 134), rf"{LINE}|thread\.c:\d+ +Fatal: ucs_event_set_wait")


if __name__ == "__main__":
    main()
