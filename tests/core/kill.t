#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The PEs or the launcher of a looping program are killed at random moments: the job ends within two seconds, the
survivors name the dead PE, and nothing is left: no process, no name in /dev/shm or /tmp, no socket.
Far: also.
"""
import os
import pathlib
import random
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from harness import BUILD, Result, case, main, patience, read_numbers, settled_leftovers, settled_traces, start, traces

TURNS = 50
LOOP = str(BUILD / "tests/core/loop")


def begin(turn):
    """A job of 2, 3 or 4 PEs, at a random moment of its loop; its PEs' pids."""
    npes = 2 + turn % 3
    job = start("-n", npes, LOOP)
    pids = read_numbers(job, "pid", npes)
    time.sleep(random.random() * 0.2)
    return job, pids


@case(f"{TURNS} times a random PE is killed: the survivors name it and end")
def kill_pe():
    random.seed(3)
    before = traces()
    unnamed = 0
    for turn in range(TURNS):
        job, pids = begin(turn)
        victim = random.choice(pids)
        os.kill(victim, signal.SIGKILL)
        result = Result(job)
        assert result.status == 137, f"turn {turn}: status {result.status}: {result.err}"
        assert result.seconds < patience(2), f"turn {turn}: took {result.seconds} s"
        assert f"(pid {victim}) was killed by signal 9" in result.err, result.err
        survivors = re.findall(r"weft: PE \d+ \(pid \d+\): in \w+: PE \d+ \(pid (\d+)\)", result.err)
        unnamed += len(survivors) < len(pids) - 1
        assert all(int(pid) == victim for pid in survivors), result.err
        assert not settled_leftovers(), f"turn {turn}: {settled_leftovers()}"
    left = settled_traces(before)
    assert not left, left
    # A survivor that computes, or is not in a wait at the end of the grace period, logs nothing.
    assert unnamed <= TURNS // 10, f"{unnamed} of {TURNS} jobs had survivors that named nobody"


@case(f"{TURNS} times the launcher is killed: its PEs end with it")
def kill_launcher():
    random.seed(4)
    before = traces()
    for turn in range(TURNS):
        job, _ = begin(turn)
        begun = time.monotonic()
        job.kill()
        job.communicate(timeout=5)
        assert not settled_leftovers(2.0), f"turn {turn}: {settled_leftovers()}"
        assert time.monotonic() - begun < patience(2), f"turn {turn}: took {time.monotonic() - begun} s"
    left = settled_traces(before)
    assert not left, left


main()
