#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A fakessh for tests/hosts/attacks.t, which reads the start text for a daemon, and holds the daemon back.

The start text for HOST is written to $HELD_FOLDER/HOST. If $HELD_PORT is set, the daemon is told that port of the same
addresses instead. The host named $HELD_HOST is started when $HELD_FOLDER/go exists."""
import os
import pathlib
import re
import subprocess
import sys
import threading
import time



def text_elsewhere(text, port):
    return re.sub(rb"(?m)^port \d+\n\d+\n", b"port %d\n%s\n" % (len(port), port.encode()), text, count=1)


def main(arguments):
    folder = pathlib.Path(os.environ["HELD_FOLDER"])
    host = next(word for word in arguments if not word.startswith("-"))
    head = sys.stdin.buffer.readline()
    text = sys.stdin.buffer.read(int(head.split()[2]))
    (folder / f"{host}.new").write_bytes(text)
    (folder / f"{host}.new").rename(folder / host)
    if port := os.environ.get("HELD_PORT"):
        text = text_elsewhere(text, port)
    while host == os.environ.get("HELD_HOST") and not (folder / "go").exists():
        time.sleep(0.01)
    ssh = subprocess.Popen(["fakessh", *arguments], stdin=subprocess.PIPE)
    ssh.stdin.write(b"%s %s %d\n" % (*head.split()[:2], len(text)) + text)
    ssh.stdin.flush()
    # Its input stays open, as the front's does.
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), ssh.stdin.close()), daemon=True).start()
    return ssh.wait()


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)
