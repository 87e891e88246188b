#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Valgrind's Memcheck reports nothing for a whole life of a job and, in the long form, for a test of each family: no
access out of bounds, no decision on undefined values, no leak. Helgrind and Massif run."""
import shutil
import sys

from strike import LONG
from harness import BUILD, Result, case, main, start

MEMCHECK = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite",
            "--show-leak-kinds=definite"]
ALWAYS = ["faults/phases"]
AT_LENGTH = ["api/amo", "api/ctx", "api/collective", "api/memory", "api/rma", "api/signal", "api/team", "api/wait", "coll/packets",
             "core/heap", "job/statics", "core/sync", "conformance/collectives", "conformance/contexts",
             "conformance/life", "conformance/locks", "conformance/teams", "conformance/threads", "ops/vectors"]


def check(name):
    result = Result(start("-n", 2, *MEMCHECK, BUILD / "tests" / name, below=["env", "-u", "WEFT_TEST_LONG"]),
                    seconds_max=1800)
    assert result.status == 0, f"{name}: status {result.status}: {result.err[-3000:]}"
    assert "==" not in result.err, f"{name}: {result.err[-3000:]}"
    print(f"# {name}: {result.seconds:.1f} s")


@case("memcheck has nothing to say")
def memcheck():
    for name in ALWAYS + AT_LENGTH if LONG else ALWAYS:
        check(name)


@case("helgrind does not count address space in reserve as memory")
def helgrind():
    """Helgrind's shadow memory is as large as the writable memory. RLIMIT_DATA bounds it, but not memory that PEs
    share."""
    limited = ["prlimit", f"--data={4 << 30}"]
    result = Result(start("-n", 2, "valgrind", "-q", "--tool=helgrind", BUILD / "tests/faults/crowd", 1, below=limited),
                    seconds_max=120)
    assert result.status == 0, f"status {result.status}: {result.err[-3000:]}"


@case("massif counts pages, where less may be reserved as weft(7) says")
def massif():
    """Massif takes some bytes and a moment for each page of address space, also for inaccessible ones."""
    limited = ["prlimit", f"--as={2 << 30}", f"--data={1 << 30}"]
    massif = ["valgrind", "-q", "--tool=massif", "--pages-as-heap=yes", "--massif-out-file=/dev/null"]
    result = Result(start("-n", 2, *limited, *massif, BUILD / "tests/faults/crowd", 0), seconds_max=60)
    assert result.status == 0, f"status {result.status}: {result.err[-3000:]}"


if __name__ == "__main__":
    if not shutil.which("valgrind"):
        print("1..0 # SKIP there is no valgrind")
        sys.exit()
    main()
