#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Under every launcher except oshrun, the same programs have the same results, end in order, and leave nothing behind.
Cases of launchers that are not installed are skipped."""
import os
import socket
import time
import uuid

import starters
from harness import BUILD, case, main, patience, wait_until
from starters import INSTALLED, PRETENDED, Job, spawn

PE = BUILD / "tests/boot/pe"
EXCHANGE = BUILD / "tests/boot/exchange"
PROGRAMS = [(npes, EXCHANGE) for npes in (1, 2, 3, 4)]
PROGRAMS += [(4, BUILD / "tests/boot/subset")]
PROGRAMS += [(npes, BUILD / "tests" / name) for npes, name in ((4, "api/rma"), (3, "api/setup"), (2, "job/statics"))]
LONG = bool(os.environ.get("WEFT_TEST_LONG"))  # without it, slow launchers start each number of PEs once
ONCE_EACH = [PROGRAMS[i] for i in (0, 4, 6, 7)]


def abstract_names():
    with open("/proc/net/unix") as sockets:
        return {line.split()[7] for line in sockets if "@weft-" in line}


def check(job):
    job.expect(0, seconds_max=30)
    out = "".join(job.out)
    assert "\nnot ok" not in out and out.count("\n1..") == 1, out


def register(title, way, programs_run, reason=None):
    @case(f"{title}: programs at 1, 2, 3 and 4 PEs" + (f" # SKIP {reason}" if reason else ""))
    def programs():
        if reason:
            return
        before = abstract_names()
        for npes, program in programs_run:
            check(way(npes, [program]))
        left = abstract_names() - before  # or other jobs of this machine have opened them meanwhile
        wait_until(lambda: not left & abstract_names(), 20, "no socket with a name of ours")

    @case(f"{title}: shmem_global_exit ends all, with its status" + (f" # SKIP {reason}" if reason else ""))
    def global_exit():
        if reason:
            return
        # At the same time, because a PE that computes takes half a second; but two mpiruns would share a folder.
        for statuses in [(0, 7)] if way in PRETENDED.values() else [(0,), (7,)]:
            jobs = [(status, way(3, [BUILD / "tests/boot/ending", "global_exit", status])) for status in statuses]
            for status, job in jobs:
                job.wait()
                assert set(job.status) == {status}, (job.status, job.out, job.err)
                assert job.seconds < patience(3), job.seconds


for title, way in PRETENDED.items():
    register(title, way, PROGRAMS)
for title, (found, way) in INSTALLED.items():
    register(title, way, PROGRAMS if LONG else ONCE_EACH, None if found else "not installed")


@case("PEs may join, leave and join again, and the manager hears a good-bye from each")
def again():
    for way in (starters.pmi1_manager, starters.pmi2_manager):
        job = way(3, [PE, "rejoin:20", "join", "exchange:100", "leave"]).expect(0)
        starters.harness.wait_until(lambda: job.manager.finalized == 3, 2, "three good-byes")
        assert not job.manager.troubles, job.manager.troubles


@case("more PEs than processors")
def many():
    starters.torchrun(24, [PE, "join", "exchange:3", "leave"]).expect(0, seconds_max=30)


@case("PEs that come seconds apart meet, and those that wait say for whom")
def late():
    jobs = []
    for absent, port in ((0, 29500), (2, 29501)):
        variables = starters.torchrun_variables(3, port, uuid.uuid4().hex)
        jobs.append((absent, variables, [spawn([PE, "join", "exchange", "leave"], variables[pe]) for pe in range(3) if pe != absent]))
    time.sleep(3.5)
    for absent, variables, processes in jobs:
        processes.append(spawn([PE, "join", "exchange", "leave"], variables[absent]))
    for absent, _, processes in jobs:
        port = variables[0]["MASTER_PORT"]
        Job(processes).expect(0, f"waiting for PE {absent} of 3 to call shmem_init, since the environment has RANK=0, WORLD_SIZE=3 and "
                              f"MASTER_PORT={port}: unset these" if absent else "waiting for PE 0 of 3 to call shmem_init, since the environment has RANK=")


@case("jobs of one user, side by side, do not mix")
def side_by_side():
    jobs = [way(3, [EXCHANGE]) for way in list(PRETENDED.values()) * 2]
    for job in jobs:
        check(job)


@case("starts that differ in one digit do not mix: torchrun's of one job after a failure, and steps of srun")
def starts():
    number = str(uuid.uuid4().int % 10**9)
    for variables, digit in ((starters.torchrun_variables(2, 29505, number), "TORCHELASTIC_RESTART_COUNT"),
                             (starters.slurm_variables(2, number), "SLURM_STEP_ID")):
        first, second = variables, [{**one, digit: "1"} for one in variables]
        strangers = [spawn([EXCHANGE], first[0]), spawn([EXCHANGE], second[1])]
        time.sleep(0.5)
        assert [process.poll() for process in strangers] == [None, None], digit
        for job in [Job([strangers[0], spawn([EXCHANGE], first[1])]), Job([spawn([EXCHANGE], second[0]), strangers[1]])]:
            check(job)


@case("MASTER_PORT is left alone: it may be somebody's, and nobody listens at any port of ours")
def port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        variables = starters.torchrun_variables(2, taken.getsockname()[1])
        Job([spawn([PE, "join", "exchange", "leave"], one) for one in variables]).expect(0)


@case("WEFT_LAUNCHER names another launcher, none, or nothing that there is")
def override():
    variables = {**starters.torchrun_variables(2, 29502)[0], "PMI_FD": "77", "PMI_RANK": "0", "PMI_SIZE": "2"}
    program = [PE, "join", "npes"]
    Job([spawn(program, variables)]).expect(71, "PMI_FD=77 is not an open descriptor")
    job = Job([spawn(program, {**variables, "WEFT_LAUNCHER": "none"})]).expect(0)
    assert job.out == ["npes 1\n"], job.out
    both = [{**one, "PMI_FD": "77", "PMI_RANK": "0", "PMI_SIZE": "2", "WEFT_LAUNCHER": "torchrun"}
            for one in starters.torchrun_variables(2, 29503)]
    job = Job([spawn(program, one) for one in both]).expect(0)
    assert job.out == ["npes 2\n"] * 2, job.out
    for launcher, text in (("mpich", "WEFT_LAUNCHER=mpich is unknown"), ("", "is unknown"),
                           ("slurm", "SLURM_STEP_NUM_TASKS"), ("pmi", "PMI_FD=77"), ("init_attr", "shmemx_init_attr first"),
                           ("oshrun", "start this program with oshrun")):
        Job([spawn(program, {**variables, "WEFT_LAUNCHER": launcher})]).expect(71, text)
    Job([spawn(program, {"WEFT_LAUNCHER": "pmix"})]).expect(71, "PMIx")


@case("nonsense in the variables: alone where they do not fit together, or one line")
def nonsense():
    good = starters.torchrun_variables(2, 29504)[0]
    for name, value in (("RANK", "-1"), ("RANK", "x"), ("WORLD_SIZE", "0"), ("WORLD_SIZE", "1e3"), ("WORLD_SIZE", "99999")):
        job = Job([spawn([PE, "join", "npes"], {**good, name: value})]).expect(0)
        assert job.out == ["npes 1\n"], job.out
    Job([spawn([PE, "join"], {**good, "RANK": "2"})]).expect(71, "PE 2 of 2 is not valid")
    Job([spawn([PE, "join"], {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NUM_NODES": "2",
                              "SLURM_JOB_ID": "1"})]).expect(71, "SLURM_STEP_NUM_NODES=2, and srun without a PMI cannot carry")
    Job([spawn([PE, "join", "npes"], {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "1"})]).expect(0)
    Job([spawn([PE, "join"], {"PMI_PORT": "nowhere", "PMI_ID": "0"})]).expect(71, "is not a host:port")
    Job([spawn([PE, "join"], {"PMI_PORT": "127.0.0.1:1", "PMI_ID": "0"})]).expect(71, "cannot connect to 127.0.0.1:1")


@case("managers that answer nonsense, or not at all, get one line")
def bad_managers():
    def closes(manager, pe, connection, questions):
        questions.readline()

    def rejects(manager, pe, connection, questions):
        questions.readline()
        connection.sendall(b"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=-1\n")
        questions.readline()

    def babbles(manager, pe, connection, questions):
        questions.readline()
        connection.sendall(b"x" * 5000)
        questions.readline()

    def forgets(manager, pe, connection, questions):
        manager.store = {"weft-key": None}
        starters.pmi1(manager, pe, connection, questions)

    def lies(manager, pe, connection, questions):
        class Store(dict):
            def get(self, key):
                return "nothing-of-ours"
        manager.store = Store()
        starters.pmi1(manager, pe, connection, questions)

    for dialect, text in ((closes, "does not answer"), (rejects, "does not speak version 1"), (babbles, "does not answer"),
                          (forgets, None), (lies, "which is not the key of a job")):
        job = starters.managed(2, [PE, "join"], dialect).wait()
        assert job.status == [71, 71] and all(err.count("\n") == 1 for err in job.err) or dialect is forgets, (job.status, job.err)
        # The PE that reads the false value first has ended before the other one asks.
        assert text is None or any(text in err for err in job.err), job.err


main()
