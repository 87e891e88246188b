#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A job that hangs reports which PE waits for which, and what those are doing; a job that is only slow reports nothing.

Each case is a statement of all PEs, and the lines that must appear while the job hangs. Far: also."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lines  # noqa: E402
import tap  # noqa: E402

# WEFT_HANG_SECONDS, and the duration of a wait in its line (TIME); the second is for PEs that were without a processor
# for so long that the lines say so.
TIMES = {"0.4": r"0\.\d+", "3": r"[3-9](\.\d+)?"}
NO_CALL = r"which is in no call of Weft that lasts \(its own code, or a loop of tests or fetches\)"
SLEEPS = rf"{NO_CALL}: it sleeps"

# name, PEs, statement, lines. "PE 1" in a line stands for that PE with its pid.
HANGS = [
    ("a barrier against a reduction", 2, "if (me == 1) shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &a, &b, 1); else shmem_barrier_all()",
     [r"PE 0: shmem_barrier_all has waited TIME s for PE 1, which is in shmem_int_sum_reduce\. These are different collective calls",
      r"PE 1: shmem_int_sum_reduce has waited TIME s for PE 0, which is in shmem_barrier_all\. These are different"]),
    ("one PE of four is late", 4, "if (me == 1) sleep(100); shmem_barrier_all()", [rf"PE [023]: shmem_barrier_all has waited \S+ s for PE 1, {SLEEPS} "]),
    ("one PE computes", 3, "if (me == 2) for (volatile int i = 0;; i++); weft_all_reduce(SHMEM_TEAM_WORLD, y, x, 4, WEFT_F32, WEFT_SUM, WEFT_STREAM_HOST)",
     [rf"PE [01]: weft_all_reduce has waited \S+ s for PE 2, {NO_CALL}: it runs"]),
    ("one PE tests a word in a loop", 2, "if (me == 1) while (!shmem_long_test(&word, SHMEM_CMP_EQ, 5)); shmem_barrier_all()",
     [rf"PE 0: shmem_barrier_all has waited \S+ s for PE 1, {NO_CALL}: it runs"]),
    ("one PE is stopped", 2, "if (me == 1) raise(SIGSTOP); shmem_sync_all()", [rf"PE 0: shmem_sync_all has waited \S+ s for PE 1, {NO_CALL}: it is stopped"]),
    ("a condition that nobody meets", 3, "if (me == 0) shmem_long_wait_until(&word, SHMEM_CMP_EQ, 5); shmem_barrier_all()",
     [r"PE 0: shmem_long_wait_until has waited \S+ s: word \(static, hangs\+0x[0-9a-f]+\) is 0, waits for == 5; any PE may send it\. PE 1, PE 2 are in shmem_barrier_all \(WEFT",
      r"PE [12]: shmem_barrier_all has waited \S+ s for PE 0, which is in shmem_long_wait_until: word \(static, hangs\+0x[0-9a-f]+\) is 0, waits for == 5 \(WEFT"]),
    ("conditions of a set", 2, "size_t at[2]; shmem_long_wait_until_some(words, 2, at, NULL, SHMEM_CMP_NE, 0)",
     [rf"PE {pe}: shmem_long_wait_until_some has waited \S+ s: no element of the 2 at words \(static, hangs\S+ is != 0; any PE may send it\. PE {1 - pe} is in shmem_long_wait_until_some: no element" for pe in (0, 1)]),
    ("conditions of all of a set", 1, "words[0] = -3; long least[] = {-3, 7}; shmem_long_wait_until_all_vector(words, 2, NULL, SHMEM_CMP_GE, least)",
     [r"shmem_long_wait_until_all_vector has waited \S+ s: words\+8 \(static, hangs\S+ is 0, waits for >= 7, and there is no other PE"]),
    ("a word of the heap", 1, "short *at = shmem_calloc(4, 2); at[3] = -3; shmem_short_wait_until(at + 3, SHMEM_CMP_GT, -2)",
     [r"shmem_short_wait_until has waited \S+ s: 0x[0-9a-f]+ \(heap, byte 6 of an object of 8\) is -3, waits for > -2,"]),
    ("a PE alone", 1, "shmem_signal_wait_until(&signal_word, SHMEM_CMP_GT, 0)", [r"shmem_signal_wait_until has waited \S+ s: signal_word \(static, hangs\S+ is 0, waits for > 0, and there is no other PE"]),
    ("a lock that is kept", 2, "if (me == 1) { shmem_set_lock(&lock); shmem_int_p(&b, 1, 0); sleep(100); } shmem_int_wait_until(&b, SHMEM_CMP_EQ, 1); shmem_set_lock(&lock)",
     [rf"PE 0: shmem_set_lock has waited \S+ s for PE 1, {SLEEPS}; lock \(static, hangs\S+ serves ticket 0, waits for 1 \(WEFT"]),
    ("a program that knows its lines", 2, "shmemx_set_where_handler(where); if (me == 1) shmem_quiet(), shmem_barrier_all(); else shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &a, &b, 1)",
     [r"PE 0: shmem_int_sum_reduce at line 7 of 0 has waited \S+ s for PE 1, which is in shmem_barrier_all at line 7 of 1\.",
      r"PE 1: shmem_barrier_all at line 7 of 1 has waited \S+ s for PE 0, which is in shmem_int_sum_reduce at line 7 of 0\."]),
    ("a wait of the program's own", 2, 'shmemx_wait_t wait = {.call = "my_wait"}; if (me == 0) while (word == 0) shmemx_wait_turn(&wait); shmemx_wait_end(&wait); shmem_barrier_all()',
     [r"PE 0: my_wait has waited \S+ s; any PE may end it\. PE 1 is in shmem_barrier_all ",
      r"PE 1: shmem_barrier_all has waited \S+ s for PE 0, which is in my_wait "]),
    ("a circle of teams", 3, "shmem_team_t low, high; shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &low); shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 1, 2, NULL, 0, &high); "
     "if (me == 1) shmem_team_sync(high); if (me == 2) shmem_barrier_all(); if (me == 0) shmem_team_sync(low)",
     [r"PE 0: shmem_team_sync has waited \S+ s for PE 1, which is in shmem_team_sync of another team",
      r"PE 1: shmem_team_sync has waited \S+ s for PE 2, which is in shmem_barrier_all of another team",
      r"PE 2: shmem_barrier_all has waited \S+ s for PE 0, which is in shmem_team_sync of another team; PE 1, which is in shmem_team_sync of another team"]),
    ("an active set", 4, "if (me == 3) sleep(100); shmem_sync(0, 0, npes, psync)", [rf"PE [012]: shmem_sync has waited \S+ s for PE 3, {SLEEPS}"]),
    ("a PE that does not finalize", 2, "if (me == 1) sleep(100); shmem_finalize()", [rf"PE 0: shmem_finalize has waited \S+ s for PE 1, {SLEEPS}"]),
    ("a PE that goes to no new team", 3, "if (me == 2) sleep(100); shmemx_team_create(all, 3, 0, &team)",
     [rf"PE [01]: shmemx_team_create has waited \S+ s for PE 2, {SLEEPS}"]),
    ("the first PE goes to no new team", 3, "if (me == 0) shmem_barrier_all(); shmemx_team_create(all, 3, 0, &team)",
     [r"PE [12]: shmemx_team_create has waited \S+ s for PE 0, which is in shmem_barrier_all ",
      r"PE 0: shmem_barrier_all has waited \S+ s for PE 1, PE 2, which are in shmemx_team_create "]),
    ("a wait while another PE is stuck in its line", 2, "if (me == 1) block_stderr(); else usleep(300000); shmem_long_wait_until(&word, SHMEM_CMP_EQ, 5)",
     [r"PE 0: shmem_long_wait_until has waited \S+ s: word \(\S+ \S+ is 0, waits for == 5; any PE may send it\. PE 1 is in shmem_long_wait_until: word "]),
    ("a broadcast whose root is elsewhere", 3, "if (me == 2) shmem_long_wait_until(&word, SHMEM_CMP_EQ, 5); shmem_int_broadcast(SHMEM_TEAM_WORLD, &a, &b, 1, 2); shmem_barrier_all()",
     [r"PE [01]: shmem_int_broadcast has waited \S+ s for PE 2, which is in shmem_long_wait_until: word ",
      r"PE 2: shmem_long_wait_until has waited \S+ s: word \(\S+ \S+ is 0, waits for == 5; any PE may send it\. PE 0, PE 1 are in shmem_int_broadcast "]),
]

