#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Strangers attack the control plane of a job on several hosts: during its start, from a host outside the job, with
wrong keys, stolen keys, recordings, garbage and thousands of connections, or as a man in the middle. They are refused
with a line, and do not harm the job."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import rig

rig.enter(3)
sys.path.insert(0, str(rig.HERE.parent / "launch"))
from harness import BUILD, PE, Result, Skip, case, main, start, wait_until  # noqa: E402

KNOCK = str(BUILD / "tests/boot/knock")
HELD_SSH = f"{sys.executable} {rig.HERE / 'held_ssh.py'}"
FRONT = rig.address_of(rig.LOGIN)
STRANGERS = 10000 if os.environ.get("WEFT_TEST_LONG") else 1000
HELLO = [PE, "join", "exchange", "leave"]


class Job:
    """A job on h0 and h1 whose start text is known, and whose second host may be held back."""

    def __init__(self, folder, *command, held="", port=None):
        self.folder = pathlib.Path(folder)
        settings = {"WEFT_SSH": HELD_SSH, "HELD_FOLDER": folder, "HELD_HOST": held}
        settings |= {"HELD_PORT": str(port)} if port else {}
        below = ["env", *(f"{name}={value}" for name, value in settings.items())]
        self.process = start("--hosts", "h0,h1", "-n", 2, *command, below=below)
        wait_until(lambda: (self.folder / "h0").exists() and (self.folder / "h1").exists(), 5, "both hosts are started")
        self.port = int(self.told("h0", "port"))

    def told(self, host, name):
        return re.search(rf"(?m)^{name} \d+\n(.*)$", (self.folder / host).read_text()).group(1)

    def go(self):
        (self.folder / "go").touch()

    def result(self, text=None):
        return Result(self.process, text, seconds_max=10)


@contextlib.contextmanager
def job(*command, **options):
    with tempfile.TemporaryDirectory(prefix="weft-attacks-") as folder:
        it = Job(folder, *command, **options)
        try:
            yield it
        finally:
            it.go()
            with contextlib.suppress(subprocess.TimeoutExpired):
                it.process.wait(10)
            it.process.kill()


def on_stranger(*command):
    result = subprocess.run(["on", "h2", *map(str, command)], text=True, capture_output=True, timeout=60)
    assert result.returncode == 0, result
    return result.stdout.strip()


def knock(port, identity, key):
    return on_stranger(KNOCK, FRONT, port, identity, key)


def say(port, data, seconds=3):
    """Returns the listener's answer until it closes; None if it does not close."""
    with socket.create_connection((FRONT, port), seconds) as stranger:
        stranger.settimeout(seconds)
        answer = b""
        try:
            stranger.sendall(data)
            while more := stranger.recv(4096):
                answer += more
        except ConnectionResetError:
            pass
        except TimeoutError:
            return None
        return answer


def refusals(err):
    return [line for line in err.splitlines() if "was refused" in line or "were refused" in line]


@case("a wrong key, another's, an unknown name, and a key that has been used: refused, and the job goes on")
def keys():
    with job(*HELLO, held="h1") as it:
        mine, other = it.told("h0", "key"), it.told("h1", "key")
        assert knock(it.port, "1", mine).startswith("refused: "), "the key of another host"
        assert knock(it.port, "1", "00" * 32).startswith("refused: "), "a wrong key"
        assert knock(it.port, "7", other).startswith("refused: "), "an unknown name"
        assert knock(it.port, "0", other).startswith("refused: "), "another host's name"
        said = knock(it.port, "0", mine)
        assert said.startswith("in, and out: "), f"a second time: {said}"
        it.go()
        result = it.result().expect(0, seconds_max=5)
        lines = refusals(result.err)
        assert any("it does not have the key of \"1\"" in line for line in lines), result.err
        assert any("\"0\" is here already" in line for line in lines), result.err
        assert len(lines) == 3 and lines[0].startswith("weft: a connection from 10.77.0.3:"), result.err


