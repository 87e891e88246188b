#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A PE that oshrun has not started is killed at its system calls (at some of them, unless WEFT_TEST_LONG
is set): the others name it and end soon, or their launcher ends them, and nothing is left.

Before the PEs have met nobody but a launcher can know of a death: stand-ins for launchers, which do
not look after their processes, are struck later.
"""
import re

from strike import census, check_remains, main_where_traced, sample, strike
import starters
from harness import case, settled_leftovers

NPES, VICTIM = 3, 1
UNMET, PARTING = ("load", "init"), ("finalize", "after")


def at_most_a_minute(way):
    return lambda npes, command: way(npes, command).wait(60)


def check_survivors(job, phase, where):
    """Each survivor is a process of the test's own here."""
    name = rf"weft: PE \d \(pid \d+\): .*PE {VICTIM} \(pid {job.processes[VICTIM].pid}\) (?:died|ended)"
    for pe in set(range(NPES)) - {VICTIM}:
        ended = job.status[pe] == 70 and re.match(name, job.err[pe])
        assert ended or (phase in PARTING and job.status[pe] == 0), f"{where}: PE {pe}: {job.status} {job.err}"


def kill_everywhere(way, pretended, count):
    way, hits = at_most_a_minute(way), 0
    points = [point for point in census(NPES, VICTIM, way=way) if not pretended or point.phase not in UNMET]
    points = sample(points, count)
    for point in points:
        job, phase = strike(NPES, VICTIM, point, "signal=KILL", way=way)
        where = f"killed at {point}, in phase {phase}"
        dead = any(job.status)
        if pretended and dead:
            assert job.status[VICTIM] == -9, f"{where}: {job.status} {job.err}"
            check_survivors(job, phase, where)
            check_remains(job, where)
        left = settled_leftovers(10)  # how long another launcher takes is not up to us
        assert not left, f"{where}: still running: {left}"
        hits += dead
    print(f"# {hits} deaths at {len(points)} points")
    assert hits >= len(points) // 2, "too few deaths"


for title, way in (("a PMI-1 manager", starters.pmi1_manager), ("torchrun's variables", starters.torchrun)):
    case(f"killed at its system calls: a PE of {title}")(lambda way=way: kill_everywhere(way, True, 12))

for title, (found, way) in starters.INSTALLED.items():
    @case(f"killed at its system calls: a PE of {title}" + ("" if found else " # SKIP not installed"))
    def installed(found=found, way=way):
        if found:
            kill_everywhere(way, False, 6)


main_where_traced()
