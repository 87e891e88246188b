#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The front of a job on several hosts, with puppets (puppet.c) as daemons, all on this machine."""
from harness import BUILD, ENVIRONMENT, OSHRUN, Result, case, main, patience, run, start
import os
import pathlib
import signal
import subprocess
import tempfile
import time

ENVIRONMENT.update(WEFT_SSH=str(BUILD / "tests/launch/puppet"), WEFT_HOST_TIMEOUT="1", WEFT_START_TIMEOUT="10")
ENVIRONMENT.update(RES_OPTIONS="timeout:1 attempts:1")  # names of puppets are in no DNS, and a lost query costs 5 s
READY = ["connect", "hello", "go"]
DONE = [*READY, "done"]


def hosts(*words, names="a,b", options=(), **more):
    return run("--hosts", names, *options, "program", *words, **more)


@case("all hosts start their PEs when all have answered, and the job is over when all are done")
def whole():
    hosts(*READY, "out=x~", "done").expect(0, out="x\nx\n", err="")
    hosts("connect", "b@remark=too early", "hello", "go", "done").expect(71, "cannot start on host b: it has sent an invalid frame")


@case("PEs are placed by slots, in proportion beyond them, at so many a host, and in turn")
def placed():
    def shown(names, *options):
        err = run("--hosts", names, *options, "-v", "program", *DONE).expect(0).err
        return [line.partition("host ")[2] for line in err.splitlines() if " has PE" in line]
    assert run("--hosts", "a,b", "-v", "program", *DONE).expect(0).err.count("oshrun: PEs 0 to 1 run 'program'\n") == 1
    assert shown("a,b") == ["a has PE 0", "b has PE 1"]
    assert shown("a:2,b,a") == ["a has PEs 0, 1, 2", "b has PE 3"]
    assert shown("a:2,b", "-n", 2, "--map-by", "node") == ["a has PE 0", "b has PE 1"]
    assert shown("a:2,b:2,c", "--bynode") == ["a has PEs 0, 3", "b has PEs 1, 4", "c has PE 2"]
    assert shown("a,b", "-n", 4) == ["a has PEs 0, 1", "b has PEs 2, 3"]
    assert shown("a,b:2", "-n", 6) == ["a has PEs 0, 1", "b has PEs 2, 3, 4, 5"]
    assert shown("a,b", "-N", 2) == ["a has PEs 0, 1", "b has PEs 2, 3"]
    assert shown("a:4,b:4,c", "-n", 5) == ["a has PEs 0, 1, 2, 3", "b has PE 4"]
    assert shown("a,b,c", "-ppn", 1, "-n", 2) == ["a has PE 0", "b has PE 1"]
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("a slots=2\nb:1\n")
        file.flush()
        err = run("--hostfile", file.name, "-v", "program", *DONE).expect(0).err
        assert "a has PEs 0, 1\n" in err and "b has PE 2\n" in err, err
    run("--hosts", "a,b", "-n", 5, "-N", 2, "true").expect(2, "5 PEs at 2 per host need more than 2 hosts")
    run("--hosts", "a,b", "-n", 5, "--nooversubscribe", "true").expect(2, "5 PEs are more than the 2 slots")
    run("--hosts", "a:3,b", "--nooversubscribe", "program", *DONE).expect(71, "host a: its 3 PEs are more than its 2 processors")


@case("names that ssh or a shell would take for something else are refused")
def names():
    for name in ("-oProxyCommand=x", "a;b", "$(a)", "a b", "x" * 64, "a'", "b:0", "b:x"):
        run("--hosts", f"a,{name}", "true").expect(2, "--hosts: ")
    run("--hosts", "localhost:2", "printf", "a").expect(0, out="aa")
    run("--hosts", "localhost,b", "-n", 1, "printf", "a").expect(0, out="a")


