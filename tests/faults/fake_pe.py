# SPDX-License-Identifier: BSD-3-Clause
"""Description: a PE that sends the launcher malformed, random messages: fake_pe.py SEED. For tests/faults/fuzz.t. Half
of them differ little from the messages of a real PE."""
import contextlib
import os
import random
import socket
import struct
import sys
import time

MESSAGES = 40
HEADER = struct.Struct("<IIIIIi")  # kind, bytes, nfds, first, count, status (src/boot/wire.h)
WORDS = [0, 1, 2, 3, 5, 7, 8, 9, 253, 254, 4095, 4096, 4097, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]


def near_miss(lots):
    """Returns a header that is valid except for one field, and the payload that belongs to it."""
    payload, nfds = lots.randbytes(lots.choice([0, 1, 4, 4, 4, 4096])), lots.choice([0, 0, 0, 1, 8])
    fields = [lots.choice([1, 2, 2, 2]), len(payload), nfds, 0, 0, 0]
    if lots.random() < 0.7:
        fields[lots.randrange(5)] = lots.choice(WORDS)
    return HEADER.pack(*fields) + payload, nfds


def anything(lots):
    return lots.randbytes(lots.choice([0, 1, 23, 24, 25, 100, 4120, 4121, 20000])), lots.choice([0, 1, 9, 20, 250])


def main():
    lots = random.Random(int(sys.argv[1]))
    hub = socket.socket(fileno=int(os.environ["WEFT_HUB_FD"]))
    hub.settimeout(0.2)
    for _ in range(lots.randrange(1, MESSAGES)):
        message, nfds = lots.choice([near_miss, anything])(lots)
        with contextlib.suppress(OSError):  # the launcher has closed the connection
            socket.send_fds(hub, [message], [0] * nfds)
        if lots.random() < 0.1:
            with contextlib.suppress(OSError):
                hub.recv(100)
        if lots.random() < 0.1:
            time.sleep(0.01)
    if lots.random() < 0.3:
        hub.close()
    sys.exit(lots.choice([0, 0, 3]))


main()
