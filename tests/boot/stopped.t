#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A PE is killed while oshrun is stopped: the other PEs detect that, name it and end. When oshrun continues, it reports
the same death, with the signal, and has its status."""
import os
import pathlib
import re
import signal
import time

import starters  # noqa: F401 (where the harness is)
from harness import BUILD, PE, Result, case, gone, main, read_numbers, start, wait_until

WAITS = str(BUILD / "tests/boot/waits")
NPES = 3
SECONDS_MAX = 3  # 1.5 on an idle machine


def is_pe(number, pid):
    return f"WEFT_PE={number}\0" in pathlib.Path(f"/proc/{pid}/environ").read_text()


def check(*command):
    process = start("-n", NPES, *command)
    pids = read_numbers(process, "pid", NPES)
    victim = next(pid for pid in pids if is_pe(1, pid))
    time.sleep(0.2)  # until they wait
    process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(0.05)
        begin = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: all(gone(pid) for pid in pids), SECONDS_MAX, f"survivors have gone, in {command[-1]}")
        print(f"# {command[-1]}: survivors have gone after {time.monotonic() - begin:.2f} s")
    finally:
        process.send_signal(signal.SIGCONT)
    result = Result(process)
    assert result.status == 128 + signal.SIGKILL, (command, result.status, result.err)
    named = re.findall(rf"^weft: PE [02] \(pid \d+\): .*PE 1 \(pid {victim}\) died; leaving$", result.err, re.M)
    assert len(named) == NPES - 1, (command, result.err)
    assert f"oshrun: PE 1 (pid {victim}) was killed by signal 9 (Killed); ending the job\n" in result.err, (command, result.err)


@case("in a barrier")
def barrier():
    check(WAITS, "barrier")


@case("in a wait on a variable")
def until():
    check(WAITS, "until")


@case("in the making of a team")
def team():
    check(WAITS, "team")


@case("in an exchange of all PEs, as in shmem_init")
def exchange():
    check(PE, "join", "pid", "1@hang", "exchange")


main()
