#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Strangers at the listeners of a job that starts, or whose PEs make teams: other users that connect as fast as they
can, many silent connections, and a PE without free descriptors. Runs in a network namespace of its own, so that the
strangers find no other job's listeners."""
import contextlib
import os
import subprocess
import sys
import time
import uuid

import starters
from harness import BUILD, PE, Result, case, main, start
from starters import Job, spawn, torchrun_variables

NOBODY = 65534
FLOOD = str(BUILD / "tests/boot/flood")
SECONDS_MAX = 5


def why_not():
    if os.geteuid() != 0:
        return "only root can be another user"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True)
    return tried.stderr.strip() if tried.returncode else None


INSIDE = "WEFT_TEST_INSIDE"
REASON = None if INSIDE in os.environ else why_not()
if not REASON and INSIDE not in os.environ:
    os.execvpe("unshare", ["unshare", "--net", sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})


def stranger_case(title):
    if not REASON:
        return case(title)
    return lambda function: case(f"{title} # SKIP {REASON}")(lambda: None)


@contextlib.contextmanager
def strangers(*arguments):
    process = subprocess.Popen([FLOOD, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.kill()
        process.communicate()


LATE = "sleep_ms:200"


def start_up(npes=3):
    """Starts a job whose other PEs join after the strangers have had time to find the socket."""
    variables = torchrun_variables(npes, 29900, uuid.uuid4().hex)
    return Job([spawn([PE, *[LATE] * (pe > 0), "join", "exchange", "leave"], one) for pe, one in enumerate(variables)])


def make_teams():
    """Runs exchanges among all PEs, as for teams, with lists that begin with each of the PEs; some PEs are late for the
    first."""
    return Result(start("-n", 3, PE, "join", f"1@{LATE}", f"2@{LATE}", *(["among:0", "among:1", "among:2"] * 5), "leave"),
                  seconds_max=60)


def check_both(what):
    begin = time.monotonic()
    job = start_up().wait(60)
    seconds = time.monotonic() - begin
    assert job.status == [0, 0, 0] and seconds < SECONDS_MAX, (what, seconds, job.status, job.err)
    result = make_teams()
    assert result.status == 0 and result.seconds < SECONDS_MAX, (what, result.seconds, result.status, result.err)
    print(f"# {what}: start-up {seconds:.2f} s, 15 exchanges {result.seconds:.2f} s", flush=True)


@stranger_case("other users who come in a loop delay neither start-up nor teams")
def other_users():
    for processes in 1, 8:
        with strangers("knock", NOBODY, processes):
            check_both(f"{processes} strangers")


@stranger_case("a hundred silent connections, made anew as they are dropped, shut out nobody")
def silence():
    with strangers("hold", 100):
        check_both("100 silent")


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check_rest(pid):
    """Checks the processor time of PE 0, which after half a second has no free descriptor for 1.5 s; the other PE joins
    after 0.7 s."""
    time.sleep(0.9)
    used = processor_seconds(pid)
    time.sleep(0.8)
    used = processor_seconds(pid) - used
    assert used < 0.2, f"{used} s of processor time in 0.8 s"


@case("PE 0 without descriptors logs that once, does not spin, and continues when it has some: start-up")
def starved_start():
    variables = torchrun_variables(2, 29901, uuid.uuid4().hex)
    host = spawn([PE, "starve:1500", "join", "exchange", "leave"], variables[0])
    peer = spawn([PE, "sleep_ms:700", "join", "exchange", "leave"], variables[1])
    check_rest(host.pid)
    job = Job([host, peer]).expect(0)
    assert job.err[0].count("cannot let another PE in (accept4): Too many open files; ulimit -n is ") == 1, job.err


@case("PE 0 without descriptors logs that once, does not spin, and continues when it has some: teams")
def starved_team():
    process = start("-n", 2, PE, "join", "exchange", "0@pid", "0@starve:1500", "0@sleep_ms:700", "among:0", "leave")
    check_rest(int(process.stdout.readline().split()[1]))
    result = Result(process).expect(0, seconds_max=5)
    assert result.err.count("cannot open a pair of sockets for an exchange (socketpair): Too many open files; ulimit -n is ") == 1, result.err


main()
