#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""When a PE dies in any way, the job ends soon, oshrun names the PE, and nothing is left."""
from harness import PE, Result, case, gone, main, names, patience, preloaded, read_numbers, run, settled_leftovers, start, wait_until
import contextlib
import os
import pathlib
import random
import re
import signal
import time
import uuid


@case("a PE killed by a signal: one line with PE, pid and name; 128 + s; the others say why they go")
def by_signal():
    result = run("-n", 3, PE, "join", "exchange", "1@raise:9", "exchange").expect(137)
    line = r"oshrun: PE 1 \(pid \d+\) was killed by signal 9 \(Killed\); ending the job"
    assert len(re.findall(line, result.err)) == 1 and result.err.count("oshrun:") == 1, result.err
    for pe in (0, 2):
        assert re.search(rf"weft: PE {pe} \(pid \d+\): PE 1 \(pid \d+\) ", result.err), result.err


SLOW_KERNEL = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static int over_at_all, taken_down;
static void *take_down(void *unused) {
    usleep(700000);
    taken_down = 1;
    kill(getpid(), SIGCHLD);
    return unused;
}
pid_t waitpid(pid_t pid, int *status, int options) {
    siginfo_t info = {0};
    pthread_t thread;
    pid_t (*real)(pid_t, int *, int) = (pid_t (*)(pid_t, int *, int))dlsym(RTLD_NEXT, "waitpid");
    if (!over_at_all && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) {
        over_at_all = 1;
        pthread_create(&thread, NULL, take_down, NULL);
    }
    return over_at_all && !taken_down ? 0 : real(pid, status, options);
}
"""


@case("so is one that is taken down for longer than the others have to go")
def taken_down_slowly():
    """Delays the end of processes, as with large processes on a busy machine: waitpid reports nothing for 0.7 s."""
    with preloaded(SLOW_KERNEL) as below:
        run("-n", 3, PE, "join", "exchange", "1@raise:9", "exchange", below=below).expect(
            137, "was killed by signal 9 (Killed); ending the job")


@case("every deadly signal is named")
def signals():
    for number, name in ((11, "Segmentation fault"), (6, "Aborted"), (15, "Terminated"), (8, "Floating")):
        run("-n", 2, PE, "join", "exchange", f"1@raise:{number}", "hang").expect(128 + number, f"signal {number} ({name}")


def memory_cgroup(bytes_max):
    """Returns the folder of a new cgroup of version 1 or 2 with this limit, or None if no cgroup can be made."""
    for top, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = pathlib.Path(top, f"weft-{uuid.uuid4().hex[:12]}")
        with contextlib.suppress(OSError):
            group.mkdir()
            with contextlib.suppress(OSError):
                (group / file).write_text(str(bytes_max))
                return group
            group.rmdir()
    return None


GROUP = memory_cgroup(48 << 20)


@case("a PE that the kernel kills for want of memory: in which cgroup" + ("" if GROUP else " # SKIP no cgroup can be made"))
def want_of_memory():
    if not GROUP:
        return
    try:
        below = f"test $WEFT_PE = 0 || echo $$ > {GROUP}/cgroup.procs; exec {PE} join exchange 1@fill:200 exchange"
        result = run("-n", 2, "sh", "-c", below).expect(137, "killed by signal 9")
        assert f"the kernel killed PE 1 because memory ran out: cgroup {GROUP} has reached its limit of 48 MiB" in result.err, result.err
        below = below.replace("1@fill:200", "1@raise:9")
        result = run("-n", 2, "sh", "-c", below).expect(137, "killed by signal 9")
        assert "memory ran out" not in result.err, result.err
    finally:
        GROUP.rmdir()


@case("_exit without leaving is a death, also with status 0")
def by_exit():
    run("-n", 2, PE, "join", "exchange", "1@_exit:5", "exchange").expect(5, "exited with status 5 without shmem_finalize")
    run("-n", 2, PE, "join", "exchange", "0@_exit:0", "exchange").expect(70, "exited with status 0 without shmem_finalize")


@case("becoming another program is a death")
def by_exec():
    run("-n", 2, PE, "join", "exchange", "1@exec", "exchange").expect(70, "became another program")


@case("a status before joining is a death; so is 0 when others wait")
def before_joining():
    run("-n", 2, PE, "1@exit:4", "join", "exchange").expect(4, "PE 1")
    run("-n", 2, PE, "1@exit:0", "join", "exchange").expect(70, "PE 1")
    run("-n", 2, PE, "0@sleep_ms:100", "1@exit:0", "join", "exchange").expect(70, "PE 1")
    run("-n", 2, PE, "1@raise:11", "sleep_ms:3000").expect(139, "PE 1")


@case("a PE dies before or in an exchange among some of them, as its first member or as another")
def among():
    for victim in (0, 1):
        for verbs in (["among:0"] * 20 + [f"{victim}@raise:9"], [f"{victim}@raise:9"]):
            result = run("-n", 4, PE, "join", "exchange", *verbs, "among:0").expect(137)
            for pe in {0, 1, 2, 3} - {victim}:
                assert f"PE {pe} (pid" in result.err, result.err


@case("leaving while others wait in an exchange ends the job")
def leaves_others():
    run("-n", 2, PE, "join", "exchange", "1@leave", "1@exit:0", "exchange").expect(70, "others wait")
    run("-n", 2, PE, "join", "exchange", "1@sleep_ms:100", "1@leave", "1@exit:0", "exchange").expect(70, "others wait")
    run("-n", 2, PE, "join", "exchange", "1@leave", "1@exit:0", "sleep_ms:200", "exchange").expect(70, "others wait")


@case("PEs that compute, ignore SIGTERM or are stopped go too, within two seconds")
def stubborn():
    run("-n", 4, PE, "ignore:15", "join", "exchange", "1@raise:9", "2@raise:19", "3@spin", "hang").expect(137)


@case("a PE below a shell is watched itself")
def below_shell():
    for command in (f"{PE} join exchange 1@raise:9 exchange; exit $?", f"{PE} join exchange 1@raise:9 hang; sleep 30"):
        result = run("-n", 2, "sh", "-c", command).expect(137 if "exit" in command else 70)
        assert re.search(r"oshrun: PE 1 \(pid \d+\) (was killed by signal 9|died)", result.err), result.err


@case("programs one after the other below a shell")
def sequence():
    result = run("-n", 3, "sh", "-c", f"{PE} join exchange leave && {PE} join exchange:3 leave && echo fine").expect(0)
    assert result.out == "fine\n" * 3, result.out


@case("a PE in the background of a shell that has ended is waited for")
def background():
    result = run("-n", 2, "sh", "-c", f"{PE} join exchange sleep_ms:500 exchange leave sleep_ms:100 print & sleep 0.3").expect(0)
    assert sorted(result.out.split()) == ["0", "1", "PE", "PE"], result.out


@case("the end of the thread that joined is no death")
def thread_end():
    run("-n", 2, PE, "join_in_thread", "exchange", "sleep_ms:100", "exchange", "leave").expect(0)
    run("-n", 2, PE, "join_in_thread", "exchange", "1@raise:9", "exchange").expect(137, "PE 1")


@case("nor is that of the first thread, behind which a death is still noticed, and the PE can leave")
def first_thread_end():
    words = ["join", "exchange", "1@go_on_in_thread", "exchange:3", "sleep_ms:100", "exchange"]
    run("-n", 3, PE, *words, "leave", "join", "exchange", "leave").expect(0, err="")
    run("-n", 3, PE, *words, "1@raise:9", "exchange").expect(137, "PE 1")
    run("-n", 3, "sh", "-c", f"{PE} {' '.join(words)} clone_sleeper:20 1@raise:9 hang; sleep 30").expect(70, "PE 1")


@case("a forked child that lives on hides no death and is no PE")
def forked():
    run("-n", 2, PE, "join", "exchange", "fork_sleeper:20", "exchange", "1@raise:9", "exchange").expect(137, "PE 1")
    result = run("-n", 2, PE, "join", "exchange", "fork_meddler", "exchange", "leave").expect(0)
    assert result.out == "meddler 0\n" * 2, result.out


@case("where neither socket nor waitpid tells of a death, the mutex does")
def mutex_alone():
    run("-n", 2, "sh", "-c", f"{PE} join exchange clone_sleeper:20 1@raise:9 hang; sleep 30").expect(70, "PE 1")


@case("grandchildren go with a job that ends by a death")
def grandchildren():
    run("-n", 2, "sh", "-c", f"trap '' TERM; sleep 50 & (setsid sleep 51 &) ; {PE} join exchange 1@raise:9 hang").expect(137, "PE 1")


@case("a notice takes far less than a tenth of a second")
def latency():
    best = 9.0
    for _ in range(5):
        process = start("-n", 2, PE, "join", "exchange", "1@pid", "0@exchange", "hang")
        victim = read_numbers(process, "pid", 1)[0]
        begin = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        process.communicate(timeout=patience(5))
        best = min(best, time.monotonic() - begin)
    print(f"# from the kill to the end of oshrun: {best * 1000:.1f} ms")
    assert best < 0.1, best


@case("killed at random moments: never a hang, never a remnant")
def random_kills():
    before = names()
    random.seed(7)
    for turn in range(60):
        process = start("-n", 3, "sh", "-c", f"exec {PE} rejoin:40 join exchange:1000000")
        time.sleep(random.random() * 0.03)
        children = [pid for pid, *_ in settled_leftovers(0) if pid != process.pid]
        victim = random.choice(children) if children else None
        if victim:
            os.kill(victim, signal.SIGKILL)
        else:
            process.terminate()
        result = Result(process)
        expected = (137, 143) if victim else (143, -15)
        assert result.status in expected, f"turn {turn}: status {result.status}: {result.err}"
        assert result.seconds < patience(2), f"turn {turn}: {result.seconds} s"
        assert not settled_leftovers(), f"turn {turn}: {settled_leftovers()}"
    assert names() <= before, names() - before


main()
