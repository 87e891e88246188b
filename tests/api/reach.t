#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs whose PEs pretend to be on several hosts: tests/api/reach.c in several placements, over an engine that reorders
messages and delays some; and the ends of jobs that cannot start, are misused, or have lost a far PE."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from harness import BUILD, ENGINE, case, far, main, run

REACH = BUILD / "tests/api/reach"


def run_far(npes, hosts, *rest, settings="seed=3,reorder=16,delay_us=1000", **environment):
    return run("-n", npes, *far(hosts, settings), *(f"{name}={value}" for name, value in environment.items()), *rest)


def reach(npes, hosts, messages, **environment):
    result = run_far(npes, hosts, REACH, messages, **environment)
    result.expect(0, seconds_max=10)
    assert "not ok" not in result.out and "1..16" in result.out, result.out


for npes, hosts, messages in ((2, "1+1", "ab"), (3, "2+1", "aab"), (4, "2+2", "aabb"), (4, "cyclic:2", "abab"),
                             (4, "list:0,0,1,0", "aabc"), (3, "each", "abc"), (3, "3", "aaa")):
    case(f"{npes} PEs, {hosts}")(lambda npes=npes, hosts=hosts, messages=messages: reach(npes, hosts, messages))


@case("checked mode, 3 PEs, 2+1")
def checked():
    reach(3, "2+1", "aab", SHMEM_DEBUG=1)


@case("a job without far PEs opens no engine")
def no_engine():
    for npes, hosts in ((2, "none"), (2, "2"), (1, "each"), (2, "cyclic:1")):
        run("-n", npes, "env", f"WEFT_PRETEND_HOSTS={hosts}", "WEFT_ENGINE=/nonexistent", REACH, "aa").expect(0)


@case("an engine that is missing, or cannot open, is named")
def missing_engine():
    result = run("-n", 2, "-x", "WEFT_PRETEND_HOSTS=each", "-x", "WEFT_ENGINE=/nonexistent/engine.so", REACH, "ab")
    result.expect(71, "/nonexistent/engine.so")
    run_far(2, "each", REACH, "ab", settings="pe=1,fail_open=13").expect(71, "Permission denied")


@case("a placement that is invalid, or not the same on all PEs, ends the job")
def bad_placement():
    run_far(3, "2+2", REACH, "aab").expect(71, "WEFT_PRETEND_HOSTS is '2+2', whose hosts have 4 PEs, but the job has 3")
    for hosts in "none", "cyclic:2":
        result = run("-n", 2, "-x", "WEFT_PRETEND_HOSTS=1+2", "-x", f"WEFT_ENGINE={ENGINE}", REACH, "abb", ":",
                     "-n", 1, "-x", f"WEFT_PRETEND_HOSTS={hosts}", "-x", f"WEFT_ENGINE={ENGINE}", REACH, "abb")
        result.expect(71, "have different placements: set WEFT_PRETEND_HOSTS to the same value everywhere")


@case("a PE that departs has sent all its data, and no PE waits for it in vain")
def departures():
    for npes, hosts in (2, "each"), (3, "2+1"):
        run_far(npes, hosts, REACH, "leave", settings="seed=5,reorder=16,delay_us=4000").expect(0)


main()
