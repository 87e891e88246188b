#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A PE, a daemon, the front, a cable, a path between two hosts or a whole host fails while PEs are in some call: every
survivor names the culprit and ends soon after the limit, and nothing is left anywhere. A process that is only stopped
is waited for.

    deaths.t                every failure, each in one kind of call
    deaths.t EVENT KIND     one of them, which are listed below

Each has hosts of its own, and some run side by side where there are processors. WEFT_TEST_LONG tries every failure in
every call, twice, or as often as WEFT_TEST_ROUNDS says. In every second round, or at random, host proxies are used, as
the name of the case says; WEFT_PROXIES overrides this."""
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time

import kernel
import rig
import verbs

sys.path[0:0] = [str(rig.HERE.parent / "launch"), str(rig.HERE.parent)]
import tap  # noqa: E402

PAUSING = ["init", "wait", "compute", "finalize"]  # in these the last PE keeps the others waiting
KINDS = ["put", "barrier", "lock", "malloc", "collective", "operator", *PAUSING]


# --- One job on two hosts: PEs 0 and 1 on h0, and 2 on h1 ---------------------------------------------------------------

class Job:
    def __init__(self, kind, silence=None):
        settings = dict(ENVIRONMENT, WEFT_SSH="fakessh", WEFT_HOST_TIMEOUT=str(silence or SILENCE))
        self.kind, self.inside = kind, {}
        self.process = subprocess.Popen([OSHRUN, "--hosts", "h0:2,h1", PHASES, kind], text=True, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=settings)
        while len(self.inside) < 3:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            self.inside[int(line.split()[1])] = int(line.split()[2])
        found = {(host, inner_of(pid)): pid for host in HOSTS for pid, _ in verbs.processes(host)}
        self.pids = {pe: found[HOSTS[pe // 2], pid] for pe, pid in self.inside.items()}
        time.sleep(random.random() * 0.2)

    def daemon(self, host):
        return next(pid for pid, line in verbs.processes(host) if "--daemon" in line and "sh -c" not in line)

    def go_on(self):
        """Continues the last PE, which may have paused."""
        if self.kind in PAUSING:
            os.kill(self.pids[2], signal.SIGUSR1)

    def end(self, status, begin, limit):
        """Checks that oshrun ends with the status in time, and that nothing of the job is left anywhere."""
        try:
            self.err = self.process.communicate(timeout=patience(20))[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"not over: {self.process.communicate()[1]}") from None
        seconds = time.monotonic() - begin
        assert self.process.returncode == status, f"status {self.process.returncode}, not {status}: {self.err}"
        assert seconds < patience(limit), f"took {seconds} s: {self.err}"

    def named(self, culprit, survivors):
        """Checks that oshrun and every survivor name the culprit, and print nothing else."""
        named = re.findall(rf"^oshrun: {culprit}.*; ending the job$", self.err, re.M)
        assert len(named) == 1, f"oshrun does not name '{culprit}' once: {self.err}"
        for pe in survivors:
            lines = re.findall(rf"^weft: PE {pe} \(pid \d+ on h\d\): (.*)$", self.err, re.M)
            assert len(lines) == 1 and re.search(rf"(^|: ){culprit}.*; leaving$", lines[0]), f"PE {pe}: {self.err}"
        known = rf"{culprit}|^oshrun: (h1: Killed$|host h1 has lost the launcher )"  # of a shell, and of a daemon
        strays = [line for line in self.err.splitlines() if not re.search(known, line)]
        assert not strays, strays


class JobByHand:
    """PEs 0 and 1 on h0, 2 and 3 on h1, by a unique id: the first PE of a host has its agent."""
    def __init__(self, kind):
        self.kind, self.pe, self.pids = kind, [], {}
        uniqueid = ""
        for pe in range(4):
            self.pe.append(subprocess.Popen(["on", HOSTS[pe // 2], PHASES, kind, str(pe), "4"], text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                            env=dict(ENVIRONMENT, WEFT_HOST_TIMEOUT=str(SILENCE))))
            uniqueid = uniqueid or self.pe[0].stdout.readline()
            self.pe[pe].stdin.write(uniqueid)
            self.pe[pe].stdin.flush()
        for pe, process in enumerate(self.pe):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            inner, host = int(line.split()[2]), HOSTS[pe // 2]
            self.pids[pe] = next(pid for pid, _ in verbs.processes(host) if inner_of(pid) == inner)
        time.sleep(random.random() * 0.2)

    def end(self, dead, culprit, begin, limit):
        """Checks that all except the dead end in time, and name the culprit in their only line."""
        for pe in set(range(4)) - set(dead):
            try:
                err = self.pe[pe].communicate(timeout=patience(20))[1]
            except subprocess.TimeoutExpired:
                raise AssertionError(f"PE {pe} is not over") from None
            assert self.pe[pe].returncode == 70, f"PE {pe}: status {self.pe[pe].returncode}: {err}"
            line = rf"weft: PE {pe} \(pid \d+ on h\d\): (.*: )?{culprit}.*; leaving\n"
            said = re.sub(r"^.*: waiting for PE .* to call shmem_init\n", "", err)  # if all start slowly
            assert re.fullmatch(line, said), f"PE {pe} does not name '{culprit}': {err}"
        seconds = time.monotonic() - begin
        assert seconds < patience(limit), f"took {seconds} s"


def inner_of(pid):
    """Returns the pid of a process in its own host's namespace."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[-1]) for line in status if line.startswith("NSpid:"))


