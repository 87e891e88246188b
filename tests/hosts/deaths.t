#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A PE, a daemon, the front, a cable or a whole host fails while PEs are in some call: every survivor names the
culprit, is gone soon behind the limit, and nothing is left anywhere. Who only stops, or is slow, is waited for.
WEFT_TEST_LONG tries every failure in every call.
"""
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time

import rig
import verbs

LONG = bool(os.environ.get("WEFT_TEST_LONG"))
KINDS = ["init", "put", "barrier", "wait", "malloc", "collective", "finalize"]
rig.enter(8 if LONG else 3)
sys.path.insert(0, str(rig.HERE.parent / "launch"))
from harness import BUILD, ENVIRONMENT, OSHRUN, case, main, patience, wait_until  # noqa: E402

PHASES = str(BUILD / "tests/hosts/phases")
SILENCE = min(patience(1.0), 3.0)  # WEFT_HOST_TIMEOUT: where all wait for a processor, beats do, too
SOON = 1.0  # behind a death, or behind that limit
random.seed(os.environ.get("WEFT_TEST_SEED"))


def ours(host):
    """What runs there, but for what the rig has there itself."""
    return [(pid, line) for pid, line in verbs.processes(host) if "oshrun" in line or "phases" in line]


class Job:
    """PEs 0 on h0 and 1 on another host, in calls of a kind."""
    def __init__(self, kind, other="h1", placement=None):
        self.other = other
        settings = dict(ENVIRONMENT, WEFT_SSH="fakessh", WEFT_HOST_TIMEOUT=str(SILENCE))
        self.process = subprocess.Popen([OSHRUN, "--hosts", placement or f"h0,{other}", PHASES, kind], text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=settings)
        self.pids = {}
        while len(self.pids) < 2:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            self.pids[int(line.split()[1])] = int(line.split()[2])
        time.sleep(random.random() * 0.2)
        self.begin = time.monotonic()

    def end(self, status, limit):
        """What it has said."""
        try:
            self.err = self.process.communicate(timeout=patience(20))[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"not over: {self.process.communicate()[1]}") from None
        seconds = time.monotonic() - self.begin
        assert self.process.returncode == status, f"status {self.process.returncode}, not {status}: {self.err}"
        assert seconds < patience(limit), f"took {seconds} s: {self.err}"

    def expect(self, culprit, status, limit):
        """oshrun and every survivor name the culprit, and say nothing else; nothing is left on hosts that run."""
        self.end(status, limit)
        named = re.findall(rf"^oshrun: {culprit}.*; ending the job$", self.err, re.M)
        assert len(named) == 1, f"oshrun does not name '{culprit}' once: {self.err}"
        lines = re.findall(r"^weft: PE 0 \(pid \d+ on h0\): (.*)$", self.err, re.M)
        assert lines and all(re.search(rf"{culprit}.*; leaving$", line) for line in lines), f"PE 0: {self.err}"

    def expect_nothing_left(self, *hosts, limit=SILENCE + SOON):
        for host in hosts or ("h0", self.other):
            wait_until(lambda: not ours(host), limit, f"nothing runs on {host}")


def each(kinds):
    """All of the kinds, or one of them."""
    return kinds if LONG else [random.choice(kinds)]


@case("a PE is killed")
def pe():
    for kind in each(KINDS):
        job = Job(kind)
        subprocess.run(["on", "h1", "kill", "-9", str(job.pids[1])])
        job.expect(rf"PE 1 \(pid {job.pids[1]} on h1\)", 137, 2 * SOON)
        job.expect_nothing_left()


@case("a PE exits while others wait for it")
def exits():
    job = Job("exit")
    job.expect(rf"PE 1 \(pid {job.pids[1]} on h1\)", 3, 2 * SOON)
    job.expect_nothing_left()


@case("a daemon is killed")
def daemon():
    for kind in each(KINDS):
        job = Job(kind)
        for pid, line in ours("h1"):
            if "--daemon" in line:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        job.expect(r"host h1 \(PE 1\) does not answer", 70, 2 * SOON)
        job.expect_nothing_left()


@case("the front is killed")
def front():
    for kind in each(KINDS):
        job = Job(kind)
        job.process.kill()
        job.end(-signal.SIGKILL, SOON)
        job.expect_nothing_left()


@case("a cable is pulled")
def cable():
    for kind in each(KINDS):
        job = Job(kind)
        verbs.link("h1", "down")
        job.expect(r"host h1 \(PE 1\) does not answer", 70, SILENCE + SOON)
        job.expect_nothing_left(limit=SILENCE + 2 * SOON)
        verbs.link("h1", "up")


@case("a host silently drops what comes from the front")
def deaf():
    for kind in each(KINDS):
        job = Job(kind)
        verbs.deaf("h1", "login")
        job.expect(r"host h1 \(PE 1\) does not answer", 70, SILENCE + 2 * SOON)
        job.expect_nothing_left(limit=SILENCE + 2 * SOON)
        verbs.deaf("h1")


@case("a host freezes, and ends its PEs when it goes on")
def frozen():
    for kind in each(KINDS):
        job = Job(kind)
        verbs.freeze("h1")
        job.expect(r"host h1 \(PE 1\) does not answer", 70, SILENCE + SOON)
        verbs.thaw("h1")
        job.expect_nothing_left(limit=SILENCE + 2 * SOON)


@case("a PE that is stopped, and a host that is for less than the limit, are waited for")
def stopped():
    job = Job("barrier")
    subprocess.run(["on", "h1", "kill", "-STOP", str(job.pids[1])], check=True)
    verbs.freeze("h0")
    time.sleep(SILENCE / 2)
    verbs.thaw("h0")
    time.sleep(SILENCE)
    assert job.process.poll() is None, job.process.stderr.read()
    subprocess.run(["on", "h1", "kill", "-CONT", str(job.pids[1])], check=True)
    job.process.send_signal(signal.SIGTERM)
    job.begin = time.monotonic()
    job.end(143, 3 * SOON)
    job.expect_nothing_left()


@case("a host crashes")
def crashed():
    for kind, host in zip(KINDS[1:] if LONG else each(KINDS), rig.names_of(8)[2:]):
        job = Job(kind, host)
        verbs.crash(host)
        job.expect(rf"host {host} \(PE 1\) does not answer", 70, SILENCE + SOON)
        job.expect_nothing_left("h0")


main()