# The same before shmem_init, where a PE only knows itself by the launcher's number.
BEFORE = [
    ("a PE that does not call shmem_init", 3, "if (me == 1) sleep(100)", [r"PE [02]: shmem_init has waited TIME s for PE 1, which has not called shmem_init: it sleeps \(WEFT_HANG"]),
    ("PE 0 and others that do not call shmem_init", 4, "if (me != 3) sleep(100)", [r"PE 3: shmem_init has waited \S+ s for PE 0, PE 1, PE 2, which have not called shmem_init: it sleeps"]),
    ("a PE that does not call shmem_init again", 2, "shmem_init(); shmem_finalize(); if (me == 1) sleep(100)",
     [r"PE 0: shmem_init has waited \S+ s for PE 1, which has finalized: it sleeps"]),
    ("a launcher that is stopped", 2, "if (me == 1) kill(getppid(), SIGSTOP)", [r"PE [01]: shmem_init has waited \S+ s for oshrun, although all PEs have arrived"]),
]

# name, statement, its line, which ends the job.
REFUSED = [
    ("a lock that the thread has", "shmem_set_lock(&lock); shmem_set_lock(&lock)", r"shmem_set_lock: this PE holds this lock already"),
    ("a lock that the thread has, among threads", "int got; shmem_init_thread(SHMEM_THREAD_MULTIPLE, &got); shmem_set_lock(&lock); shmem_set_lock(&lock)",
     r"shmem_set_lock: this thread holds this lock already"),
    ("a lock that the thread has got by a test", "while (shmem_test_lock(&lock)); shmem_set_lock(&lock)", r"shmem_set_lock: this PE holds this lock already"),
    ("a lock below another one", "shmem_set_lock(&lock); shmem_set_lock(&other); shmem_set_lock(&lock)", r"shmem_set_lock: this PE holds this lock already"),
    ("a barrier within a barrier", "if (me == 1) sleep(100); signal(SIGALRM, meet); ualarm(200000, 0); shmem_barrier_all()",
     r"PE 0 .*shmem_barrier_all: called within shmem_barrier_all on the same team"),
]