def expect_gone(job, pes, begin, limit):
    """Checks that the PEs have ended in time."""
    wait_until(lambda: all(gone(job.pids[pe]) for pe in pes), limit, f"PEs {pes} are gone")
    if STRICT:
        seconds = time.monotonic() - begin
        assert seconds < limit, f"PEs {pes} are gone after {seconds} s, which was to be {limit}"


def sockets(host):
    """Returns the sockets of a host's processes, except the rig's."""
    found = []
    for name in "tcp", "tcp6", "udp", "udp6":
        with open(f"/proc/{verbs.pid_of(host)}/net/{name}") as table:
            rows = [line.split() for line in table][1:]
        found += [row[1:4] for row in rows if row[9] != "0" and int(row[1].rpartition(":")[2], 16) != 22]
    return found


def nothing_left(limit, hosts):
    wait_until(lambda: not leftovers(), limit, f"nothing runs any more: {leftovers()}")
    for host in hosts:
        wait_until(lambda host=host: not sockets(host), 1, f"sockets of {host}: {sockets(host)}")
        for folder in "dev/shm", "tmp":
            left = set(os.listdir(f"/proc/{verbs.pid_of(host)}/root/{folder}")) - AT_HOME
            assert not left, f"/{folder} of {host}: {left}"


# --- Failures ----------------------------------------------------------------------------------------------------

AWAY = r"host h1 \(PE 2\) does not answer"
CUT = r"PE \d \(pid \d+ on h\d\) cannot reach host h\d \(PEs? [\d, ]+\), although it is alive"


def happen(kind, event, culprit, status, after, survivors=(0, 1), hosts=("h0", "h1")):
    """The job ends `after` this, and all survivors in a call at most SOON later, or NOW if a PE has ended."""
    job = Job(kind)
    event(job)
    begin = time.monotonic()
    expect_gone(job, survivors, begin, NOW if status == 137 else after + SOON)
    job.end(status, begin, after + 2 * SOON)
    job.named(culprit.replace("PID", str(job.inside[2])), survivors)
    nothing_left(after + 2 * SOON, hosts)


def pe(kind):
    happen(kind, lambda job: os.kill(job.pids[2], signal.SIGKILL),
           r"PE 2 \(pid PID on h1\) was killed by signal 9 \(Killed\)", 137, 0)


def first_pe(kind):
    happen(kind, lambda job: os.kill(job.pids[0], signal.SIGKILL),
           r"PE 0 \(pid \d+ on h0\) was killed by signal 9 \(Killed\)", 137, 0, (1,) if kind in PAUSING else (1, 2))


def exits(kind):
    job = Job("exit")
    begin = time.monotonic() + 0.3
    job.end(3, begin, 2 * SOON)
    job.named(rf"PE 2 \(pid {job.inside[2]} on h1\) exited with status 3 without shmem_finalize", (1,))
    nothing_left(SOON, HOSTS)


def exits_by_hand(kind):
    job = JobByHand(kind)
    begin = time.monotonic() + 0.3
    job.end((3,), r"PE 3 \(pid \d+ on h1\) exited with status 3 without shmem_finalize", begin, 2 * SOON)
    nothing_left(SOON, HOSTS)


def daemon(kind):
    happen(kind, lambda job: os.kill(job.daemon("h1"), signal.SIGKILL), AWAY, 70, 0)


def front(kind):
    job = Job(kind)
    job.process.kill()
    begin = time.monotonic()
    expect_gone(job, (0, 1), begin, SOON)
    job.end(-signal.SIGKILL, begin, SOON)
    nothing_left(2 * SOON, HOSTS)


def cable(kind):
    happen(kind, lambda job: verbs.link("h1", "down"), AWAY, 70, SILENCE)


def crash(kind):
    happen(kind, lambda job: verbs.crash("h1"), AWAY, 70, SILENCE, hosts=("h0",))


