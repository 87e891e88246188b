# SPDX-License-Identifier: BSD-3-Clause
"""Jobs over an engine for networks, with PEs that pretend to be on several hosts: their ends, deaths, forks, many
PEs, and what is said of a network that cannot be had. Its tests name the engine, and add cases of its own.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "launch"))
from harness import BUILD, Result, case, patience, settled_leftovers, start  # noqa: E402

ENGINE = pathlib.Path(sys.argv[0]).resolve().parent.name
SCENES = str(BUILD / "tests/far/scenes")
STATUS_ERROR = 71
PROGRAM = r"""
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static long word, sum, one = 1;
static int me, npes;
static void put_to_next(long value) {
    shmem_long_p(&word, value, (me + 1) % npes);
    shmem_barrier_all();
    if (word != value) exit(3);
    shmem_barrier_all();
}
int main(int argc, char **argv) {
    int again = 0;
    do {
        shmem_init();
        me = shmem_my_pe(), npes = shmem_n_pes();
        put_to_next(5 + again);
        if (strcmp(argv[1], "again") == 0) shmem_finalize();
    } while (strcmp(argv[1], "again") == 0 && ++again < 3);
    if (strcmp(argv[1], "fork") == 0) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) exit(0);
        if (waitpid(child, &status, 0) != child || status || system("exit 7") >> 8 != 7) exit(4);
        put_to_next(77);
    }
    if (strcmp(argv[1], "few files") == 0) {
        struct rlimit files;
        shmem_barrier_all();
        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = (rlim_t)dup(0) + 1;
        setrlimit(RLIMIT_NOFILE, &files);
        for (int pe = 0; pe < npes; pe++) shmem_long_atomic_inc(&word, pe);
        shmem_barrier_all();
    }
    if (strcmp(argv[1], "many") == 0) {
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &one, 1);
        for (int pe = 0; pe < npes; pe++) shmem_long_atomic_inc(&word, pe);
        shmem_barrier_all();
        if (sum != npes || word != 5 + npes) exit(5);
    }
    if (strcmp(argv[1], "exit") == 0) exit(0);
    return argc - 2;
}
"""
work = tempfile.TemporaryDirectory(prefix="weft-engine-")
program = pathlib.Path(work.name) / "program"
program.with_suffix(".c").write_text(PROGRAM)
subprocess.run([str(BUILD / "bin/oshcc"), "-O1", "-o", str(program), f"{program}.c"], check=True)


def begin(npes, *command, **environment):
    settings = {"WEFT_PRETEND_HOSTS": "each", "WEFT_ENGINE": ENGINE, **environment}
    return start("-n", npes, "env", *(f"{name}={value}" for name, value in settings.items()), *command)


def run(npes, *command, **environment):
    return Result(begin(npes, *command, **environment), seconds_max=30)


def reached_by(**environment):
    """What `weft info` says of it."""
    said = run(2, BUILD / "bin/weft", "info", **environment).expect(0, seconds_max=10)
    return re.search(r"far PEs +(.*)", said.out)[1]


@case("a job returns from main, calls exit, and begins again")
def ends():
    for how in ("return", "exit", "again"):
        run(3, program, how).expect(0, err="", seconds_max=10)


@case("a PE forks, and executes programs")
def forks():
    run(2, program, "fork").expect(0, err="", seconds_max=10)


@case("many PEs, each on a host of its own")
def many():
    run(24, program, "many").expect(0, err="", seconds_max=20)


@case("a PE is killed: the others name it, and are gone")
def deaths():
    for scene, npes in (("flood", 3), ("barrier", 2), ("get", 2)):
        job = begin(npes, SCENES, scene, 1000000)
        pids = dict(re.match(r"pid (\d) (\d+)", job.stdout.readline()).groups() for _ in range(npes))
        os.kill(int(pids["1"]), signal.SIGKILL)
        result = Result(job, seconds_max=10)
        assert result.status == 137, f"{scene}: status {result.status}: {result.err}"
        assert f"oshrun: PE 1 (pid {pids['1']}) was killed by signal 9" in result.err, result.err
        assert result.seconds < patience(2.0), f"{scene}: {result.seconds} s"
        assert not settled_leftovers(), scene


@case("a PE that is stopped holds up the others, and no more")
def stopped():
    job = begin(3, SCENES, "flood", 5)
    pids = dict(re.match(r"pid (\d) (\d+)", job.stdout.readline()).groups() for _ in range(3))
    os.kill(int(pids["1"]), signal.SIGSTOP)
    time.sleep(0.5)
    assert job.poll() is None, f"the others have gone without it: {job.stderr.read()}"
    os.kill(int(pids["1"]), signal.SIGCONT)
    Result(job, seconds_max=30).expect(0, err="", seconds_max=20)


@case("a network that is vouched for by no known word")
def networks():
    said = run(2, program, "return", WEFT_FAR_NETWORK="mine")
    assert said.status == STATUS_ERROR and "WEFT_FAR_NETWORK is 'mine'" in said.err, said.err