@case("a host that cannot be started is one line with the reason, and nothing runs elsewhere")
def refused():
    hosts("b@say=no route", "b@exit=255", *READY, "out=x~", "done").expect(71, "oshrun: b: no route\noshrun: cannot start on host b: '", out="")
    hosts("b@exit=127", *READY, "done").expect(71, "bin/oshrun, or this host has no")
    hosts("b@exit=3", *READY, "done").expect(71, "has ended with status 3")
    hosts("b@die", *READY, "done").expect(71, "has ended with status 137")
    hosts("connect", "b@hello=0.0.9", "a@hello", "go", "done").expect(71, "host b: it has Weft 0.0.9, and this is Weft ")
    hosts("connect", "b@exit=0", "hello", "go", "done").expect(71, "cannot start on host b: ")
    for ssh, line in (("/no/such/ssh", "cannot run '/no/such/ssh': No such file or directory; install ssh, or set WEFT_SSH to a"),
                      ("false", "'false b "), ("true", "has ended with status 0")):
        result = Result(start("--hosts", "b", "true", below=["env", f"WEFT_SSH={ssh}"]))
        result.expect(71, line)


@case("an ssh that hangs is named after 10 s, with the host and what to do, while oshrun waits on")
def hanging():
    with tempfile.TemporaryDirectory(prefix="weft-ssh-") as folder:
        ssh = pathlib.Path(folder) / "ssh"
        ssh.write_text("#!/bin/sh\nexec sleep 60\n")
        ssh.chmod(0o755)
        begin = time.monotonic()
        job = start("--hosts", "b", "true", below=["env", "-u", "WEFT_START_TIMEOUT", f"WEFT_SSH={ssh}"])
        line = job.stderr.readline()
        seconds = time.monotonic() - begin
        assert line.startswith(f"oshrun: ssh has not reached b yet: try `{ssh} b true`"), line
        assert 10 <= seconds < 15, f"after {seconds:.1f} s"
        job.terminate()
        Result(job).expect(143)


@case("hosts that never call back are named when the time is up")
def late():
    def waits_for(names, *late):
        asleep = [word for name in late for word in (f"{name}@started", f"{name}@sleep=60000")]
        return Result(start("--hosts", names, "program", *asleep, *DONE, below=["env", "WEFT_START_TIMEOUT=2"]))
    waits_for("a,b", "b").expect(71, "host b: it has not called back within 2 s (WEFT_START_TIMEOUT); it must", seconds_max=5)
    result = waits_for("a,b,c,d,e,f,g", *"bcdefg")
    result.expect(71, "host b: it has not called back within 2 s (WEFT_START_TIMEOUT); also late: c, d, e, f and 1 more; it must")


@case("lines of PEs stay whole, with PE and host in front where asked")
def lines():
    words = [*READY, "out=on", "out=e~tw", "out=o", "err=bad~", "done"]
    result = hosts(*words, options=["--tag-output"]).expect(0)
    assert sorted(result.out.splitlines()) == ["[0] one", "[0] two", "[1] one", "[1] two"], result.out
    assert sorted(result.err.splitlines()) == ["[0] bad", "[1] bad"], result.err
    result = hosts(*words, options=["--tag-host"]).expect(0)
    assert sorted(result.out.splitlines()) == ["[0 a] one", "[0 a] two", "[1 b] one", "[1 b] two"], result.out
    hosts(*READY, "a@out=no end", "done").expect(0, out="no end")


@case("much output comes whole, and a reader who does not read makes no host a dead one")
def much():
    result = hosts(*READY, "flood=4000000", "done").expect(0, seconds_max=20)
    assert result.out == ("x" * 63 + "\n") * (2 * 62 * 1024), len(result.out)
    job = start("--hosts", "a,b", "program", *READY, "flood=4000000", "done")
    time.sleep(2)
    Result(job).expect(0, seconds_max=20)


