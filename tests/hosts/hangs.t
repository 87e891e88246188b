#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A PE that waits long for a PE on another host reports what that PE does meanwhile, as on one host."""
import re
import subprocess
import sys

import rig

rig.enter(2)
sys.path.insert(0, str(rig.HERE.parent / "launch"))
from harness import BUILD, ENVIRONMENT, OSHRUN, case, crowd, main, patience  # noqa: E402

PHASES = str(BUILD / "tests/hosts/phases")
SECONDS = 0.5


def start(kind, hosts, seconds):
    """Starts a job whose PEs wait for PE 2, or forever, until its time is up."""
    settings = dict(ENVIRONMENT, WEFT_SSH="fakessh", WEFT_HANG_SECONDS=str(SECONDS))
    return subprocess.Popen([OSHRUN, "--timeout", str(int(seconds * crowd())), "--hosts", hosts, PHASES, kind], text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=settings)


def expect_line(kind, wanted):
    """Some line matches; PID in it stands for the process of PE 2, for which the others wait. The job ends with this
    line."""
    job, lines, found = start(kind, "h0:2,h1", 20), [], None
    for line in job.stderr:
        lines.append(line)
        found = re.search(wanted.replace("PID", r"(?P<pid>\d+)"), line)
        if found:
            break
    job.terminate()
    pids = dict(re.findall(r"^pid (\d) (\d+)$", job.communicate(timeout=patience(30))[0], re.M))
    assert job.returncode == 143, f"status {job.returncode}: {lines}"
    assert found and found["pid"] == pids["2"], (pids, lines)


BARRIER = r"PE [01] \(pid \d+ on h0\): shmem_barrier_all at \S+ \(\w+\) has waited .* for PE 2 \(pid PID on h1\), "


@case("in another call")
def other_call():
    expect_line("signal", BARRIER + "which is in shmem_signal_wait_until")


@case("in its own code")
def own_code():
    expect_line("wait", BARRIER + "which is in no call of Weft that lasts")


@case("not in shmem_init yet")
def absent():
    expect_line("init", r"shmem_init at \S+ \(\w+\) has waited .* for PE 2 \(pid PID on h1\), which has not called shmem_init")


@case("one PE alone writes the line, where some wait on several hosts")
def once():
    for kind in "wait", "signal":
        job = start(kind, "h0,h1:2", 2)
        said = job.communicate(timeout=patience(30))[1]
        assert job.returncode == 124, f"status {job.returncode}: {said}"
        lines = [line for line in said.splitlines() if re.search(r"shmem_barrier_all at .* has waited", line)]
        assert len(lines) == 1 and " on h0)" in lines[0], lines


main()
