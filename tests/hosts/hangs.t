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


def lines_of(kind):
    """What PEs of a job say until its time is up."""
    settings = dict(ENVIRONMENT, WEFT_SSH="fakessh", WEFT_HANG_SECONDS=str(SECONDS))
    command = [OSHRUN, "--timeout", str(int(patience(2))), "--hosts", "h0:2,h1", PHASES, kind]
    result = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, capture_output=True, env=settings,
                            timeout=patience(30))
    assert result.returncode == 124, f"status {result.returncode}: {result.stderr}"
    pids = dict(re.findall(r"^pid (\d) (\d+)$", result.stdout, re.M))
    return pids, [line for line in result.stderr.splitlines() if "has waited" in line]


@case("in another call")
def other_call():
    pids, lines = lines_of("signal")
    wanted = rf"PE [01] \(pid \d+ on h0\): shmem_barrier_all has waited .* for PE 2 \(pid {pids['2']} on h1\), which is in " \
             r"shmem_signal_wait_until"
    assert any(re.search(wanted, line) for line in lines), lines


@case("in its own code")
def own_code():
    pids, lines = lines_of("wait")
    wanted = rf"PE [01] \(pid \d+ on h0\): shmem_barrier_all has waited .* for PE 2 \(pid {pids['2']} on h1\), which is in " \
             r"no call of Weft that lasts"
    assert any(re.search(wanted, line) for line in lines), lines


@case("not in shmem_init yet")
def absent():
    pids, lines = lines_of("init")
    wanted = rf"shmem_init has waited .* for PE 2 \(pid {pids['2']} on h1\), which has not called shmem_init"
    assert any(re.search(wanted, line) for line in lines), lines


main()
