#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A PE that oshrun has not started is killed at its system calls (some of them, unless WEFT_TEST_LONG is set): the
others name it and end soon, or their launcher ends them, and nothing is left.

Before the PEs have met, only a launcher can notice a death: stand-ins for launchers, which do not watch their
processes, are struck later. A PE may make more calls before it has met the others than in the traced run, and then dies
earlier than intended."""
import re
import signal
import subprocess

from strike import census, check_remains, kill_sample, last_phase, main_where_traced, next_phase, sample, strike, traced_so_far
import starters
from harness import case, leftovers, settled_leftovers

NPES, VICTIM = 3, 1
LAUNCHER_S = 20  # then it counts as hanging
UNMET, PARTING = ("load", "init"), ("finalize", "after")


def following(phase, line):
    """The first message that a PE receives in shmem_init means that all PEs have arrived."""
    heard = phase == "init" and re.search(r"recvmsg\(.* = [1-9]|<... recvmsg resumed>.* = [1-9]", line)
    return "met" if heard else next_phase(phase, line)


def at_most_a_minute(way):
    """Allows for a launcher that waits although no process of its job is left: Open MPI 4.1 sometimes does, if a PE
    dies while it registers with mpirun."""
    def run(npes, command):
        job = way(npes, command)
        launcher = job.processes[0]
        try:
            launcher.wait(LAUNCHER_S)
        except subprocess.TimeoutExpired:
            if {pid for pid, *_ in leftovers()} == {launcher.pid}:
                print(f"# no PE is left, but {launcher.args[0]} is")
                launcher.kill()
        return job.wait(60)
    return run


def looked_after(way):
    """Ends the others, as a launcher would, if the victim died before they had met."""
    def run(npes, command):
        job = way(npes, command)
        died = job.processes[VICTIM].wait(60) == -signal.SIGKILL
        if died and last_phase(traced_so_far(command), following) in UNMET:
            for process in job.processes:
                process.kill()
        return job.wait(60)
    return run


def check_survivors(job, phase, where):
    """Checks the survivors, which are processes of the test itself here."""
    name = rf"weft: PE \d \(pid \d+\): .*PE {VICTIM} \(pid {job.processes[VICTIM].pid}\) (?:died|ended)"
    for pe in set(range(NPES)) - {VICTIM}:
        ended = job.status[pe] == 70 and re.match(name, job.err[pe])
        assert ended or (phase in PARTING and job.status[pe] == 0), f"{where}: PE {pe}: {job.status} {job.err}"


def kill_at(point, way, pretended):
    """Returns whether the call was made, and so the victim has died."""
    job, phase = strike(NPES, VICTIM, point, "signal=KILL", way=way, following=following)
    where = f"killed at {point}, in phase {phase}"
    dead = any(job.status) and not (pretended and phase in UNMET)
    if pretended and dead:
        assert job.status[VICTIM] == -signal.SIGKILL, f"{where}: {job.status} {job.err}"
        check_survivors(job, phase, where)
        check_remains(job, where)
    left = settled_leftovers(10)  # other launchers' own time limit
    assert not left, f"{where}: still running: {left}"
    return dead


def kill_everywhere(way, pretended, count):
    way = (looked_after if pretended else at_most_a_minute)(way)
    points = census(NPES, VICTIM, way=way, following=following)
    points = sample([point for point in points if not pretended or point.phase not in UNMET], count)
    kill_sample(points, lambda point: kill_at(point, way, pretended))


for title, way in (("a PMI-1 manager", starters.pmi1_manager), ("torchrun's variables", starters.torchrun)):
    case(f"killed at its system calls: a PE of {title}")(lambda way=way: kill_everywhere(way, True, 12))

for title, (found, way) in starters.INSTALLED.items():
    @case(f"killed at its system calls: a PE of {title}" + ("" if found else " # SKIP not installed"))
    def installed(found=found, way=way):
        if found:
            kill_everywhere(way, False, 6)


main_where_traced()
