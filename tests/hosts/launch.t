#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A job over hosts of the rig ends as a job on one host does, whatever dies, and leaves nothing on any host."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import rig
import verbs

rig.enter(3)
sys.path.insert(0, str(rig.HERE.parent / "launch"))
from harness import BUILD, ENVIRONMENT, PE, SILENCE, Result, case, main, patience, read_numbers, start, wait_until  # noqa: E402

ENVIRONMENT.update(WEFT_SSH="fakessh", WEFT_HOST_TIMEOUT=str(SILENCE))
TWO = ["--hosts", "h0,h1"]
MEET = [PE, "join", "exchange:2"]


def over(*words, text=None, seconds_max=10, **options):
    """Returns the result of a job on hosts; after it no process runs on any of them."""
    if text is not None:
        options["stdin"] = subprocess.PIPE
    result = Result(start(*words, **options), text, seconds_max)
    expect_empty()
    return result


def processes(host):
    return subprocess.run(["procs", host], text=True, capture_output=True).stdout.strip()


def expect_empty(*hosts):
    for host in hosts or ("h0", "h1"):
        wait_until(lambda: not processes(host), 3, f"{host} is empty: {processes(host)}")


@contextlib.contextmanager
def running(*words, hosts=TWO):
    """Starts a job whose PEs wait for each other."""
    job = start(*hosts, PE, "join", "exchange", "pid", *words)
    pids = sorted(read_numbers(job, "pid", 2))
    yield job, pids
    job.kill()


@contextlib.contextmanager
def ssh(script):
    """Returns a command for WEFT_SSH, in which $h is the host and $* the command."""
    with tempfile.TemporaryDirectory(prefix="weft-ssh-") as folder:
        path = pathlib.Path(folder) / "ssh"
        path.write_text(f'#!/bin/sh\nh=$1; shift\n{script}\n')
        path.chmod(0o755)
        yield ["env", f"WEFT_SSH={path}"]


@case("PEs of several hosts meet in exchanges, started beside the hosts and on one of them")
def meet():
    for below in ((), ("on", "h1")):
        result = over("--hosts", "h0:2,h1", *MEET, "leave", "print", below=below).expect(0, seconds_max=5)
        assert sorted(result.out.split("\n")[:-1]) == ["PE 0", "PE 1", "PE 2"], result.out
    over("--hosts", "login,h1", *MEET, "leave").expect(0, seconds_max=5)


@case("PE 0 reads the standard input wherever it is, and its end")
def standard_input():
    for hosts in ("h0,h1", "h1,h0"):
        result = over("--hosts", hosts, "wc", "-c", text="x" * 300000).expect(0, seconds_max=5)
        assert sorted(result.out.split()) == ["0", "300000"], result.out


@case("lines are whole and have PE and host")
def lines():
    script = "for i in $(seq 300); do printf %s aaaa; printf '%s\\n' bbbb; done"
    out = over(*TWO, "-n", 4, "--tag-host", "sh", "-c", script).expect(0, seconds_max=8).out
    assert sorted(set(out.splitlines())) == [f"[{pe} h{pe // 2}] aaaabbbb" for pe in range(4)], set(out.splitlines())
    assert out.count("\n") == 1200, out.count("\n")


@case("a variable goes to all hosts, the folder too, and the status is that of the PE")
def environment():
    result = over(*TWO, "-x", "A=5", "-wdir", "/usr", "sh", "-c", "echo $A $PWD $WEFT_HOST_TIMEOUT").expect(0, seconds_max=5)
    assert result.out == f"5 /usr {SILENCE}\n" * 2, result.out
    over(*TWO, *MEET, "leave", "1@exit:3").expect(3, "oshrun: PE 1 (pid ", seconds_max=5)
    over(*TWO, *MEET, "1@global_exit:5", "0@exchange").expect(5, seconds_max=5)
    over(*TWO, "/no/such/program").expect(127, "cannot run '/no/such/program' on h", seconds_max=5)


@case("a PE that dies is named with its host, and all others end")
def death():
    for pe in (0, 1):
        result = over(*TWO, *MEET, f"{pe}@raise:9", "exchange").expect(137, f" on h{pe}) was killed by signal 9", seconds_max=5)
        assert result.err.count("; ending the job") == 1, result.err
    over(*TWO, *MEET, "1@_exit:4", "exchange").expect(4, " on h1) exited with status 4 without shmem_finalize", seconds_max=5)


@case("signals reach all PEs, and a deadly one ends the job")
def signals():
    for number in (signal.SIGTERM, signal.SIGINT):
        with running("exchange", "0@sleep_ms:60000", "exchange") as (job, pids):
            job.send_signal(number)
            Result(job).expect(128 + number, seconds_max=5)
        expect_empty()


def states():
    """Returns the states of all PEs, as /proc shows them."""
    pes = [pid for host in ("h0", "h1") for pid, line in verbs.processes(host) if PE in line and "oshrun" not in line]
    return [pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in pes]


