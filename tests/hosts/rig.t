#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The rig of hosts: they share only files, are reached as by ssh, and lose cables and power."""
import os
import pathlib
import signal
import subprocess
import sys
import time

import rig
import verbs

rig.enter(2)
sys.path.insert(0, str(rig.HERE.parent / "launch"))
from harness import ENVIRONMENT, Skip, case, main, settled_leftovers, wait_until  # noqa: E402

ECHO = "import socket; s = socket.create_server(('', 7)); print(flush=True)\n" \
       "while True: c, _ = s.accept(); c.sendall(c.recv(9)); c.close()"


def run(*command, seconds_max=10, **options):
    return subprocess.run(command, text=True, capture_output=True, timeout=seconds_max, env=ENVIRONMENT, **options)


def out(*command):
    return run(*command).stdout.strip()


def listener(host):
    """Starts a listener on port 7 of a host."""
    process = subprocess.Popen(["on", host, sys.executable, "-c", ECHO], stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def answers(host, other, seconds=0.5):
    """Returns whether a process on a host gets an answer from the listener on the other within that time."""
    script = f"import socket; s = socket.create_connection(('{other}', 7), {seconds}); s.send(b'x'); assert s.recv(9)"
    return run("on", host, sys.executable, "-c", script).returncode == 0


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@case("hosts have names, networks, boot ids, processes and shared memory of their own")
def apart():
    for look in (["hostname"], ["cat", "/proc/sys/kernel/random/boot_id"], ["ip", "-brief", "-4", "address"],
                 ["readlink", "/proc/self/ns/ipc"], ["readlink", "/proc/self/ns/pid"]):
        seen = [out(*look), out("on", "h0", *look), out("on", "h1", *look)]
        assert len(set(seen)) == 3 and all(seen), seen
    script = "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('\\0rig'); open('/dev/shm/rig', 'w').close();" \
             "print(flush=True); time.sleep(60)"
    process = subprocess.Popen(["on", "h0", sys.executable, "-c", script], stdout=subprocess.PIPE)
    process.stdout.readline()
    for host, there in (("h0", True), ("h1", False)):
        assert ("@rig" in out("on", host, "cat", "/proc/net/unix")) == there, host
        assert ("rig" in out("on", host, "ls", "/dev/shm")) == there, host
        assert (script in out("procs", host)) == there, host
    process.terminate()
    assert process.wait() == 128 + signal.SIGTERM, process.returncode
    wait_until(lambda: not out("procs", "h0"), 2, "h0 is empty")


@case("a command runs in the folder of its caller, and has its streams and its status")
def on_host():
    result = run("on", "h1", "sh", "-c", 'cat; pwd; exit 7', input="in\n", cwd="/usr")
    assert (result.returncode, result.stdout) == (7, "in\n/usr\n"), result
    assert run("on", "h0", "sh", "-c", "kill -9 $$").returncode == 137
    assert run("on", "h7", "true").returncode == 1


@case("fakessh passes streams, status and the words of a shell, but no environment or folder")
def ssh():
    result = run("fakessh", "-o", "BatchMode=yes", "-x", "me@h1", "hostname;", "cat;", "echo", "$HOME", "$PATH", ">&2;",
                 "exit", "9", input="line\n" * 50000, cwd="/usr")
    assert (result.returncode, result.stdout) == (9, "h1\n" + "line\n" * 50000), result
    assert result.stderr.split()[1:] == ["/usr/local/bin:/usr/bin:/bin"], result.stderr
    words = out("fakessh", "h1", "env", "|", "cut", "-d=", "-f1").split()
    assert not set(words) - {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "PWD", "SSH_CONNECTION", "OLDPWD", "SHLVL", "_"}, words
    assert len(set(out("fakessh", "h1", "ps", "-o", "pgid=,pid=", "-p", "$$").split())) == 1
    assert run("on", "h0", "fakessh", "h1", "hostname").stdout == "h1\n"
    assert run("fakessh", "h1", "kill", "-9", "$$").returncode == 137
    assert run("fakessh", "nowhere", "true").returncode == 255


@case("a command over fakessh reads the end of its input when fakessh is killed")
def ssh_killed():
    process = subprocess.Popen(["fakessh", "h0", "cat", ">/dev/null"], stdin=subprocess.PIPE)
    wait_until(lambda: "cat" in out("procs", "h0"), 5, "cat runs")
    process.kill()
    process.wait()
    wait_until(lambda: not out("procs", "h0"), 5, "cat has ended")


@case("a cable is pulled and put back")
def cable():
    process = listener("h1")
    assert answers("h0", "h1", 5)
    verbs.link("h1", "down")
    assert not answers("h0", "h1")
    verbs.link("h1", "up")
    assert answers("h0", "h1", 10)
    process.terminate()
    process.wait()


@case("a deaf host hears nothing of one other, and of it alone")
def deafness():
    process = listener("h1")
    verbs.deaf("h1", "h0")
    assert not answers("h0", "h1")
    assert run("fakessh", "h1", "true").returncode == 0
    verbs.deaf("h1")
    assert answers("h0", "h1", 5)
    process.terminate()
    process.wait()


@case("a slow host sends at the rate that was asked for")
def slowness():
    def seconds():
        begin = time.monotonic()
        assert run("fakessh", "h0", "head", "-c", "1000000", "/dev/zero").returncode == 0
        return time.monotonic() - begin
    try:
        verbs.slow("h0", "8mbit")
    except subprocess.CalledProcessError:
        raise Skip("this kernel has no token bucket filter") from None
    assert seconds() > 0.7
    verbs.slow("h0")


@case("a frozen host does nothing until it is thawed")
def frozen():
    process = subprocess.Popen(["on", "h0", "sh", "-c", "while sleep 0.01; do echo; done"], stdout=subprocess.PIPE)
    process.stdout.readline()
    verbs.freeze("h0")
    # A child that ended before it could be stopped remains a zombie, because its parent is stopped.
    wait_until(lambda: {state_of(pid) for pid, _ in verbs.processes("h0")} - {"Z"} == {"T"}, 2, "all are stopped")
    verbs.thaw("h0")
    os.set_blocking(process.stdout.fileno(), False)
    while process.stdout.read(65536):
        pass
    os.set_blocking(process.stdout.fileno(), True)
    process.stdout.readline()
    process.terminate()
    process.wait()


@case("a crashed host says nothing more, and nothing of it is left")
def crashed():
    process = listener("h1")
    session = subprocess.Popen(["fakessh", "h1", "echo", "up;", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert session.stdout.readline() == b"up\n"
    verbs.crash("h1")
    assert process.wait(5) == 128 + signal.SIGKILL
    assert not answers("h0", "h1")
    assert session.poll() is None  # as with ssh, which does not notice the end
    session.kill()
    session.wait()


main()