@case("rubbish, another TLS and half of a message are refused, and the port is closed when all hosts are in")
def rubbish():
    with job("sh", "-c", "echo in; read word; echo $word", held="h1") as it:
        assert say(it.port, b"GET / HTTP/1.1\r\n\r\n") is not None, "HTTP"
        assert say(it.port, bytes(range(256)) * 20) is not None, "bytes"
        for version in ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode, context.maximum_version = False, ssl.CERT_NONE, version
            try:
                with socket.create_connection((FRONT, it.port), 3) as stranger, context.wrap_socket(stranger):
                    raise AssertionError(f"{version} is spoken without a key")
            except OSError:
                pass
        half = socket.create_connection((FRONT, it.port), 3)
        half.sendall(b"\x16\x03\x01\x02\x00")
        it.go()
        assert it.process.stdout.readline() == "in\n"
        wait_until(lambda: half.recv(9) == b"", 1, "half of a message is dropped")
        try:
            socket.create_connection((FRONT, it.port), 3)
            raise AssertionError("something listens at the port of a job that runs")
        except ConnectionRefusedError:
            pass
        result = it.result("word\n").expect(0, seconds_max=5)
        assert "it does not speak as a process of this job" in result.err, result.err
        assert len(refusals(result.err)) <= 4, result.err


@case("who answers a host with a certificate instead of the key is refused")
def impostor():
    if not shutil.which("openssl"):
        raise Skip("there is no openssl(1) here")
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = f"{folder}/key", f"{folder}/certificate"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "1", "-subj", f"/CN={FRONT}", "-keyout", key, "-out", certificate], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
    listening = socket.create_server(("", 0))

    def answer():
        with contextlib.suppress(OSError), context.wrap_socket(listening.accept()[0], server_side=True) as one:
            one.recv(1)
    threading.Thread(target=answer, daemon=True).start()
    said = knock(listening.getsockname()[1], "0", "00" * 32)
    assert said == "refused: it does not answer as a process of this job (certificate verify failed)", said


@case("a host whose connection is closed in its handshake, as the listener does to make room, comes again")
def closed():
    middle = Middle(closes=9)
    with job(*HELLO, port=listening_port(middle)) as it:
        middle.at(it)
        result = it.result().expect(0, seconds_max=5)
        assert result.err == "", result.err
    assert len(middle.up) == 2, len(middle.up)


CROWD = """
import resource, socket, sys, time
count, port, data = int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3])
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = []
for _ in range(count):
    one = socket.create_connection(("%s", port), 10)
    if data:
        one.sendall(data)
    held.append(one)
print("all", flush=True)
time.sleep(60)
""" % FRONT


