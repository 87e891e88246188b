#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Signals to oshrun are forwarded to the job."""
from harness import OSHRUN, PE, Result, case, gone, main, preloaded, read_numbers, start, wait_until
import os
import pathlib
import pty
import signal
import sys
import time


def ready(count, *verbs, **options):
    process = start("-n", count, PE, *verbs, "join", "exchange", "pid", "hang", **options)
    return process, read_numbers(process, "pid", count)


@case("harmless signals reach every PE, and nothing else happens")
def harmless():
    process, _ = ready(3, "catch:10", "catch:12")
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        process.send_signal(number)
        assert read_numbers(process, "caught", 3) == [number] * 3
    process.kill()
    process.wait()


@case("they reach PEs below a shell, and not the shell")
def below_shell():
    process = start("-n", 2, "sh", "-c", f"{PE} catch:10 join exchange pid hang; true")
    read_numbers(process, "pid", 2)
    process.send_signal(signal.SIGUSR1)
    assert read_numbers(process, "caught", 2) == [10, 10]
    process.kill()
    process.wait()


TOOL = """
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static void *idle(void *argument) {
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    for (;;)
        pause();
    return argument;
}
__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, idle, NULL);
}
"""


@case("a tool's thread in the launcher keeps no signal for itself")
def with_a_tool():
    """Adds a thread to every process, as profilers and checkers do: it blocks no signals, so the kernel may choose
    it."""
    with preloaded(TOOL) as below:
        for _ in range(20):
            Result(start("-n", 2, "true", below=below)).expect(0)
        for number in (signal.SIGTERM, signal.SIGINT):
            process, _ = ready(2, below=below)
            process.send_signal(number)
            Result(process).expect(128 + number, f"told to end by signal {number:d} ")


@case("deadly signals end the job: 128 + s, one line")
def deadly():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        process, _ = ready(2)
        process.send_signal(number)
        result = Result(process).expect(128 + number, f"told to end by signal {number:d} ")
        assert result.err.count("oshrun:") == 1, result.err


@case("PEs may handle a deadly signal and end in order")
def handled():
    process = start("-n", 2, "sh", "-c", "trap 'echo tidy 1; exit 0' TERM; echo ready 1; while :; do sleep 0.01; done")
    read_numbers(process, "ready", 2)
    process.terminate()
    assert read_numbers(process, "tidy", 2) == [1, 1]
    Result(process).expect(0)


@case("PEs that ignore it are killed after a grace, and at once by a second one")
def ignored():
    process, _ = ready(2, "ignore:15")
    process.terminate()
    Result(process).expect(143, "told to end", seconds_max=2.0)
    process, _ = ready(2, "ignore:15")
    process.terminate()
    time.sleep(0.1)
    process.terminate()
    Result(process).expect(143, "told to end", seconds_max=0.5)


@case("what was ignored at the start stays ignored, as under nohup")
def nohup():
    process = start("-n", 1, PE, "join", "pid", "sleep_ms:1400", "leave",
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    pid = read_numbers(process, "pid", 1)[0]
    process.send_signal(signal.SIGHUP)
    os.kill(pid, signal.SIGHUP)
    Result(process).expect(0)


def state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@case("SIGTSTP stops PEs and launcher, SIGCONT lets them go on")
def stop_and_go():
    # A group of its own, whose parent is outside it: an orphaned group does not stop (POSIX).
    process, pids = ready(2, "catch:10", preexec_fn=os.setpgrp)
    process.send_signal(signal.SIGTSTP)
    wait_until(lambda: all(state(pid) == "T" for pid in pids + [process.pid]), 1.0, "everybody stops")
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: all(state(pid) != "T" for pid in pids + [process.pid]), 1.0, "everybody goes on")
    process.send_signal(signal.SIGUSR1)
    assert read_numbers(process, "caught", 2) == [10, 10]
    process.kill()
    process.wait()


@case("a stopped PE is not taken for dead; the job goes on with it")
def stopped_pe():
    process = start("-n", 3, PE, "join", "exchange", "pid", "sleep_ms:100", "exchange:20", "leave", "print")
    victim = read_numbers(process, "pid", 3)[1]
    os.kill(victim, signal.SIGSTOP)
    time.sleep(1.0)
    assert process.poll() is None and not gone(victim)
    os.kill(victim, signal.SIGCONT)
    Result(process).expect(0)


@case("Ctrl-C on a terminal reaches each PE once, and those that handle it go on")
def terminal():
    script = "import signal,time\nn=0\ndef f(*_):\n  global n; n+=1\nsignal.signal(2,f)\nprint('ready',flush=True)\ntime.sleep(1)\ntime.sleep(0.3)\nprint(f'count {n}\\n',end='',flush=True)"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(OSHRUN, [OSHRUN, "-n", "2", sys.executable, "-c", script])
    text = b""
    while text.count(b"ready") < 2:
        text += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    try:
        while True:
            piece = os.read(terminal, 1000)
            if not piece:
                break
            text += piece
    except OSError:
        pass  # all writers have closed it
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert text.count(b"count 1") == 2 and status == 0, (text, status)


@case("Ctrl-C on a terminal ends PEs that do not handle it, and a shell's loop over oshrun")
def terminal_ends():
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp("bash", ["bash", "-c", f"for i in 1 2 3; do {OSHRUN} -n 2 {PE} join exchange pid hang; done; echo after"])
    text = b""
    while text.count(b"pid") < 2:
        text += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    try:
        while b"after" not in text and text.count(b"pid") < 4:
            piece = os.read(terminal, 1000)
            if not piece:
                break
            text += piece
    except OSError:
        pass
    os.close(terminal)
    os.waitpid(pid, 0)
    assert b"after" not in text and text.count(b"pid") == 2, text


main()
