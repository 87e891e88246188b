#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Who waits for a PE on another host for long says what that PE does meanwhile, as on one host."""
import re
import subprocess
import sys

import rig

rig.enter(2)
sys.path.insert(0, str(rig.HERE.parent / "launch"))
from harness import BUILD, ENVIRONMENT, OSHRUN, case, main, patience  # noqa: E402

PHASES = str(BUILD / "tests/hosts/phases")
SECONDS = 0.5


def lines_of(kind, hosts="h0:2,h1"):
    """What PEs of a job say until its time is up."""
    settings = dict(ENVIRONMENT, WEFT_SSH="fakessh", WEFT_HANG_SECONDS=str(SECONDS))
    command = [OSHRUN, "--timeout", str(int(patience(2))), "--hosts", hosts, PHASES, kind]
    result = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, capture_output=True, env=settings,
                            timeout=patience(30))
    assert result.returncode == 124, f"status {result.returncode}: {result.stderr}"
    pids = dict(re.findall(r"^pid (\d) (\d+)$", result.stdout, re.M))
    return pids, [line for line in result.stderr.splitlines() if "has waited" in line]


def expect_line(kind, wanted):
    """Some line matches; PID in it stands for the process of PE 2, which the others wait for."""
    pids, lines = lines_of(kind)
    pattern = wanted.replace("PID", pids["2"])
    assert any(re.search(pattern, line) for line in lines), lines


BARRIER = r"PE [01] \(pid \d+ on h0\): shmem_barrier_all has waited .* for PE 2 \(pid PID on h1\), "


@case("in another call")
def other_call():
    expect_line("signal", BARRIER + "which is in shmem_signal_wait_until")


@case("in its own code")
def own_code():
    expect_line("wait", BARRIER + "which is in no call of Weft that lasts")


@case("not in shmem_init yet")
def absent():
    expect_line("init", r"shmem_init has waited .* for PE 2 \(pid PID on h1\), which has not called shmem_init")


@case("one PE alone writes the line, where some wait on several hosts")
def once():
    for kind in "wait", "signal":
        lines = [line for line in lines_of(kind, "h0,h1:2")[1] if "shmem_barrier_all has waited" in line]
        assert len(lines) == 1 and " on h0)" in lines[0], lines


main()
