#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random nonsense in the launcher's arguments, in the environment, in a PE's messages to the launcher and in the
launcher's messages to it: never a crash, never a hang, and a clear line for refused input. WEFT_TEST_SEED repeats a
run."""
import contextlib
import os
import pathlib
import random
import re
import socket
import struct
import subprocess
import sys
import time

from strike import LONG, PHASES, SECONDS_MAX, check_remains
from harness import ENVIRONMENT, OSHRUN, PE, ROOT, Result, case, main, start

SEED = int(os.environ.get("WEFT_TEST_SEED", time.time_ns() % 1000000 if LONG else 1))
TIMES = 1000 if LONG else 25
FAKE_PE = str(pathlib.Path(__file__).with_name("fake_pe.py"))


def lots_for(what):
    print(f"# {what}: WEFT_TEST_SEED={SEED}")
    return random.Random(f"{SEED} {what}")


def junk(lots):
    """Returns bytes for an argument or a variable: near numbers, formats, anything."""
    number = str(lots.choice([0, 1, 2, 4096, 4097, 2**31 - 1, 2**31, 2**63, 2**64, 10**30, -1]))
    return lots.choice([
        lambda: b"",
        lambda: number.encode(),
        lambda: number.encode() + lots.choice([b"k", b"g", b"t", b".5m", b"e9", b"x", b" ", b"kk", b"\n", b"%s%n"]),
        lambda: lots.choice([b"nan", b"inf", b"0x", b"0x1p70", b".", b"+", b"-", b"--", b"1e4000", b"%n%n%s%s"]),
        lambda: bytes(lots.randrange(1, 256) for _ in range(lots.choice([1, 5, 40, 3000]))),
        lambda: lots.choice([b"9", b" ", b"A", b"\xff", b","]) * lots.choice([20, 5000, 100000]),
    ])()


def check_refusal(status, err, statuses, where):
    assert status in statuses, f"{where}: status {status}: {err[-500:]}"
    assert status in (0, 1) or re.search(rb"^(weft|oshrun): .*\S", err, re.M), f"{where}: no line: {err[-500:]}"
    assert len(err) < 300000, f"{where}: {len(err)} bytes of complaints"


@case("arguments of the launcher")
def arguments():
    lots = lots_for("arguments")
    words = [b"-n", b"-np", b"--tag-output", b"--bind-to", b"none", b"core", b"--", b"--help", b"--version", b"-h", b"1",
             b"2", b"-n=2", b"--bind-to=core", b"true", b":", b"-n2", b"-x", b"A=1", b"-genv", b"-envlist", b"-wdir", b"/", b"-v",
             b"--mca", b"-H", b"localhost:2,localhost", b"--hostfile", b"/dev/null", b"--map-by", b"ppr:1:core", b"slot:PE=2",
             b"--rank-by", b"--cpu-set", b"0-3,8", b"--report-bindings", b"--timeout", b"--oversubscribe", b"--rankfile", b"-l"]
    for _ in range(TIMES):
        given = [lots.choice(words) if lots.random() < 0.8 else junk(lots) for _ in range(lots.randrange(8))] + [b"true"]
        if any(number in given for number in (b"4096", b"-n=4096")):
            continue  # valid, but so many PEs take long
        result = subprocess.run([os.fsencode(OSHRUN), *given], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        check_refusal(result.returncode, result.stderr, (0, 1, 2, 126, 127), given)


def variables():
    """Returns every name that the library or the launcher reads."""
    names = set()
    for source in (ROOT / "src").rglob("*.[ch]"):
        names |= set(re.findall(r'"((?:WEFT|SHMEM|SMA|PMI|PMIX)_[A-Z_]+)"', source.read_text()))
    assert {"SHMEM_SYMMETRIC_SIZE", "WEFT_HUB_FD"} <= names, names
    return sorted(names)


@case("the environment of a program without a launcher, and of a job")
def environment():
    lots, names = lots_for("environment"), variables()
    for _ in range(TIMES):
        drawn = {os.fsencode(lots.choice(names)): junk(lots) for _ in range(lots.choice([1, 1, 2, 4]))}
        settings = {**{os.fsencode(name): os.fsencode(value) for name, value in ENVIRONMENT.items()}, **drawn}
        below = [os.fsencode(OSHRUN), b"-n", b"2"] if lots.random() < 0.5 else []
        result = subprocess.run([*below, os.fsencode(PHASES)], env=settings, stdin=subprocess.DEVNULL,
                                capture_output=True, timeout=60)
        check_refusal(result.returncode, result.stderr, (0, 70, 71), drawn)


@case("messages of a PE to the launcher")
def messages():
    lots = lots_for("messages")
    for _ in range(TIMES // 2):
        seed, liar = lots.randrange(1 << 30), lots.randrange(3)
        script = f'if [ $WEFT_PE = {liar} ]; then exec {sys.executable} {FAKE_PE} {seed}; fi; exec {PE} join exchange:5 leave'
        result = Result(start("-n", 3, "sh", "-c", script), seconds_max=30)
        where = f"PE {liar} with fake_pe.py {seed}"
        assert 0 <= result.status < 128, f"{where}: status {result.status}: {result.err}"
        assert re.search(r"^(oshrun|weft): \S", result.err, re.M), f"{where}: no line: {result.err}"
        check_remains(result, where)


def constant(name, header):
    found = re.search(rf"#define {name} +(?:UINT64_C\()?(\w+?)u?\)?(?:\s|$)", (ROOT / header).read_text())
    return int(found[1], 0)


def control_page(npes, lots):
    """Returns a page as the launcher makes it (src/boot/control.h), in which some bytes may be wrong."""
    page = bytearray(128 * (npes + 1))
    struct.pack_into("<QIii", page, 0, constant("WEFT_CONTROL_MAGIC", "src/boot/control.h"),
                     constant("WEFT_CONTROL_LAYOUT", "src/boot/control.h"), npes, 2)
    for _ in range(lots.choice([0, 0, 1, 3])):
        page[lots.randrange(64)] = lots.randrange(256)  # only the head: the PEs' mutexes are not tested here
    memory = os.memfd_create("page", 0)
    os.write(memory, page)
    return memory


def share(lots, kind=3):
    """Returns contributions of two PEs, four bytes each, correct or nearly so."""
    fields, payload, nfds = [kind, 4, 0, 0, 2, 0], lots.randbytes(8), 0
    if lots.random() < 0.8:
        fields[lots.randrange(5)] = lots.choice([0, 1, 3, 8, 4096, 1 << 31, (1 << 32) - 1])
    if lots.random() < 0.3:
        payload, nfds = lots.randbytes(lots.choice([0, 7, 9, 30000])), lots.choice([0, 1, 250])
    return struct.pack("<IIIIIi", *fields) + payload, nfds


def play_launcher(lots):
    """Starts one PE of two as oshrun does, and answers it with nonsense. Returns its status and stderr."""
    hub, hub_pe = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    life, life_pe = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    page = control_page(2, lots)
    names = {"WEFT_PE": 0, "WEFT_NPES": 2, "WEFT_HUB_FD": hub_pe.fileno(), "WEFT_CONTROL_FD": page,
             "WEFT_LIFE_FD": life_pe.fileno()}
    pe = subprocess.Popen([PE, "join", "exchange:3", "leave"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env={**ENVIRONMENT, **{name: str(value) for name, value in names.items()}},
                          pass_fds=[hub_pe.fileno(), page, life_pe.fileno()])
    hub_pe.close()
    for _ in range(lots.randrange(5)):
        message, nfds = share(lots) if lots.random() < 0.8 else (lots.randbytes(lots.randrange(200)), 0)
        with contextlib.suppress(OSError):
            socket.send_fds(hub, [message], [0] * nfds)
    hub.shutdown(socket.SHUT_WR)  # the PE reads all of it, and then the end
    _, err = pe.communicate(timeout=60)
    for each in (hub, life, life_pe):
        each.close()
    os.close(page)
    return pe.returncode, err


@case("messages of a launcher to a PE, and its control page")
def answers():
    lots = lots_for("answers")
    for turn in range(TIMES):
        status, err = play_launcher(lots)
        assert status >= 0, f"turn {turn}: status {status}: {err}"
        assert status == 0 or re.search(rb"^weft: .*\S", err, re.M), f"turn {turn}: status {status}, no line: {err}"


main()