def deaf_host(kind):
    """The front still hears h1, and leaves less than 1 s after it. It would leave 3 s after it if it took the copies that
    h1's kernel sends, after ever longer times, for signs of life. Load does not change these two numbers."""
    silence, lag_max = max(SILENCE, 2.0), 1.9
    job = Job(kind, silence)
    verbs.deaf("h1", "login")
    begin = time.monotonic()
    expect_gone(job, (2,), begin, silence + SOON)
    left = time.monotonic()
    expect_gone(job, (0, 1), begin, silence + 3 * SOON)
    lag = time.monotonic() - left
    assert lag < lag_max, f"PEs 0 and 1 have left {lag:.1f} s after PE 2"
    job.end(70, begin, silence + 3 * SOON)
    job.named(AWAY, (0, 1))
    nothing_left(silence + 2 * SOON, HOSTS)


def deaf_front(kind):
    happen(kind, lambda job: verbs.deaf("login", "h1"), AWAY, 70, SILENCE)


def frozen(kind):
    """The frozen host ends its PEs when it continues."""
    job = Job(kind)
    verbs.freeze("h1")
    begin = time.monotonic()
    expect_gone(job, (0, 1), begin, SILENCE + SOON)
    job.end(70, begin, SILENCE + 2 * SOON)
    job.named(AWAY, (0, 1))
    verbs.thaw("h1")
    nothing_left(SILENCE + 2 * SOON, HOSTS)


def cut_by(kind, *cuts):
    """The path between the two hosts fails, and both can reach the front."""
    survivors = (0, 1) if kind in ("init", "wait", "compute") else (0, 1, 2)

    def event(job):
        for cut in cuts:
            cut()
        job.go_on()
    happen(kind, event, CUT, 70, SILENCE, survivors)


def cut(kind):
    cut_by(kind, lambda: verbs.deaf("h0", "h1"), lambda: verbs.deaf("h1", "h0"))


def half_cut(kind):
    cut_by(kind, lambda: verbs.deaf(*random.sample(HOSTS, 2)))


def refused(kind):
    """A firewall between the hosts refuses all packets, also of open connections: the engine gives up its
    connections."""
    cut_by(kind, lambda: verbs.refuse("h0", "h1"))


def stopped(kind):
    """All PEs of a host are stopped for several limits, and the other host with its daemon for half a limit: they are
    waited for."""
    job = Job(kind)
    os.kill(job.pids[2], signal.SIGSTOP)
    verbs.freeze("h0")
    time.sleep(SILENCE / 2)
    verbs.thaw("h0")
    time.sleep(3 * SILENCE)
    assert job.process.poll() is None, job.process.stderr.read()
    os.kill(job.pids[2], signal.SIGCONT)
    job.go_on()
    if kind == "finalize":
        job.end(0, time.monotonic(), 3 * SOON)
    else:
        time.sleep(0.2)
        assert job.process.poll() is None, job.process.stderr.read()
        job.process.terminate()
        job.end(143, time.monotonic(), 3 * SOON)
    nothing_left(2 * SOON, HOSTS)


# --- Without a launcher on the hosts -----------------------------------------------------------------------------

def happen_by_hand(kind, event, culprit, after, dead=(), hosts=("h0", "h1")):
    """As `happen`, without a launcher; the last PE may be in no call."""
    job = JobByHand(kind)
    event(job)
    begin = time.monotonic()
    calling = set(range(4)) - set(dead) - ({3} if kind in PAUSING else set())
    expect_gone(job, calling, begin, after + SOON if after else NOW)
    job.end(dead, culprit, begin, after + 2 * SOON)
    nothing_left(after + 2 * SOON, hosts)


def pe_by_hand(kind, pe):
    happen_by_hand(kind, lambda job: os.kill(job.pids[pe], signal.SIGKILL), rf"PE {pe} \(pid \d+ on h{pe // 2}\) died", 0, (pe,))


def middle_by_hand(kind):
    pe_by_hand(kind, 0)


def first_by_hand(kind):
    pe_by_hand(kind, 2)


def large_by_hand(kind):
    """The dead PE's connections outlive it, as they do until the kernel has freed the memory of a large process."""
    with contextlib.ExitStack() as held:
        def event(job):
            for descriptor in kernel.descriptors(job.pids[pe]):
                held.callback(os.close, descriptor)
            os.kill(job.pids[pe], signal.SIGKILL)
        pe = random.choice((0, 2))
        happen_by_hand(kind, event, rf"PE {pe} \(pid \d+ on h{pe // 2}\) died", 0, (pe,), hosts=())
    nothing_left(SOON, HOSTS)


def other_by_hand(kind):
    pe_by_hand(kind, random.choice((1, 3)))


