#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""When the launcher is killed, the PEs die, too, wherever they are in the tree of processes."""
from harness import PE, case, gone, leftovers, main, names, patience, read_numbers, settled_leftovers, start, wait_until
import os
import random
import signal
import time


def kill_launcher(count, *command):
    """Kills oshrun when all PEs have printed their pids. Returns the seconds until all of them have ended."""
    process = start("-n", count, *command)
    pids = read_numbers(process, "pid", count)
    begin = time.monotonic()
    process.kill()
    wait_until(lambda: all(gone(pid) for pid in pids), 1.0, f"the end of {pids}")
    process.wait()
    process.stdout.close()
    process.stderr.close()
    return time.monotonic() - begin


@case("PEs that sleep, compute, wait in an exchange or have left")
def direct():
    for verbs in (["hang"], ["spin"], ["1@hang", "exchange"], ["leave", "hang"]):
        kill_launcher(3, PE, "join", "exchange", "pid", *verbs)
        assert not settled_leftovers(), leftovers()


@case("PEs before they join")
def before_joining():
    kill_launcher(2, PE, "pid", "hang")
    assert not settled_leftovers(), leftovers()


@case("PEs below a shell, which the kernel does not kill with their grandparent by itself")
def below_shell():
    kill_launcher(2, "sh", "-c", f"{PE} join exchange pid hang; true")
    assert not settled_leftovers(), leftovers()


@case("PEs far below, in sessions of their own, that ignore all signals that can be ignored")
def far_below():
    kill_launcher(2, "sh", "-c", f"setsid sh -c '{PE} ignore:15 ignore:1 join exchange pid hang; true'; true")
    wait_until(lambda: not [name for _, name, _ in leftovers() if name == "pe"], 1.0, "the end")


@case("a PE that joins after the launcher has gone is told so")
def joins_too_late():
    process = start("-n", 1, "sh", "-c", f"setsid sh -c 'echo pid $$; sleep 0.4; {PE} join print:5; echo late $?' & wait")
    read_numbers(process, "pid", 1)
    process.kill()
    rest, err = process.communicate(timeout=patience(5))
    assert "late 71" in rest and "PE 5" not in rest, rest
    assert "the launcher is gone" in err, err


@case("a forked child of a PE is not killed in its place")
def forked():
    process = start("-n", 1, PE, "join", "pid", "fork_sleeper:20", "hang")
    pe, child = read_numbers(process, "pid", 1) + read_numbers(process, "child", 1)
    process.kill()
    wait_until(lambda: gone(pe), 1.0, "the end of the PE")
    time.sleep(0.05)
    assert not gone(child), "the child is gone"
    os.kill(child, signal.SIGKILL)


@case("killed at random moments: nothing is left, no process and no name")
def random_moments():
    before = names()
    random.seed(11)
    for turn in range(60):
        process = start("-n", 4, PE, "rejoin:40", "join", "exchange", "pid", "hang")
        time.sleep(random.random() * 0.03)
        process.kill()
        process.communicate(timeout=patience(5))
        assert not settled_leftovers(), f"turn {turn}: {leftovers()}"
    assert names() <= before, names() - before


main()
