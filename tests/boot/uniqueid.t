#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Attacks on a job by unique id: invalid ids, or another job's; PE numbers that are too large, taken, or of a job of
another size; strangers with the right id; PEs that die while they join, or never join. A wrong process gets an error
with the reason; a correct process joins, or gets an error with the reason within seconds."""
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time

import starters
from harness import BUILD, case, main, settled_leftovers, wait_until

PROGRAM = str(BUILD / "tests/boot/uniqueid")
NOBODY = 65534
MAGIC_BYTES, KEY_BYTES, HOST_BYTES = 8, 32, 8
HELLO, VERSION = 6, b"0.1.0"  # of struct weft_hello and its header (src/boot/meet.h)


def make():
    return subprocess.run([PROGRAM, "make"], env=starters.CLEAN, stdout=subprocess.PIPE, check=True).stdout


def begin(uniqueid, pe, npes, *more, program=PROGRAM, **options):
    """Starts a PE and writes the id to its stdin."""
    process = subprocess.Popen([program, str(pe), str(npes), *more], env=starters.CLEAN, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    process.stdin.write(uniqueid)
    process.stdin.close()
    process.stdin = None
    return process


def end(process, status, text="", seconds_max=10):
    _, err = process.communicate(timeout=seconds_max)
    err = err.decode()
    assert process.returncode == status and re.search(text, err), (process.args, process.returncode, err)


def served(uniqueid, npes):
    """Starts PE 0, which waits for the others on return."""
    host = begin(uniqueid, 0, npes)
    wait_until(lambda: starters.listeners(host), 5, "a listening socket")
    time.sleep(0.05)
    return host


@case("ids that are none, or did not arrive whole, or of another host, are refused at once")
def no_ids():
    right = make()
    host = MAGIC_BYTES + KEY_BYTES
    lots = random.Random(3)
    for wrong in (bytes(len(right)), lots.randbytes(len(right)), b"\xff" * len(right), right[1:] + b"x"):
        end(begin(wrong, 0, 2), 9, "uniqueid was not made by shmemx_get_uniqueid, or not all of its")
    elsewhere = right[:host] + lots.randbytes(HOST_BYTES) + right[host + HOST_BYTES:]
    end(begin(elsewhere, 0, 2), 9, "PE 0 must be the process that has made the unique id")
    unreachable = elsewhere[:host + HOST_BYTES] + bytes(len(right) - host - HOST_BYTES)
    end(begin(unreachable, 1, 2), 9, "has no address there to which others could connect")
    for pe, npes in ((2, 2), (-1, 2), (0, 0), (0, -1), (1, 100000), (2**31 - 1, 2**31 - 1)):
        end(begin(right, pe, npes), 9, "is not valid: a job has 1 to 4096 PEs, numbered from 0")


@case("a size that is not the job's ends it for all, with one reason; a place that is taken does not")
def wrong_places():
    uniqueid = make()
    host = served(uniqueid, 3)
    end(begin(uniqueid, 1, 2), 9, "wants to be PE 1 of 2 in a job of 3 PEs")
    end(host, 9, "wants to be PE 1 of 2 in a job of 3 PEs")
    uniqueid = make()
    host = served(uniqueid, 3)
    first = begin(uniqueid, 1, 3)
    time.sleep(0.3)
    end(begin(uniqueid, 1, 3), 9, "is PE 1 already")
    last = begin(uniqueid, 2, 3)
    for process in host, first, last:
        end(process, 0)


def check_lost(uniqueid, lost):
    """Expects a process that finds no peers to wait on, while the job starts without it."""
    host = served(uniqueid, 2)
    stray = lost()
    time.sleep(0.5)
    peer = begin(uniqueid, 1, 2)
    end(peer, 0)
    end(host, 0)
    assert stray.poll() is None, stray.communicate()
    stray.kill()
    end(stray, -9)


@case("another job's id leads nowhere near this one")
def other_job():
    other = make()
    check_lost(make(), lambda: begin(other, 1, 2))


NO_OTHER = "" if os.geteuid() == 0 else " # SKIP only root can be somebody else"


@case("nor does the right one in another user's hands" + NO_OTHER)
def other_user():
    uniqueid = make()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = shutil.copy(PROGRAM, folder)
        if not NO_OTHER:
            check_lost(uniqueid, lambda: begin(uniqueid, 1, 2, program=program, user=NOBODY, group=NOBODY, extra_groups=[]))


def half_closed(host, uniqueid, pe, npes):
    """Connects as a PE and closes the receiving direction, as if the PE died between its message and PE 0's answer."""
    hello = struct.pack("<Q16s", 0x6f6c6c6568746677, VERSION)
    hello += uniqueid[MAGIC_BYTES:MAGIC_BYTES + KEY_BYTES] + struct.pack("<ii", pe, npes) + bytes(128)
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.connect("\0" + starters.listeners(host).pop())
    peer.send(struct.pack("6I", HELLO, 0, 0, 0, 0, 0) + hello)
    peer.shutdown(socket.SHUT_RD)
    return peer


@case("a PE that dies while it waits, or behind its joining, is named within seconds; one that never comes, too")
def deaths():
    uniqueid = make()
    host, second = served(uniqueid, 3), begin(uniqueid, 1, 3)
    time.sleep(0.3)
    second.kill()
    second.communicate()
    end(host, 9, rf"PE 1 \(pid {second.pid}\) has ended before all PEs had arrived")
    uniqueid = make()
    host, second = served(uniqueid, 3), begin(uniqueid, 1, 3)
    time.sleep(0.3)
    host.kill()
    host.communicate()
    end(second, 9, "PE 0 is gone before all PEs had arrived")
    uniqueid = make()
    host, dying = served(uniqueid, 3), begin(uniqueid, 1, 3, "die")
    third = begin(uniqueid, 2, 3)
    dying.communicate()
    for process in host, third:
        end(process, 70, rf"PE 1 \(pid {dying.pid}\) died")
    uniqueid = make()
    host = served(uniqueid, 3)
    dying = half_closed(host, uniqueid, 1, 3)
    third = begin(uniqueid, 2, 3)
    time.sleep(0.3)
    dying.close()
    for process in host, third:
        end(process, 70, rf"PE 1 \(pid {os.getpid()}\) died")
    uniqueid = make()
    host, second = served(uniqueid, 3), begin(uniqueid, 1, 3)
    time.sleep(5.5)
    host.kill()
    end(host, -9, "waiting for PE 2 of 3 to call shmem_init\n.*: PEs on other hosts cannot connect: "
                  "(PE 0 has to be the process that has made the unique id|PE 0's host has no address for them)")
    end(second, 9)
    assert not settled_leftovers()


main()
