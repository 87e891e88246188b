#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The socket at which PEs meet: junk, strangers, other users, other versions and duplicate PEs do not disturb the job,
or end it with one line. Also how a peer treats a socket that is not PE 0's."""
import os
import random
import re
import socket
import struct
import subprocess
import time
import uuid

import starters
from harness import BUILD, ROOT, case, main, wait_until
from starters import Job, listeners, spawn, torchrun_variables

PE = BUILD / "tests/boot/pe"
KINDS = re.findall(r"^    WEFT_WIRE_([A-Z]+)", (ROOT / "src/boot/wire.h").read_text().partition("enum weft_wire_kind")[2], re.M)
HELLO, WELCOME, REFUSAL = (1 + KINDS.index(kind) for kind in ("HELLO", "WELCOME", "REFUSAL"))
NOBODY = 65534
PYTHON = "/usr/bin/python3"  # executable by every user


class Hosted:
    """PE 0 of `npes`, which waits at its listening socket."""

    def __init__(self, npes, *verbs):
        self.variables = torchrun_variables(npes, 29700, uuid.uuid4().hex)
        self.verbs = [PE, "join", *(verbs or ["exchange", "leave"])]
        self.processes = [spawn(self.verbs, self.variables[0])]
        wait_until(lambda: listeners(self.processes[0]), 3, "a listening socket")
        self.name = listeners(self.processes[0]).pop()

    def come(self, *pes):
        self.processes += [spawn(self.verbs, self.variables[pe]) for pe in pes]
        return Job(self.processes)


def header(kind, **fields):
    return struct.pack("6I", kind, 0, 0, 0, 0, fields.get("status", 0))


def hello(version="0.1.0", key=bytes(32), pe=1, npes=2):
    return (header(HELLO) + struct.pack("<Q16s32sii", 0x6f6c6c6568746677, version.encode(), key, pe, npes) + bytes(128))


def knock(name):
    stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stranger.settimeout(3)
    stranger.connect("\0" + name)
    return stranger


def answer(stranger):
    """Returns kind and text, or None if the listening socket was closed."""
    try:
        message = stranger.recv(4096)
    except ConnectionResetError:
        return None
    return (struct.unpack("6I", message[:24])[0], message[24:].decode()) if message else None


@case("junk, silence and half-open connections: the job starts all the same")
def junk():
    random.seed(5)
    served = Hosted(3)
    silent = [knock(served.name) for _ in range(30)]
    for _ in range(100):
        stranger = knock(served.name)
        stranger.send(random.randbytes(random.choice((1, 8, 24, 100, 240, 5000))))
        assert answer(stranger) is None
    for text in (b"", header(HELLO), header(REFUSAL) + b"x" * 300, hello()[:40], hello()[:47], hello().replace(b"wfthello", b"olleh---")):
        stranger = knock(served.name)
        stranger.send(text)
        assert answer(stranger) is None, text
    served.come(1, 2).expect(0)
    del silent


@case("a wrong key gets an answer without a reason; no answer has a descriptor")
def wrong_key():
    served = Hosted(2)
    for _ in range(20):
        stranger = knock(served.name)
        stranger.send(hello(key=random.randbytes(32)))
        message, ancillary, _, _ = stranger.recvmsg(4096, 1024)
        assert struct.unpack("6I", message)[0] == REFUSAL and not ancillary, (message, ancillary)
    served.come(1).expect(0)


@case("another version is refused with a line on both sides, whatever its message looks like behind that")
def other_version():
    for text in (hello(version="9.9.9"), hello(version="9.9.9")[:48], hello(version="9.9.9") + bytes(1000), hello() + bytes(8)):
        served = Hosted(3)
        stranger = knock(served.name)
        stranger.send(text)
        kind, why = answer(stranger)
        assert kind == REFUSAL and "and PE 0 (pid " in why and "install the same version everywhere" in why, why
        job = Job(served.processes).expect(71, why)
        assert job.err[0].count("\n") == 1, job.err


@case("a second process that wants to be the same PE is refused; the job goes on")
def double():
    served = Hosted(3)
    served.come(1)
    time.sleep(0.3)
    second = Job([spawn(served.verbs, served.variables[1])]).wait()
    assert second.status == [71] and f"process {served.processes[1].pid} is PE 1 already" in second.err[0], second.err
    served.come(2).expect(0)


NO_OTHER = "" if os.geteuid() == 0 and os.path.exists(PYTHON) else \
    f" # SKIP only root can be somebody else, and {PYTHON} has to be there for that one"


@case("processes of another user are neither let in nor believed" + NO_OTHER)
def other_user():
    if NO_OTHER:
        return
    served = Hosted(2)
    attempt = ("import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.settimeout(3)\n"
               "s.connect('\\0' + sys.argv[1])\n"
               "try: s.send(bytes.fromhex(sys.argv[2])); print(len(s.recv(4096)))\n"
               "except (BrokenPipeError, ConnectionResetError): print(0)")
    run = subprocess.run([PYTHON, "-c", attempt, served.name, hello().hex()], text=True, capture_output=True, user=NOBODY)
    assert run.stdout == "0\n", run
    # Other listening sockets with the same beginning of their names, even many, before and after PE 0's.
    squat = ("import socket, sys, time\n"
             "for i in range(50):\n"
             "    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.bind('\\0' + sys.argv[1] + str(i)); s.listen(1)\n"
             "    globals()['s%d' % i] = s\n"
             "print('ready', flush=True); time.sleep(20)")
    squatter = subprocess.Popen([PYTHON, "-c", squat, served.name[:22]], stdout=subprocess.PIPE, text=True, user=NOBODY)
    try:
        assert squatter.stdout.readline() == "ready\n"
        served.come(1).expect(0)
    finally:
        squatter.kill()
        squatter.communicate()


@case("a peer at a socket that is not PE 0's: junk and refusals are one line, another job's socket is passed by")
def false_hosts():
    def peer_at(message, descriptors=()):
        served = Hosted(2)
        served.processes[0].kill()
        Job(served.processes).wait()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening.bind("\0" + served.name[:22] + "0123456789abcdef")
        listening.listen(5)
        listening.settimeout(5)
        peer = spawn(served.verbs, served.variables[1])
        connection, _ = listening.accept()
        said = connection.recv(4096)
        assert said.startswith(header(HELLO)), said
        if message is not None:
            socket.send_fds(connection, [message], descriptors)
        connection.close()
        listening.close()
        return served, peer

    for message, text in ((None, "PE 0 is gone before all PEs had arrived"), (header(REFUSAL) + b"because", "because"),
                          (header(3), "an unknown kind"), (b"abc", "PE 0 is gone"), (header(WELCOME), "0 descriptors")):
        job = Job([peer_at(message)[1]]).expect(71, text)
        assert job.err[0].count("\n") == 1, job.err
    with open("/proc/self/exe", "rb") as file, open("/dev/null", "rb") as device:
        Job([peer_at(header(WELCOME), [device.fileno()])[1]]).expect(71, "is not a control page")
        Job([peer_at(header(WELCOME), [file.fileno()])[1]]).expect(71)
    served, peer = peer_at(header(REFUSAL))  # of another job
    Job([peer, spawn(served.verbs, served.variables[0])]).expect(0)


@case("two jobs whose variables are the same one after the other")
def one_after_the_other():
    variables = torchrun_variables(3, 29701)
    for _ in range(5):
        Job([spawn([PE, "join", "exchange", "leave"], one) for one in variables]).expect(0)


main()
