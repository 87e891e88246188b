#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PEs and the launcher are stopped (SIGSTOP) at random moments and continued later: no process is taken for dead, all
results are right, and the job still ends as it should."""
import os
import random
import signal
import time

from strike import MEMORY_MIB, LONG, check_remains
from harness import BUILD, Result, case, gone, main, read_numbers, start, wait_until

CROWD = str(BUILD / "tests/faults/crowd")
NPES = 4
RUN_MS = 20000 if LONG else 1000
SEED = int(os.environ.get("WEFT_TEST_SEED", time.time_ns() % 1000000 if LONG else 1))


def begin():
    job = start("-n", NPES, CROWD, RUN_MS)
    return job, read_numbers(job, "pid", NPES)


def pause(pids, seconds):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def disturb(choose):
    """Stops processes of a job that `choose` selects, again and again until the job has ended."""
    print(f"# WEFT_TEST_SEED={SEED}")
    lots, stops = random.Random(SEED), 0
    job, pids = begin()
    while job.poll() is None:
        chosen = [pid for pid in choose(lots, job, pids) if not gone(pid)]
        try:
            pause(chosen, lots.random() * 0.1)
        except ProcessLookupError:
            pass  # the process may have ended in between
        stops += 1
        time.sleep(lots.random() * 0.02)
    result = Result(job, seconds_max=120)
    assert result.status == 0 and not result.err, (result.status, result.err)
    check_remains(result, "a disturbed job")
    print(f"# {stops} stops")


@case("a PE that is stopped now and then")
def one():
    disturb(lambda lots, job, pids: [lots.choice(pids)])


@case("several PEs and the launcher, all at once too")
def several():
    disturb(lambda lots, job, pids: lots.sample([job.pid, *pids], 1 + lots.randrange(NPES + 1)))


@case("a PE dies while the launcher is stopped: the job ends when it goes on, and only that is said")
def death_unseen():
    """A PE dies while the launcher is stopped; by then a survivor holds its mutex."""
    job, pids = begin()
    os.kill(job.pid, signal.SIGSTOP)
    os.kill(pids[1], signal.SIGKILL)
    time.sleep(0.2)
    os.kill(job.pid, signal.SIGCONT)
    result = Result(job, seconds_max=30)
    assert result.status == 137 and f"(pid {pids[1]}) was killed by signal 9" in result.err, (result.status, result.err)
    assert result.err.count("oshrun:") == 1, result.err
    check_remains(result, "a death unseen")


@case("the launcher is killed while all PEs are stopped: they end all the same")
def launcher_dies():
    job, pids = begin()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    job.kill()
    wait_until(lambda: all(map(gone, pids)), 10, "stopped PEs end with the launcher")
    check_remains(Result(job), "a launcher that was killed")


@case("a job with a stopped PE ends by SIGTERM or SIGINT to the launcher")
def told():
    for number in (signal.SIGTERM, signal.SIGINT):
        job, pids = begin()
        os.kill(pids[2], signal.SIGSTOP)
        job.send_signal(number)
        result = Result(job, seconds_max=30)
        assert result.status == 128 + number, (number, result.status, result.err)
        check_remains(result, f"signal {number}")


main(MEMORY_MIB)