@case("Ctrl-Z stops PEs on all hosts, for longer than a host may be silent, and fg has them go on")
def stopped():
    with running("sleep_ms:300", "exchange", "leave") as (job, pids):
        job.send_signal(signal.SIGTSTP)
        wait_until(lambda: states() == ["T", "T"], 2, f"all PEs are stopped: {states()}")
        time.sleep(1.7)
        assert states() == ["T", "T"], states()
        job.send_signal(signal.SIGCONT)
        Result(job).expect(0, seconds_max=5)


@case("an oshrun that is stopped itself is waited for, also while PEs write more than it takes")
def front_stopped():
    job = start(*TWO, "sh", "-c", "echo; sleep 0.5; yes | head -c 6000000")
    os.read(job.stdout.fileno(), 1)  # only this byte: more would be missing below
    job.send_signal(signal.SIGSTOP)
    time.sleep(4)
    job.send_signal(signal.SIGCONT)
    assert len(Result(job).expect(0, seconds_max=15).out) == 12000001


@case("an oshrun that is stopped, and whose host no longer hears another one, is not waited for")
def front_deaf():
    """login hears neither host any more, and one of the two no longer hears login: both leave at the same time. The one
    that still hears would leave 3 s after the other if it took the copies that login's kernel sends, after ever longer
    times, for signs of life. Load does not change these numbers."""
    silence, heard, lag_max = 1.8, 0.5, 1.3
    below = ["env", f"WEFT_HOST_TIMEOUT={silence}"]
    jobs = {host: start("--hosts", f"h0,{host}", PE, "join", "exchange", "pid", "0@sleep_ms:60000", "exchange", below=below)
            for host in ("h1", "h2")}
    for host, job in jobs.items():
        read_numbers(job, "pid", 2)
        verbs.deaf("login", host)
    time.sleep(heard)  # until oshrun's heartbeats are under way, whose acknowledgments will be dropped
    for job in jobs.values():
        job.send_signal(signal.SIGSTOP)
    verbs.deaf("h2", "login")
    left = {}

    def all_left():
        left.update((host, time.monotonic()) for host in jobs if host not in left and not processes(host))
        return len(left) == 2
    wait_until(all_left, silence + 1.5, "h1 and h2 are empty")
    assert left["h1"] - left["h2"] < lag_max, f"h1, which hears login, has left {left['h1'] - left['h2']:.1f} s after h2"
    for job in jobs.values():
        job.send_signal(signal.SIGCONT)
    for host, result in [(host, Result(job)) for host, job in jobs.items()]:
        result.expect(70, f"oshrun: host {host} (PE 1) does not answer (", seconds_max=5)
    for host in ("login", "h2"):
        verbs.deaf(host)
    expect_empty("h0", "h1", "h2")


@case("a host that cannot be reached, or has no Weft, is named, and nothing runs on the others")
def refused():
    over("--hosts", "h0,h9", "echo", "x").expect(71, "oshrun: cannot start on host h9: 'fakessh h9' cannot reach it\n", out="", seconds_max=5)
    with ssh('[ $h = h0 ] || set -- /no/such/oshrun --daemon; exec fakessh $h "$@"') as other:
        over(*TWO, "echo", "x", below=other).expect(71, "cannot start on host h1: ", out="", seconds_max=5)
    with tempfile.TemporaryDirectory(prefix="weft-ssl-") as folder:
        for library in ("libssl.so.3", "libcrypto.so.3"):
            (pathlib.Path(folder) / library).touch()
        hidden = f"LD_LIBRARY_PATH={folder}"
        over(*TWO, "echo", "x", below=["env", hidden]).expect(71, "libssl", out="", seconds_max=5)
        with ssh(f'[ $h = h0 ] || set -- env {hidden} "$@"; exec fakessh $h "$@"') as other:
            result = over(*TWO, "echo", "x", below=other).expect(71, "cannot start on host h1: ", out="", seconds_max=5)
            assert "libssl" in result.err, result.err


@case("a program without a folder is found as where oshrun is called; a host that has none there looks for itself")
def bare_names():
    assert over(*TWO, "weft", "version").status == 127
    with tempfile.TemporaryDirectory(prefix="weft-path-") as folder:
        tool = pathlib.Path(folder) / "hostname"
        tool.write_text("#!/bin/sh\necho ours\n")
        tool.chmod(0o755)
        ours = ["env", f"PATH={folder}:{BUILD / 'bin'}:{os.environ['PATH']}"]
        assert over(*TWO, "weft", "version", below=ours).expect(0).out.count("Weft") == 2
        over(*TWO, "hostname", below=ours).expect(0, out="ours\nours\n")
        theirs = over(*TWO, "-x", "PATH=/usr/bin:/bin", "hostname", below=ours).expect(0)
        assert sorted(theirs.out.split()) == ["h0", "h1"], theirs.out


