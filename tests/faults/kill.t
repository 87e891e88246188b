#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A PE is killed at each of its system calls, from the loader to the end (some of them, unless WEFT_TEST_LONG is set):
the survivors name it, the job ends soon with its status, and nothing is left. The same for the launcher, whose death
ends all PEs."""
import re

from strike import LAUNCHER, SPEECHLESS_AFTER, WAITS, census, check_remains, kill_sample, main_where_traced, sample, strike
from harness import case, settled_traces, traces


# The number of these calls depends on how soon a PE finds what it waits for.
VARYING = (*WAITS, "recvmsg", "accept4")


def check_death_of_pe(result, npes, victim, phase, where):
    assert result.status == 137, f"{where}: status {result.status}: {result.err}"
    line = re.search(rf"oshrun: PE {victim} \(pid (\d+)\) was killed by signal 9 ", result.err)
    assert line and result.err.count("oshrun:") == 1, f"{where}: {result.err}"
    said = re.findall(r"weft: PE \d+ \(pid \d+\): (.*)", result.err)
    named = [text for text in said if re.search(rf"\bPE {victim} \(pid {line[1]}\)", text)]
    assert len(named) == len(said), f"{where}: something else is said: {result.err}"
    may_be_silent = phase in ("finalize", "after") or result.seconds > SPEECHLESS_AFTER
    assert may_be_silent or len(named) == npes - 1, f"{where}: not all survivors named it: {result.err}"


def kill_at(npes, victim, point):
    """Returns whether the call was made, and so the victim has died."""
    result, phase = strike(npes, victim, point, "signal=KILL")
    where = f"{victim} of {npes} PEs killed at {point}, in phase {phase}"
    if result.status == 0:
        assert victim == LAUNCHER or point.call in VARYING, f"{where}: survived"
    elif victim != LAUNCHER:
        check_death_of_pe(result, npes, victim, phase, where)
    check_remains(result, where)
    return result.status != 0


def kill_everywhere(npes, victim, count):
    before = traces()
    kill_sample(sample(census(npes, victim), count), lambda point: kill_at(npes, victim, point))
    left = settled_traces(before)
    assert not left, left


@case("PE 1 of 3 is killed at its system calls")
def in_the_middle():
    kill_everywhere(3, 1, 32)


@case("PE 0 of 2 is killed at its system calls")
def first():
    kill_everywhere(2, 0, 16)


@case("the last of more PEs than processors is killed at its system calls")
def crowded():
    kill_everywhere(5, 4, 16)


@case("the launcher is killed at its system calls")
def launcher():
    kill_everywhere(3, LAUNCHER, 16)


if __name__ == "__main__":
    main_where_traced()