def cable_by_hand(kind):
    """Each host may take the other one for lost."""
    happen_by_hand(kind, lambda job: verbs.link("h1", "down"), r"host h[01] \(PEs [0-3], [0-3]\) does not answer", SILENCE)


def crash_by_hand(kind):
    happen_by_hand(kind, lambda job: verbs.crash("h1"), r"host h1 \(PEs 2, 3\) does not answer", SILENCE, (2, 3), ("h0",))


BY_HAND = [kind for kind in KINDS if kind != "init"]  # a PE that dies earlier ends no job, because there is no job yet

EVENTS = {
    "a PE is killed": (pe, KINDS),
    "the first PE is killed": (first_pe, KINDS),
    "a PE exits with a status while others wait, and compute": (exits, ["exit"]),
    "without a launcher, a PE exits with a status": (exits_by_hand, ["exit"]),
    "a daemon is killed": (daemon, KINDS),
    "the front is killed": (front, KINDS),
    "a cable is pulled": (cable, KINDS),
    "a host crashes": (crash, KINDS),
    "a host freezes": (frozen, KINDS),
    "a host silently drops what comes from the front": (deaf_host, KINDS),
    "the front silently drops what comes from a host": (deaf_front, KINDS),
    "the path between two hosts is cut": (cut, KINDS),
    "one direction of it is cut": (half_cut, KINDS),
    "connections between two hosts are reset": (refused, KINDS),
    "PEs and hosts that only stop are waited for": (stopped, KINDS),
    "without a launcher, PE 0 is killed": (middle_by_hand, BY_HAND),
    "without a launcher, the first PE of a host is killed": (first_by_hand, BY_HAND),
    "without a launcher, the first PE of a host is killed and large": (large_by_hand, BY_HAND),
    "without a launcher, another PE is killed": (other_by_hand, BY_HAND),
    "without a launcher, a cable is pulled": (cable_by_hand, BY_HAND),
    "without a launcher, a host crashes": (crash_by_hand, BY_HAND),
}


# --- All cases ---------------------------------------------------------------------------------------------------

def apart(event, kind, proxies, found):
    """Runs one case on hosts of its own."""
    result = subprocess.run([sys.executable, __file__, event, kind], text=True, capture_output=True, timeout=300,
                            env=dict(os.environ, WEFT_PROXIES=proxies))
    if "# SKIP" in result.stdout:
        raise tap.Skip(result.stdout.partition("# SKIP ")[2].splitlines()[0])
    if result.returncode:
        found += [f"deaths.t {event} {kind}: status {result.returncode}", *(result.stdout + result.stderr).splitlines()]


def cases():
    """Yields (name, function) of all requested cases, round by round."""
    rounds = int(os.environ.get("WEFT_TEST_ROUNDS", 2))
    draw = random.Random(os.environ.get("WEFT_TEST_SEED"))
    for number in range(rounds if LONG else 1):
        for name, (function, kinds) in EVENTS.items():
            for kind in kinds if LONG else [draw.choice(kinds)]:
                turn = number if LONG else draw.randrange(2)
                proxies = os.environ.get("WEFT_PROXIES") or ("pe", "host")[turn % 2]
                yield (f"{name}: {kind}, {proxies}" + (f" ({number + 1})" if number else ""),
                       lambda found, case=(function.__name__, kind, proxies): apart(*case, found))


LONG = bool(os.environ.get("WEFT_TEST_LONG"))
if len(sys.argv) == 1:
    tap.run(tap.ahead(list(cases()), max(1, len(os.sched_getaffinity(0)) * 3 // 4)))  # they mostly wait

rig.enter(2)
from harness import BUILD, ENVIRONMENT, OSHRUN, SILENCE, STRICT, end_leftovers, gone, leftovers, patience, wait_until  # noqa: E402

HOSTS = ("h0", "h1")
PHASES = str(BUILD / "tests/hosts/phases")
SOON, NOW = 1.0, 0.2  # after a silence; after the death of a process
# Gives each host a /tmp of its own, in which this tree is still visible if it is below /tmp.
OWN_TMP, AT_HOME = "mount -t tmpfs tmpfs /tmp", set()
TREE = rig.HERE.parents[1]
if TREE.is_relative_to("/tmp"):
    AT_HOME = {TREE.parts[2]}
    OWN_TMP = f"mount --bind '{TREE}' /mnt && {OWN_TMP} && mkdir -p '{TREE}' && mount --move /mnt '{TREE}'"
for host in HOSTS:
    subprocess.run(["on", host, "sh", "-c", OWN_TMP], check=True)
try:
    {function.__name__: function for function, _ in EVENTS.values()}[sys.argv[1]](sys.argv[2])
finally:
    end_leftovers()