LEAVE_IN_BARRIER = "signal(SIGALRM, leave_together); ualarm(100000, 0); if (me == npes - 1) pause(); shmem_barrier_all()"

# name, statement, environment: nothing is printed.
SILENT = [
    ("a PE that is late for less than the time", "if (me == 1) usleep(1200000); shmem_barrier_all()", {}),
    ("a time of 0", "if (me == 1) sleep(1); shmem_barrier_all(); if (me == 0) sleep(1); shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &a, &b, 1)", {"WEFT_HANG_SECONDS": "0"}),
    ("exit from a handler within a wait", "signal(SIGALRM, leave); ualarm(100000, 0); shmem_long_wait_until(&word, SHMEM_CMP_EQ, 5)", {}),
    ("exit from a handler within a barrier", LEAVE_IN_BARRIER, {}),
    ("exit from a handler within a barrier, on several hosts", LEAVE_IN_BARRIER, {"WEFT_PRETEND_HOSTS": "3+1"}),
]

PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft.h>
static int me, npes, a, b, all[] = {0, 1, 2};
static shmem_team_t team;
static long word, words[2], lock, other, psync[SHMEM_SYNC_SIZE];
static uint64_t signal_word;
static float x[4], y[4];
static void meet(int number) { (void)number; shmem_barrier_all(); }
static void where(char *text, size_t bytes) { snprintf(text, bytes, "line 7 of %%d", me); }
static void leave(int number) { (void)number; exit(0); }
/* exit() while others are in a collective call ends the job, so all wait until all are here. */
static void leave_together(int number) {
    int file = open(getenv("WEFT_TEST_FILE"), O_CREAT | O_WRONLY | O_APPEND, 0600);
    struct stat state = {0};
    (void)number;
    if (write(file, "", 1) == 1)
        while (fstat(file, &state) == 0 && state.st_size < npes)
            usleep(1000);
    exit(0);
}
static void block_stderr(void) {
    int ends[2];
    char piece[4096] = {0};
    if (pipe2(ends, O_NONBLOCK) == 0 && dup2(ends[1], 2) == 2)
        while (write(2, piece, sizeof piece) > 0);
    fcntl(2, F_SETFL, 0);
}
int main(int argc, char **argv) {
    (void)argc; (void)meet; (void)leave; (void)leave_together; (void)all; (void)team;
    me = getenv("WEFT_PE") ? atoi(getenv("WEFT_PE")) : 0;
    switch (atoi(argv[1])) {
%s
    }
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    switch (atoi(argv[1])) {
%s
    }
    return 0;
}
"""

work = tempfile.TemporaryDirectory(prefix="weft-hangs-")
program = pathlib.Path(work.name) / "hangs"
everything = [(name, statement, None) for name, _, statement, _ in HANGS] + REFUSED + SILENT
early = [(name, statement, None) for name, _, statement, _ in BEFORE]
program.with_suffix(".c").write_text(PROGRAM % (lines.switch(early, len(everything)), lines.switch(everything, 0)))
subprocess.run([str(lines.BUILD / "bin/oshcc"), "-std=gnu11", "-O1", "-o", str(program), str(program) + ".c"], check=True)


def start(number, pes, **environment):
    return subprocess.Popen([str(lines.BUILD / "bin/oshrun"), "-n", str(pes), str(program), str(number)],
                            stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})


def whole(line, time):
    """Returns a pattern with the pids of its PEs, and the time."""
    return re.sub(r"PE (\d|\[\d+\])", r"PE \1 \\(pid \\d+\\)", line).replace("TIME", time)


def without_places(line, wrong):
    """Returns the line without the places of its calls; the waiting call must have a place."""
    if " has waited " in line and not re.search(r" at (hangs\+0x[0-9a-f]+ \(main\)|line 7 of \d) has waited", line):
        wrong.append("no place in the program")
    return re.sub(r" at hangs\+0x[0-9a-f]+ \(main\)", "", line)


def waits(said):
    return [line for line in said if " has waited " in line]


def told_wrong(number, pes, wanted, seconds):
    """Returns what is wrong with the lines of the job, or nothing."""
    job = start(number, pes, WEFT_HANG_SECONDS=seconds)
    limit = threading.Timer(20, job.terminate)
    limit.start()
    missing, said, unplaced = [whole(line, TIMES[seconds]) for line in wanted], [], []
    for line in job.stderr:
        said.append(line)
        line = without_places(line, unplaced)
        missing = [pattern for pattern in missing if not re.search(pattern, line)]
        if not missing or len(waits(said)) > len(wanted):
            break
    job.terminate()
    job.send_signal(signal.SIGCONT)
    said += job.stderr.readlines()
    job.wait()
    limit.cancel()
    wrong = unplaced + [f"no line with {pattern}" for pattern in missing]
    if len(waits(said)) != len(wanted):
        wrong.append(f"{len(waits(said))} lines instead of {len(wanted)}")
    return wrong + said if wrong else []


def hang(number, pes, wanted):
    def case(problems):
        for seconds in TIMES:
            wrong = told_wrong(number, pes, wanted, seconds)
            if not wrong:
                return
        problems.extend(wrong)
    return case


def refused(number, wanted):
    def case(problems):
        run = start(number, 2)
        _, said = run.communicate(timeout=30)
        if run.returncode != lines.STATUS_ERROR or not re.search(wanted, said):
            problems.append(f"status {run.returncode}: {said}")
    return case


def silent(number, environment):
    def case(problems):
        run = start(number, 4 if environment.get("WEFT_PRETEND_HOSTS") else 2,
                    WEFT_TEST_FILE=str(program.with_name(f"count-{number}")), **environment)
        _, said = run.communicate(timeout=30)
        if run.returncode or said:
            problems.append(f"status {run.returncode}: {said}")
    return case


def cases():
    number = 0
    for name, pes, _, wanted in HANGS:
        yield f"{name} is explained", hang(number, pes, wanted)
        number += 1
    for number_early, (name, pes, _, wanted) in enumerate(BEFORE, len(everything)):
        yield f"{name} is explained", hang(number_early, pes, wanted)
    for name, _, wanted in REFUSED:
        yield f"{name} is refused", refused(number, wanted)
        number += 1
    for name, _, environment in SILENT:
        yield f"{name}: nothing is said", silent(number, environment)
        number += 1


tap.run(tap.ahead(cases()))
