#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Without oshrun PEs monitor each other: when any PE dies, the others name it and end within two seconds, also those
that compute; the launcher sees their exit status; nothing is left."""
import os
import random
import re
import signal
import time

import starters
from harness import BUILD, case, main, patience, read_numbers, settled_leftovers
from starters import INSTALLED, Job, hydra, mpirun, pmi1_manager, spawn, torchrun

PE = BUILD / "tests/boot/pe"
ENDING = BUILD / "tests/boot/ending"
LOOP = BUILD / "tests/core/loop"


def expect_ends(jobs, dead, status, others=70, seconds_max=2.0):
    """Expects all PEs of jobs that run at the same time to end soon, the dead PE and the others each with the given
    status."""
    seconds = sum(job.wait().seconds for job in jobs)
    for job in jobs:
        for pe, was in enumerate(job.status):
            assert was == (status if pe == dead else others), (pe, job.status, job.err)
    assert seconds < patience(seconds_max), (seconds, [job.err for job in jobs])
    assert not settled_leftovers(), settled_leftovers()


def expect_end(job, *expected, **more):
    expect_ends([job], *expected, **more)
    return job


@case("a PE killed by a signal, one that exits in a hurry, one that becomes another program")
def deaths():
    for how, number, status in (("raise", 9, -9), ("raise", 11, -11), ("_exit", 5, 5), ("_exit", 0, 0)):
        jobs = [way(4, [ENDING, how, number]) for way in (torchrun, pmi1_manager)]
        expect_ends(jobs, 1, status)
        for job in jobs:
            for pe in (0, 2, 3):
                assert re.search(rf"weft: PE {pe} \(pid \d+\): .*PE 1 \(pid {job.processes[1].pid}\) died; leaving", job.err[pe]), job.err
    job = torchrun(3, [ENDING, "exec", 0])
    expect_end(job, 1, 0, seconds_max=3)


@case("an error on one PE ends all, with one message and the place in the program")
def error():
    job = expect_end(torchrun(3, [ENDING, "misuse", 0]), 1, 71)
    said = job.err[1].splitlines()
    assert job.err[0] == job.err[2] == "" and "shmem_long_p: argument pe is 99" in said[0], job.err
    assert all(re.search(r"\):     ending\+0x", line) for line in said[1:]) and said[-1].endswith(" (main)"), job.err


@case("exit with a status while others wait, or compute: they name it, and that PE has it")
def exit_status():
    jobs = [way(3, [ENDING, "exit", 3, *more]) for way in (torchrun, pmi1_manager) for more in ([], ["compute"])]
    expect_ends(jobs, 1, 3)
    for job in jobs:
        assert job.err[1] == "", job.err
        for pe in (0, 2):
            assert re.search(r"PE 1 \(pid \d+\) exited with status 3 without shmem_finalize; leaving", job.err[pe]), job.err


@case("shmem_global_exit by PE 1 reaches a PE that computes, and nobody complains")
def global_exit():
    job = expect_end(torchrun(4, [ENDING, "global_exit", 42]), 1, 42, others=42)
    assert job.err == [""] * 4, job.err


@case("PE 0, the host of the hub, dies: before, in and after an exchange")
def host():
    for verbs in (["join", "exchange", "0@raise:9", "exchange"], ["join", "0@raise:9", "exchange"], ["join", "exchange", "0@raise:9", "hang"]):
        job = expect_end(torchrun(3, [PE, *verbs]), 0, -9)
        assert "PE 0 (pid " in job.err[1] and "PE 0 (pid " in job.err[2], job.err


@case("a PE that others wait for in an exchange leaves")
def leaves():
    job = torchrun(3, [PE, "join", "exchange", "1@leave", "1@exit:0", "exchange"])
    expect_end(job, 1, 0)
    assert "PE 1 " in job.err[0] and "ended while others wait for it" in job.err[0], job.err


@case("a PE dies before or in an exchange among some of them: the first one, whose agent serves the hub, or another")
def among():
    for victim in (0, 1):
        for verbs in (["among:0"] * 20 + [f"{victim}@raise:9"], [f"{victim}@raise:9"]):
            job = expect_end(torchrun(4, [PE, "join", "exchange", *verbs, "among:0"]), victim, -9)
            for pe in (2, 3):
                assert f"PE {victim} (pid " in job.err[pe], job.err
    job = torchrun(3, [PE, "join", "exchange", "1@leave", "1@exit:0", "among:2"]).wait()
    survivors = {job.status[0], job.status[2]}  # a late PE finds the job over
    assert job.status[1] == 0 and survivors in ({71}, {70, 71}) and job.seconds < patience(2), (job.status, job.seconds)


@case("two neighbours die at once; all but one die at once")
def several():
    job = torchrun(4, [PE, "join", "exchange", "sleep_ms:50", "1@raise:9", "2@raise:9", "hang"]).wait()
    assert job.status == [70, -9, -9, 70] and job.seconds < patience(2), (job.status, job.seconds)
    job = torchrun(4, [PE, "join", "exchange", "sleep_ms:50", "0@raise:9", "1@raise:9", "2@raise:9", "hang"]).wait()
    assert job.status == [-9, -9, -9, 70] and job.seconds < patience(2), (job.status, job.seconds)
    assert not settled_leftovers(), settled_leftovers()


@case("a stopped PE delays nobody's notice of a death, dies of none, and goes when it wakes")
def stopped():
    job = torchrun(4, [PE, "join", "exchange", "pid", "0@raise:19", "sleep_ms:300", "1@raise:9", "hang"])
    for pe in (1, 2, 3):
        job.processes[pe].wait(timeout=patience(3))
    assert job.processes[0].poll() is None, "the stopped PE is gone"
    job.processes[0].send_signal(signal.SIGCONT)
    job.wait(2)
    assert job.status == [70, -9, 70, 70], job.status
    slept = torchrun(3, [PE, "join", "exchange", "1@raise:19", "exchange", "leave"])
    time.sleep(1)
    slept.processes[1].send_signal(signal.SIGCONT)
    slept.expect(0)


@case("the end of the thread that joined is no death, and a forked child neither hides one nor is a PE")
def threads_and_children():
    torchrun(2, [PE, "join_in_thread", "exchange", "sleep_ms:300", "exchange", "leave"]).expect(0)
    first_ends = [PE, "join", "exchange", "1@go_on_in_thread", "sleep_ms:300", "exchange"]
    torchrun(3, [*first_ends, "leave"]).expect(0)
    expect_end(torchrun(3, [*first_ends, "1@raise:9", "hang"]), 1, -9, seconds_max=3)
    expect_end(torchrun(2, [PE, "join", "exchange", "fork_sleeper:1", "exchange", "1@raise:9", "hang"]), 1, -9, seconds_max=3)
    job = torchrun(2, [PE, "join", "exchange", "fork_meddler", "exchange", "leave"]).expect(0)
    assert job.out == ["meddler 0\n"] * 2, job.out


@case("a PE that is there and dies before the last has come: nobody waits for it")
def before_all():
    variables = starters.torchrun_variables(4, 29600)
    processes = [spawn([PE, "join", "exchange"], variables[pe]) for pe in (0, 1, 2)]
    time.sleep(0.5)
    processes[2].kill()
    job = Job(processes).wait(3)
    assert job.status == [71, 71, -9], (job.status, job.err)
    assert all("PE 2 (pid " in err and "has ended before all PEs had arrived" in err for err in job.err[:2]), job.err
    processes = [spawn([PE, "join", "exchange"], variables[pe]) for pe in (0, 1)]
    time.sleep(0.5)
    processes[0].kill()
    job = Job(processes).wait(3)
    assert job.status == [-9, 71] and "PE 0 is gone before all PEs had arrived" in job.err[1], (job.status, job.err)


@case("junk messages and an overwritten control page end the job, and crash nobody else")
def junk():
    job = expect_end(torchrun(3, [PE, "join", "exchange", "1@give_other_size", "exchange"]), None, None)
    assert len(re.findall("PE . sent a contribution that differs in size", job.err[0])) == 1, job.err
    job = torchrun(3, [PE, "join", "exchange", "1@corrupt_page", "1@raise:9", "hang"]).wait()
    assert job.seconds < patience(2) and not settled_leftovers(), (job.seconds, job.status)


@case("a PE that has overwritten its own state word, and whose sockets a child keeps open, dies noticed")
def state_word():
    job = torchrun(3, [PE, "join", "exchange", "1@state:7", "1@clone_sleeper:3", "1@sleep_ms:300",
                      "1@raise:9", "hang"])
    for pe in (0, 2):
        assert job.processes[pe].wait(timeout=patience(2)) == 70, pe
    job.wait()


TURNS = 30 if os.environ.get("WEFT_TEST_LONG") else 10


@case(f"{TURNS} times a random PE of a program that does everything is killed")
def random_kills():
    random.seed(11)
    for turn in range(TURNS):
        npes = 2 + turn % 3
        job = torchrun(npes, [LOOP])
        for process in job.processes:
            read_numbers(process, "pid", 1)
        time.sleep(random.random() * 0.2)
        victim = random.randrange(npes)
        job.processes[victim].kill()
        expect_end(job, victim, -9)
        for pe in set(range(npes)) - {victim}:
            assert re.search(rf"PE {victim} \(pid {job.processes[victim].pid}\) died; leaving", job.err[pe]), job.err


for title, (found, way) in INSTALLED.items():
    if way not in (mpirun, hydra):
        continue

    @case(f"{title}: a PE is killed, and the launcher says so by its status" + ("" if found else " # SKIP not installed"))
    def launcher(found=found, way=way):
        if not found:
            return
        job = way(3, [ENDING, "raise", 9]).wait()
        assert job.status[0] != 0, (job.status, job.err)
        assert job.seconds < patience(5), job.seconds
        assert not settled_leftovers(), settled_leftovers()


main()