@contextlib.contextmanager
def crowd(port, data=b""):
    """Opens connections that stay open, and sends these bytes on each."""
    process = subprocess.Popen(["on", "h2", sys.executable, "-c", CROWD, str(STRANGERS), str(port), data.hex()],
                               stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"all\n"
        yield
    finally:
        process.terminate()
        process.wait()


class Middle:
    """A man in the middle of the hosts and the front: it closes some connections, forwards the others, records them,
    and may change one byte of the first."""

    def __init__(self, flip=None, closes=0):
        self.listening, self.flip, self.closes, self.port = socket.create_server(("", 0)), flip, closes, None
        self.up, self.threads = [], []  # the bytes of each connection to the front
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                one, _ = self.listening.accept()
                if self.closes > 0:
                    self.closes -= 1
                    one.close()
                    continue
                wait_until(lambda: self.port, 5, "the port is known")
                try:
                    other = socket.create_connection(("127.0.0.1", self.port), 3)
                except OSError:
                    one.close()
                    continue
                self.up.append(b"")
                threading.Thread(target=self.pass_on, args=(one, other, len(self.up) - 1), daemon=True).start()
                threading.Thread(target=self.pass_on, args=(other, one, None), daemon=True).start()

    def pass_on(self, source, to, number):
        count = 0
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                if number is not None:
                    if self.flip is not None and number == 0 and count <= self.flip < count + len(data):
                        changed = bytearray(data)
                        changed[self.flip - count] ^= 1
                        data = bytes(changed)
                    count += len(data)
                    self.up[number] += data
                to.sendall(data)
        with contextlib.suppress(OSError):
            to.shutdown(socket.SHUT_WR)

    def at(self, it):
        self.port = it.port


def listening_port(middle):
    return middle.listening.getsockname()[1]


@case("who stands in the way and listens learns nothing, and what it has heard is refused when it says it again")
def middle_listens():
    middle = Middle()
    with job("sh", "-c", "echo a secret word", port=listening_port(middle)) as it:
        middle.at(it)
        it.result().expect(0, out="a secret word\n" * 2, seconds_max=5)
    assert len(middle.up) == 2, len(middle.up)
    heard = b"".join(middle.up)
    assert b"secret" not in heard and len(heard) > 800, len(heard)
    # Replays another job, and the beginning of this one.
    middle = Middle()
    with job(*HELLO, held="h1", port=listening_port(middle)) as it:
        middle.at(it)
        wait_until(lambda: middle.up and len(middle.up[0]) > 500, 5, "h0 is in")
        assert say(it.port, middle.up[0]) is not None, "this job's words"
        assert say(it.port, heard) is not None, "another job's words"
        it.go()
        result = it.result().expect(0, seconds_max=5)
        assert "it repeats what \"0\" has sent" in result.err, result.err


@case("a host that is told nothing back ends when the launcher does")
def deaf():
    with socket.create_server(("", 0)) as nobody, job("sleep", "9", port=nobody.getsockname()[1]) as it:
        time.sleep(0.3)
        it.process.send_signal(signal.SIGKILL)
        it.result().expect(-signal.SIGKILL)


@case("who stands in the way and changes a byte is noticed: the job ends with a line, and nothing is left")
def middle_changes():
    for flip in 100, 300, 500:
        middle = Middle(flip)
        with job("sleep", "9", port=listening_port(middle)) as it:
            middle.at(it)
            result = it.result()
            assert result.status not in (0, None), (flip, result.err)
            assert result.err.count("\n") <= 6 and re.search(r"oshrun: .*h[01]", result.err), (flip, result.err)
            result.expect(result.status, seconds_max=5)


@case(f"{STRANGERS} connections that stay, silent, with a byte or with what a host has said, delay no start")
def crowds():
    middle = Middle()
    with job(*HELLO, port=listening_port(middle)) as it:
        middle.at(it)
        it.result().expect(0, seconds_max=5)
    for data in b"", b"\x16", middle.up[0][:260]:
        with job(*HELLO, held="h1") as it, crowd(it.port, data):
            begin = time.monotonic()
            it.go()
            result = it.result().expect(0, seconds_max=3)
            print(f"# with {STRANGERS} strangers of {len(data)} bytes the second host is in and the job over after "
                  f"{time.monotonic() - begin:.2f} s; lines:", *refusals(result.err), sep="\n#   ", flush=True)
            assert len(refusals(result.err)) <= 6, result.err


FLOOD = """
import os, socket, sys
port, data, end = int(sys.argv[1]), bytes.fromhex(sys.argv[2]), None
print("ready", flush=True)
while True:
    try:
        with socket.create_connection(("%s", port), 10) as one:
            one.sendall(data)
    except OSError:
        pass
""" % FRONT


@case("strangers who come and go as fast as they can, while hosts come in, delay no start")
def floods():
    with job(*HELLO, held="h1") as it:
        process = subprocess.Popen(["on", "h2", sys.executable, "-c", FLOOD, str(it.port), b"rubbish".hex()],
                                   stdout=subprocess.PIPE)
        try:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.5)
            it.go()
            result = it.result().expect(0, seconds_max=3)
        finally:
            process.terminate()
            process.wait()
        lines = refusals(result.err)
        assert 1 <= len(lines) <= 5, result.err
        assert re.search(r"\d{2,} more connections were refused|so did \d+ more", result.err), result.err


main()
