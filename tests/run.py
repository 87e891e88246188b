#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests and prints one line for each, then a summary.

    tests/run.py GOAL [-p 2/6] [-f EXPRESSION]       the rows of tests/matrix.txt for a goal such as check
    tests/run.py test -- ROOM/NAME PES FAR MAKE...   builds and runs one test (make test); PES and FAR may be ''
    tests/run.py costs LOG...                        what tests took in logs of runs, as lines for tests/costs.txt

Options: -b BUILD names the folder of gcc's build; -l lists the commands and runs nothing; -p runs one part of
several of equal cost; -f runs those whose name matches; -r RUNS and -t TESTS replace the last two columns of rows
that run far, over hosts or on GPUs.

A test fails if it prints "not ok", exits with another status than 0, or has not run all cases that it announced. A
case that could not run is a skip, which the summary counts with its reason. Tests that took longest before start
first, and one more starts whenever processors idle (WEFT_TEST_JOBS=2: two at a time).
"""
import argparse
import collections
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import catalog
import costs
import matrix

TICK = 0.01   # seconds between two looks at running tests
LOOK = 0.03   # seconds over which the idleness of processors is measured
IDLE = 1 / 5  # of one processor: from there on, one more test starts
LONGEST = 10  # seconds after which one more test starts although other programs keep the processors busy
MORE = 6      # tests that may run at once beyond one for each processor
JOBS_MAX = 8  # not every machine has memory for more


def read_cases(text):
    """(number of cases, problems, reasons of skips) of a test's output in TAP."""
    cases = re.findall(r"^(not )?ok\b *\d*(.*)", text, re.M)
    problems = [f"not ok{name}" for wrong, name in cases if wrong]
    skips = [name.partition("# SKIP")[2].strip() for wrong, name in cases if not wrong and "# SKIP" in name]
    plan = re.search(r"^1\.\.(\d+)(?: # SKIP *(.*))?", text, re.M)
    if not plan:
        problems.append("it has ended without its plan")
    elif int(plan[1]) != len(cases):
        problems.append(f"{plan[1]} cases were planned, {len(cases)} ran")
    return len(cases), problems, skips + ([plan[2] or ""] if plan and plan[1] == "0" else [])


class Job:
    """A test that runs."""

    def __init__(self, run, shown):
        self.run, self.shown, self.begin, self.at = run, shown, time.monotonic(), 0
        self.out, self.err = (tempfile.TemporaryFile("w+", errors="replace") for _ in range(2))
        self.process = subprocess.Popen(run.words, stdin=subprocess.DEVNULL, stdout=self.out,
                                        stderr=None if shown else self.err)

    def show(self):
        """Prints the output since the last call, without a seek: the test shares the offset of the file."""
        new = os.pread(self.out.fileno(), max(0, os.fstat(self.out.fileno()).st_size - self.at), self.at)
        sys.stdout.write(new.decode(errors="replace"))
        sys.stdout.flush()
        self.at += len(new)

    def finish(self, status):
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - self.begin
        self.out.seek(0), self.err.seek(0)
        self.cases, self.problems, self.skips = read_cases(self.out.read())
        if self.process.returncode == 124:
            self.problems.append("it took longer than it may")
        elif self.process.returncode:
            self.problems.append(f"it has ended with status {self.process.returncode}")

    def report(self, usage):
        verdict = "FAILED" if self.problems else f"skipped: {self.skips[0]}" if self.skips and not self.cases else "ok"
        print(f"[{time.strftime('%H:%M:%S')}] {self.run.name} {'.' * (70 - len(self.run.name))} {verdict} "
              f"({self.cases} cases, {self.seconds:.1f} s, {usage.ru_utime + usage.ru_stime:.1f} s of processors)")
        if self.problems:
            lines = self.problems + ([] if self.shown else self.err.read().splitlines()[-200:]) + [shlex.join(self.run.words)]
            print(*(f"    {line}" for line in lines), sep="\n")
        sys.stdout.flush()


class Processors:
    """Decides when one more test starts: when none runs, or the processors idle. PEs that wait for each other spin, so tests
    that compete for processors take much longer in sum than one after the other, while tests that sleep leave room."""

    def __init__(self, jobs):
        self.jobs, self.numbers = jobs, os.sched_getaffinity(0)
        self.started = 0.0
        self.look()

    def look(self):
        """Measures idleness from now on; also when a test ends, which may have kept the processors busy."""
        self.at, self.last = time.monotonic(), self.idle_seconds()

    def idle_seconds(self):
        lines = re.findall(r"^cpu(\d+) \d+ \d+ \d+ (\d+)", pathlib.Path("/proc/stat").read_text(), re.M)
        return sum(int(idle) for number, idle in lines if int(number) in self.numbers) / os.sysconf("SC_CLK_TCK")

    def have_room(self, running):
        """Whether one more test may start beside that many; the processors are looked at once in LOOK seconds."""
        if self.jobs:
            return running < self.jobs
        now = time.monotonic()
        if running == 0 or running <= len(self.numbers) and now - self.started > LONGEST:
            self.started = now
            return True
        if running >= min(len(self.numbers) + MORE, JOBS_MAX) or now - self.at < LOOK:
            return False
        idle = (self.idle_seconds() - self.last) / (now - self.at)
        self.look()
        if idle > IDLE:
            self.started = now
        return idle > IDLE


def end(running):
    for job in running.values():
        job.process.terminate()  # timeout(1), which ends what it runs