@case("a bare python of a virtual environment, found in PATH where oshrun is called, is that environment's on all hosts")
def virtual_environment():
    with tempfile.TemporaryDirectory(prefix="weft-venv-") as folder:
        home = pathlib.Path(folder)
        (home / "bin").mkdir()
        (home / "bin/python").symlink_to(os.path.realpath(sys.executable))
        (home / "pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n")
        ours = ["env", f"PATH={home / 'bin'}:{os.environ['PATH']}"]
        out = over("--hosts", "login,h1", "python", "-c", "import sys; print(sys.prefix, sys.executable)", below=ours).expect(0).out
        assert out == f"{home} {home / 'bin/python'}\n" * 2, out


@case("an ssh that hangs, and a login shell that reads what oshrun sends, are named with the host and what to do")
def logins():
    with ssh('[ $h = h0 ] || exec sleep 30; exec fakessh $h "$@"') as other:
        result = over(*TWO, "true", below=[*other, "WEFT_START_TIMEOUT=2"]).expect(71, seconds_max=8)
    assert re.search("^oshrun: ssh has not reached h1 yet: try `.*/ssh h1 true`", result.err, re.M), result.err
    assert re.search("^oshrun: cannot start on host h1: '.*/ssh' has not reached it within 2 s", result.err, re.M), result.err
    assert "to h0" not in result.err and "has started" not in result.err, result.err
    with ssh('[ $h = h0 ] || set -- "read x; $*"; exec fakessh $h "$@"') as other:
        result = over(*TWO, "true", below=other).expect(71, seconds_max=8)
    assert re.search("^oshrun: host h1 cannot start: .*its beginning is missing; a program in the login shell's", result.err, re.M), result.err
    with ssh('[ $h = h0 ] || exec fakessh $h "$@" </dev/null; exec fakessh $h "$@"') as other:
        result = over(*TWO, "true", below=other).expect(71, seconds_max=8)
    line = "^oshrun: host h1 cannot start: oshrun --daemon got no data on its standard input: the command of WEFT_SSH may not forward it"
    assert re.search(line, result.err, re.M), result.err


@case("a host may have a name that ssh alone knows, also where oshrun runs on another host of the list")
def aliases():
    with ssh('exec fakessh h1 "$@"') as other:
        over("--hosts", "h0,alias", BUILD / "examples/counts", below=["on", "h0", *other]).expect(0)


@case("a host that cannot start its PEs says why, with its name, and is not blamed for silence")
def limits():
    with ssh('[ $h = h0 ] || set -- "ulimit -n 30; $*"; exec fakessh $h "$@"') as other:
        result = over("--hosts", "h0:8,h1:8", "true", below=other).expect(71)
    line = r"oshrun: cannot start on host h1: (socketpair|pipe2), for .*: Too many open files; ulimit -n is 30: raise it\n"
    assert re.fullmatch(line, result.err), result.err


def lose(what, *back):
    """h1 is lost by this; the job names it in the promised time, and h0 has no process left."""
    with running("exchange", "0@sleep_ms:60000", "exchange") as (job, pids):
        what()
        begin = time.monotonic()
        result = Result(job)
        assert result.status == 70 and "oshrun: host h1 (PE 1) does not answer (" in result.err, (result.status, result.err)
        assert time.monotonic() - begin < patience(4), time.monotonic() - begin
        expect_empty("h0")
        for undo in back:
            undo()
        expect_empty("h1")
        return result


def daemon_of(host):
    """Returns the daemon's pid on the machine."""
    for line in subprocess.run(["ps", "-eo", "pid,comm"], text=True, capture_output=True).stdout.splitlines():
        pid, command = line.split(None, 1)
        with contextlib.suppress(OSError):
            if command == "oshrun" and os.stat(f"/proc/{pid}/ns/net") == os.stat(f"/proc/{verbs.pid_of(host)}/ns/net"):
                return int(pid)
    raise AssertionError(f"no daemon on {host}")


@case("a daemon that is killed ends the job")
def daemon_killed():
    result = lose(lambda: os.kill(daemon_of("h1"), signal.SIGKILL))
    assert "its connection has ended" in result.err, result.err


@case("a cable that is pulled ends the job on both sides")
def cable():
    lose(lambda: verbs.link("h1", "down"))
    verbs.link("h1", "up")


@case("a host that is frozen ends the job, and ends itself when it goes on")
def frozen():
    lose(lambda: subprocess.run(["freeze", "h1"], check=True), lambda: subprocess.run(["thaw", "h1"], check=True))


@case("an oshrun that is killed leaves nothing on any host")
def front_killed():
    with running("sleep_ms:60000") as (job, pids):
        job.kill()
        expect_empty()


@case("a host that loses its power ends the job")
def crash():
    with running("exchange", "0@sleep_ms:60000", "exchange", hosts=["--hosts", "h0,h2"]) as (job, pids):
        subprocess.run(["crash", "h2"], check=True)
        Result(job).expect(70, "oshrun: host h2 (PE 1) does not answer (", seconds_max=6)
    expect_empty("h0")


main()
