#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A PE writes random garbage over the control page, which the whole job shares, and continues: no process crashes or
hangs, neither a PE that ends nor the launcher. The job's report of its end may be garbage, too. WEFT_TEST_SEED repeats
a run."""
import os
import time

from strike import LONG, check_remains
import starters
from harness import BUILD, Result, case, main, start

GARBAGE = str(BUILD / "tests/faults/garbage")
SEED = int(os.environ.get("WEFT_TEST_SEED", time.time_ns() % 1000000 if LONG else 1))
TIMES = 1000 if LONG else 20
DEADLY = (4, 6, 7, 8, 11)  # signals of a crash


def draws():
    """Returns seeds, with few wild stores and with many, before more calls and just before the end."""
    print(f"# WEFT_TEST_SEED={SEED}")
    for turn in range(TIMES):
        yield [SEED + turn, (400, 5, 1)[turn % 3], ("early", "late")[turn // 3 % 2]]


@case("under oshrun")
def launched():
    for drawn in draws():
        result = Result(start("-n", 3, GARBAGE, *drawn), seconds_max=20)
        assert result.status >= 0, (drawn, result.status, result.err)  # a signal would be negative
        assert not any(f"by signal {number} (" in result.err or f"by signal {number} after" in result.err
                       for number in DEADLY), (drawn, result.err)
        check_remains(result, str(drawn))


@case("under another launcher, where the PEs watch over each other")
def guarded():
    for drawn in draws():
        job = starters.torchrun(3, [GARBAGE, *drawn]).wait(20)
        # A signal would be negative. The exit status itself may be garbage.
        assert all(status >= 0 for status in job.status), (drawn, job.status, job.err)


main()