@case("a job that is over can be left while nobody reads what it has written")
def unread():
    job = start("--hosts", "a,b", "program", *READY, "flood=600000", "done")
    time.sleep(1)
    job.send_signal(signal.SIGTERM)
    assert job.wait(patience(3)) == 0
    Result(job)


@case("a reader who goes is told to the hosts")
def reader_gone():
    pipe = subprocess.Popen(f"{OSHRUN} --hosts a,b program {' '.join(READY)} flood=400000000 done | head -n 1", shell=True,
                            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
    result = Result(pipe)
    assert result.out == "x" * 63 + "\n" and result.seconds < patience(3), (result.out[:80], result.err, result.seconds)


@case("a prompt without an end is seen")
def prompt():
    job = start("--hosts", "a,b", "program", *READY, "a@out=name? ", "a@signal", "done")
    assert job.stdout.read(6) == "name? "
    job.send_signal(signal.SIGUSR1)
    Result(job).expect(0)


@case("standard input goes to PE 0 whole, with its end")
def standard_input():
    for bytes_ in (0, 5, 1000000):
        hosts(*READY, "a@input", "done", text="x" * bytes_).expect(0, out=f"input {bytes_}\n")


@case("signals reach all hosts; before all have answered they end the start")
def signals():
    job = start("--hosts", "a,b", "program", *READY, "out=ready~", "signal", "done")
    assert job.stdout.readline() == job.stdout.readline() == "ready\n"
    job.send_signal(signal.SIGUSR2)
    result = Result(job).expect(0)
    assert result.out == "signal 12 0\n" * 2, result.out
    for more in (["b@sleep=60000"], [*READY, "out=ready~", "caused"]):
        job = start("--hosts", "a,b", "program", *more, *DONE)
        time.sleep(0.3)
        job.send_signal(signal.SIGTERM)
        Result(job).expect(128 + signal.SIGTERM, seconds_max=4)


@case("a round of an exchange has what the PEs of all hosts gave, in their order")
def exchange():
    result = hosts(*READY, "give=p", "shared", "give=longer", "shared", "done", names="a:2,b", options=["--bynode"])
    result.expect(0, out=None)
    assert sorted(result.out.splitlines()) == ["longer0longer1longer2"] * 2 + ["p0p1p2"] * 2, result.out


@case("the first cause is taken: it is told to all, its line is written, and its host has the status")
def cause():
    result = hosts(*READY, "b@sleep=100", "b@cause=3,1,9", "b@line=PE 1 says why", "a@caused", "a@line=PE 0 is no culprit", "b@done=9", "done",
                   names="a,b").expect(9, "PE 1 says why\n", out="cause 3 of PE 1: 9\n")
    assert "culprit" not in result.err, result.err
    hosts(*READY, "b@cause=1,1,9", "b@die", "caused", "done").expect(70, "PE 1 (pid 4711 on b) was killed by signal 9")


@case("an exit status that is not 0 is the job's, with its PE")
def status():
    hosts(*READY, "b@done=7", "done").expect(7, "oshrun: PE 1 (pid 4701 on b) exited with status 7\n")
    hosts(*READY, "done=3").expect(3, "; 1 more did not exit with 0\n")


@case("a host whose connection ends, that is silent or says what makes no sense ends the job, with its PEs")
def lost():
    left = ["a@caused", "a@done"]
    hosts(*READY, "b@die", *left, names="a,b:2").expect(70, "host b (PEs 1, 2)", out="cause 9 of PE -1: 1\n")
    hosts(*READY, "b@exit=0", *left).expect(70, "its connection has ended")
    hosts(*READY, "b@sleep=20000", *left).expect(70, "it has sent nothing for 1 s", seconds_max=6)
    for frame in ("77,0", "1,8", "3,4", "5,19", "6,4,0,1", "6,4,1,3", "6,70000,1,1", "8,0,0,5", "10,3", "12,3"):
        hosts(*READY, f"b@junk={frame}", "b@wait", *left).expect(70, "it has sent an invalid frame", seconds_max=4)
    for wrong in ("0,1,1", "99,1,1", "1,7,1", "1,-2,1", "1,0,9", "9,-1,0", "10,-1,0", "11,1,1", "11,1,7", "11,0,1"):
        hosts(*READY, f"b@cause={wrong}", "b@wait", *left).expect(70, "it has sent an invalid frame", seconds_max=4)


@case("a host that another cannot reach ends the job")
def cut():
    said = "PE 1 (pid 4711 on b) cannot reach host a (PE 0), although it is alive; ending the job\n"
    result = hosts(*READY, "b@cause=11,1,0", "caused", "done").expect(70, "oshrun: " + said)
    assert result.out == "cause 11 of PE 1: 0\n" * 2, result.out


@case("a PE of another host that has left those who wait for it is named by the front")
def left():
    hosts(*READY, "b@cause=8,0,3", "b@line=oshrun: PE 0 (pid 1 on a) is bad", "caused", "done").expect(
        3, err="oshrun: PE 0 (pid 4711 on a) exited with status 3 without shmem_finalize; ending the job\n", out="cause 8 of PE 0: 3\n" * 2)


@case("by which signal a PE died is told when it is known")
def died():
    hosts(*READY, "b@cause=1,1,0", "a@caused", "b@cause=1,1,9", "a@caused", "b@done=137", "done").expect(
        137, out="cause 1 of PE 1: 0\ncause 1 of PE 1: 9\n")


@case("a line of a host has no control characters, and what it says of another host is its word alone")
def claims():
    result = hosts(*READY, "b@remark=oshrun: PE 1 (pid 2 on b) is fine", "b@remark=\x1b[2Joshrun: x~oshrun: y", "b@remark=oshrun: PE 0 (pid 1 on a) died",
                   "b@remark=oshrun: host a, has left", "done").expect(0)
    assert result.err == ("oshrun: PE 1 (pid 2 on b) is fine\noshrun: b: ?[2Joshrun: x?oshrun: y\noshrun: b: oshrun: PE 0 (pid 1 on a) died\n"
                          "oshrun: b: oshrun: host a, has left\n"), result.err


@case("whatever a host says, the job ends with a status that oshrun gives, in its time")
def raving():
    first = int(os.environ.get("WEFT_TEST_SEED", 1))
    for seed in range(first, first + (2000 if os.environ.get("WEFT_TEST_LONG") else 20)):
        begin = ["connect", "hello", "a@go"] if seed % 2 else READY
        result = hosts(*begin, f"b@rave={seed}", "a@caused", "a@done")
        assert 0 <= result.status < 256 and result.status not in (97, 98, 99), (seed, result.status, result.err)


@case("a host that is done while others wait for its PEs in an exchange is the cause")
def done_too_early():
    hosts(*READY, "b@done", "a@give=p", "a@caused", "a@done").expect(70, "oshrun: PE 1 on b ended well without", out="cause 2 of PE 1: 0\n")


@case("a front that was stopped for longer than a host may be silent goes on")
def stopped():
    job = start("--hosts", "a,b", "program", *READY, "out=ready~", "signal", "done")
    assert job.stdout.readline() == job.stdout.readline() == "ready\n"
    job.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    job.send_signal(signal.SIGCONT)
    job.send_signal(signal.SIGUSR1)
    Result(job).expect(0)


@case("--timeout ends the job, also in its start")
def time_is_up():
    hosts(*READY, "caused", "done", options=["--timeout", 1]).expect(124, "the job has had its 1 s", seconds_max=4)
    hosts("b@sleep=60000", *DONE, options=["--timeout", 1]).expect(124, "the job has had its 1 s", seconds_max=5)


@case("a front that is killed takes everything with it")
def killed():
    job = start("--hosts", "a,b", "program", *READY, "out=ready~", "wait")
    assert job.stdout.readline() == "ready\n"
    job.kill()
    Result(job).expect(-9)


main()
