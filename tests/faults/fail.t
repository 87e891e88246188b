#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A system call of a PE fails, each from the library's first to its last (some of them, unless WEFT_TEST_LONG is set):
the job continues, or ends with a clear line; a call that fails does so on all PEs; there is never a hang or a crash.
The same for the launcher."""
from strike import LAUNCHER, LONG, census, main_where_traced, runs_or_says, sample, strike
from harness import case

ERRORS = ("ENOMEM", "EMFILE", "EINTR", "EAGAIN", "ENOSPC")
# These cannot fail with our arguments, or belong to the loader or the program; futex: the C
# library treats an error that futex cannot return as corruption.
SAFE = {"futex", "wait4", "getpid", "gettid", "sched_yield", "brk", "write", "rt_sigprocmask", "rt_sigaction",
        "set_tid_address", "set_robust_list", "rseq", "mprotect", "getppid"}


def of_the_library(points):
    """Drops the loader's calls, which end with the munmap of its cache."""
    begin = next(i for i, point in enumerate(points) if point.call == "munmap")
    return [point for point in points[begin + 1:] if point.call not in SAFE]


def fail_at(npes, victim, point, error):
    result, phase = strike(npes, victim, point, f"error={error}")
    where = f"{error} for {victim} of {npes} PEs at {point}, in phase {phase}"
    runs_or_says(result, where)


def fail_everywhere(npes, victim, count):
    points = sample(of_the_library(census(npes, victim)), count)
    problems = []
    for i, point in enumerate(points):
        for error in ERRORS if LONG else [ERRORS[i % len(ERRORS)]]:
            try:
                fail_at(npes, victim, point, error)
            except AssertionError as problem:
                problems.append(str(problem))
    print(f"# {len(points)} calls")
    assert not problems, "\n".join(problems)


@case("system calls of PE 1 of 3 fail")
def in_the_middle():
    fail_everywhere(3, 1, 20)


@case("system calls of PE 0 of 2 fail")
def first():
    fail_everywhere(2, 0, 10)


@case("system calls of the launcher fail")
def launcher():
    fail_everywhere(3, LAUNCHER, 12)


if __name__ == "__main__":
    main_where_traced()