def run_all(runs, jobs, shown):
    """Runs all and returns the finished jobs; `jobs` is the number of tests at once, 0 to decide by the processors."""
    waiting, running, done, processors = collections.deque(runs), {}, [], Processors(jobs)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(end(running) or 143))
    try:
        while waiting or running:
            if waiting and processors.have_room(len(running)):
                job = Job(waiting.popleft(), shown)
                running[job.process.pid] = job
                continue
            pid, status, usage = os.wait3(os.WNOHANG)
            if shown:
                next(iter(running.values())).show()
            if pid not in running:
                time.sleep(TICK)
                continue
            job = running.pop(pid)
            processors.look()
            job.finish(status)
            job.report(usage)
            done.append(job)
    except KeyboardInterrupt:
        end(running)
        sys.exit(130)
    return done


def summarize(done, skips, seconds):
    """Prints the summary; `skips` are the names of tests that did not start, by reason."""
    failed = [job for job in done if job.problems]
    for job in done:
        for reason in job.skips:
            skips[reason].append(job.run.name)
    for reason, names in sorted(skips.items()):
        print(f"skipped {len(names)}: {reason} ({', '.join(sorted(set(names))[:3])})")
    for job in failed:
        print(f"FAILED {job.run.name}: {'; '.join(job.problems[:3])}")
    times = os.times()
    print(f"Tests={len(done)}, cases={sum(job.cases for job in done)}, skipped={sum(map(len, skips.values()))}, "
          f"{seconds:.0f} s, {times.children_user + times.children_system:.0f} s of processors\nResult: {'FAIL' if failed else 'PASS'}")
    return 1 if failed or not done else 0


def leave_out(runs, skips):
    """The runs that can start here; the names of the others are added to skips[reason]."""
    possible = []
    for run in runs:
        lacks = [file for file in run.files if file.endswith(matrix.UCX) and not os.path.exists(file)]
        skips[f"there is no {lacks[0]} (libucx-dev)"].append(run.name) if lacks else possible.append(run)
    return possible


def check_built(plan, runs):
    """An error if something is not built, before any test runs."""
    for folder in sorted({plan.folder(run.build) for run in runs}):
        if not os.access(f"{folder}/bin/oshrun", os.X_OK):
            catalog.fail(f"{folder}/bin/oshrun is not there: build first (make all tests python BUILD={folder}, "
                         "or make test T=ROOM/NAME)")
    missing = sorted({file for run in runs for file in run.files if not os.path.exists(file)})
    if missing:
        catalog.fail(f"{len(missing)} programs of tests are not built, {missing[0]} first: make tests, or make test T=ROOM/NAME")


def one_test(words, plan):
    """The runs of `make test`, after a make of what the test needs."""
    asked, pes, far, *make = words
    name = catalog.resolve(asked)
    if pes:
        catalog.check_pes(pes, name)
        plan.count, plan.counts = int(pes), [int(pes)]
    quiet = [] if os.environ.get("V", "0") != "0" else ["-s"]  # or else make says what is up to date
    built = subprocess.run([*make, *quiet, f"BUILD={plan.build}", *sorted(catalog.needs(name, plan.build))], close_fds=False)
    return plan.only(name, far) if built.returncode == 0 else sys.exit(built.returncode)


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("goal")
    parser.add_argument("words", nargs="*")
    parser.add_argument("-b", "--build", default="build")
    parser.add_argument("-f", "--filter", default="")
    parser.add_argument("-l", "--list", action="store_true")
    parser.add_argument("-p", "--part", default="")
    parser.add_argument("-r", "--runs", default="")
    parser.add_argument("-t", "--tests", default="")
    return parser.parse_args()


def main():
    asked = arguments()
    os.chdir(catalog.TESTS.parent)
    if asked.goal == "costs":
        return costs.learn(asked.words)
    if asked.goal == "check-all":
        os.environ["WEFT_TEST_LONG"] = "1"
    one = asked.goal == "test"
    plan = matrix.Plan(asked.build, bool(os.environ.get("WEFT_TEST_LONG")))
    runs = one_test(asked.words, plan) if one else plan.add_rows(matrix.rows(asked.goal, asked.runs, asked.tests))
    runs = [run for run in runs if re.search(asked.filter, run.name)]
    if not runs:
        catalog.fail(f"no test matches '{asked.filter or ' '.join(asked.words[:3])}'")
    if asked.part:
        runs = costs.part(runs, asked.part, plan.long)
    if asked.list:
        return print("\n".join(f"{run.name}\t{shlex.join(run.words)}" for run in runs))
    skips = collections.defaultdict(list)
    runs = leave_out(runs, skips)
    check_built(plan, runs)
    for name in "MAKEFLAGS", "MAKELEVEL", "PART":  # a make that a test starts shall not obey the one above
        os.environ.pop(name, None)
    os.environ["WEFT_BUILD"] = plan.build  # for scripts
    os.environ.setdefault("WEFT_DETERMINISTIC", "1")  # no trials of products, and nothing in the user's cache
    jobs = 1 if one or asked.goal == "check-gpu" else int(os.environ.get("WEFT_TEST_JOBS", 0))
    begin = time.monotonic()
    done = run_all(runs if one else costs.dearest_first(runs, plan.long), jobs, one)
    return summarize(done, skips, time.monotonic() - begin)


if __name__ == "__main__":
    sys.exit(main())
