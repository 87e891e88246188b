# SPDX-License-Identifier: BSD-3-Clause
"""Answers fakessh on a host of the rig. It is the host's first process, so orphans become its children.

A client sends the length and the text of a command line, then the command's standard input, and shuts down its half of
the connection at the end of the input. Frames are sent back: a byte for the kind (1 output, 2 errors, 0 the exit
status), and the length of the data that follows."""
import os
import pwd
import signal
import socket
import struct
import subprocess
import threading

FRAME = struct.Struct("<BI")
PORT = 22


def receive(connection, bytes):
    data = b""
    while len(data) < bytes:
        more = connection.recv(bytes - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def pass_input(connection, to):
    """Forwards the input until the client has no more, or the command has closed it."""
    try:
        while data := connection.recv(65536):
            to.write(data)
    except OSError:
        pass
    finally:
        try:
            to.close()
        except OSError:
            pass


def pass_output(connection, sending, kind, source):
    try:
        while data := os.read(source.fileno(), 65536):
            with sending:
                connection.sendall(FRAME.pack(kind, len(data)) + data)
    except OSError:
        source.close()  # the client has gone: the command notices when it writes


def home_of(uid):
    try:
        account = pwd.getpwuid(uid)
        return account.pw_name, account.pw_dir if os.access(account.pw_dir, os.X_OK) else "/"
    except KeyError:
        return str(uid), "/"


def session(connection, peer):
    """Runs one command as sshd does: in the home directory, with a nearly empty environment. But it gets no session,
    because the scheduler would make a group of it, and if two hosts share a processor no yield would let the other one
    run."""
    command = receive(connection, struct.unpack("<I", receive(connection, 4))[0]).decode()
    user, home = home_of(os.getuid())
    environment = {"HOME": home, "USER": user, "LOGNAME": user, "SHELL": "/bin/sh", "PATH": "/usr/local/bin:/usr/bin:/bin",
                   "SSH_CONNECTION": f"{peer[0]} {peer[1]} {connection.getsockname()[0]} {PORT}"}
    process = subprocess.Popen(["/bin/sh", "-c", command], cwd=home, env=environment, preexec_fn=os.setpgrp, bufsize=0,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    sending = threading.Lock()
    threading.Thread(target=pass_input, args=(connection, process.stdin), daemon=True).start()
    outputs = [threading.Thread(target=pass_output, args=(connection, sending, kind, source))
               for kind, source in ((1, process.stdout), (2, process.stderr))]
    for thread in outputs:
        thread.start()
    for thread in outputs:
        thread.join()
    code = process.wait()
    connection.sendall(FRAME.pack(0, 4) + struct.pack("<i", code if code >= 0 else 128 - code))


def serve(ready):
    """Reports on this descriptor that it listens; never returns."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children do not remain zombies
    listening = socket.create_server(("::", PORT), family=socket.AF_INET6, backlog=64, dualstack_ipv6=True)
    os.write(ready, b"+")
    os.close(ready)
    while True:
        connection, peer = listening.accept()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            listening.close()
            os.setpgrp()
            try:
                session(connection, peer)
            except (EOFError, OSError):
                pass
            os._exit(0)
        connection.close()
