#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Commands for the hosts of tests/hosts/rig.py, from its host "login" only.

    on HOST COMMAND...      runs COMMAND there, and forwards signals to it
    link HOST up|down       pulls the host's cable, or connects it again
    deaf HOST [OTHER]       HOST silently drops all packets from OTHER; without OTHER it receives all again
    refuse HOST OTHER       HOST refuses TCP packets from OTHER, so that connections end
    slow HOST [RATE]        limits the rate at which HOST sends, such as 100mbit; without RATE full speed
    freeze HOST, thaw HOST  stops and continues all of its processes
    crash HOST              its power fails: first the cable, then every process
    pin HOST CPUS           all of its processes run on these processors: 0, or 0,1
    procs HOST              the command lines of its processes, except the rig's own

The commands are links to this file; scripts import it."""
import os
import pathlib
import signal
import subprocess
import sys

import kernel
import rig


def pid_of(host):
    """Returns the pid of the host's first process."""
    try:
        return int(os.environ[f"RIG_{host}"])
    except KeyError:
        raise SystemExit(f"{os.path.basename(sys.argv[0])}: there is no host {host}") from None


def on(host, *command):
    """Returns the exit status of a command on a host, in the same working directory."""
    folder, pid = os.getcwd(), pid_of(host)
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, os.sched_getaffinity(pid))
        kernel.enter(pid)
        inner = os.fork()  # the first process in the host's pid namespace
        if inner == 0:
            kernel.die_with_parent()
            os.chdir(folder)
            try:
                os.execvp(command[0], command)
            except OSError as problem:
                sys.stderr.write(f"on: {command[0]}: {problem.strerror}\n")
                os._exit(127)
        child = inner
    else:
        inner = None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, frame: os.kill(child, number))
    status = kernel.status_of(os.waitpid(child, 0)[1])
    if inner is not None:
        os._exit(status)
    return status


def within(host, *command):
    """Runs a command of this machine in the host's network."""
    subprocess.run(["nsenter", "--target", str(pid_of(host)), "--net", *command], check=True)


def link(host, state):
    pid_of(host)
    subprocess.run(["ip", "link", "set", host, state], check=True)


def filter_input(host, rule):
    within(host, "nft", "add table inet rig; add chain inet rig input { type filter hook input priority 0; }; " + rule)


def deaf(host, other=None):
    filter_input(host, f"add rule inet rig input ip saddr {rig.address_of(other)} drop" if other else "flush chain inet rig input")


def refuse(host, other):
    filter_input(host, f"add rule inet rig input ip saddr {rig.address_of(other)} ip protocol tcp reject with tcp reset")


def slow(host, rate=None):
    within(host, "tc", "qdisc", "replace", "dev", "eth0", "root",
           *(["tbf", "rate", rate, "burst", "64k", "latency", "400ms"] if rate else ["pfifo_fast"]))


def processes(host):
    """Returns the pids, on this machine, of the host's processes, except its first and the sessions of its sshd."""
    space, found = os.readlink(f"/proc/{pid_of(host)}/ns/pid"), []
    mine = pathlib.Path(f"/proc/{pid_of(host)}/cmdline").read_bytes()
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and os.readlink(folder / "ns/pid") == space:
                line = (folder / "cmdline").read_bytes()
                if line and line != mine:
                    found.append((int(folder.name), line.replace(b"\0", b" ").decode().strip()))
        except OSError:
            pass  # it has just ended
    return found


def pin(host, processors):
    for pid in [pid_of(host), *(pid for pid, _ in processes(host))]:
        os.sched_setaffinity(pid, map(int, processors.split(",")))


def procs(host):
    for _, line in processes(host):
        print(line)


def signal_all(host, number):
    """kill(-1) reaches all processes of a namespace at once, except its first."""
    child = os.fork()
    if child == 0:
        kernel.enter(pid_of(host), kernel.NEWPID)
        inner = os.fork()
        if inner == 0:
            try:
                os.kill(-1, number)
            finally:
                os._exit(0)
        os.waitpid(inner, 0)
        os._exit(0)
    os.waitpid(child, 0)


def freeze(host):
    signal_all(host, signal.SIGSTOP)
    os.kill(pid_of(host), signal.SIGSTOP)


def thaw(host):
    os.kill(pid_of(host), signal.SIGCONT)
    signal_all(host, signal.SIGCONT)


def crash(host):
    link(host, "down")
    os.kill(pid_of(host), signal.SIGKILL)


VERBS = {verb.__name__: verb for verb in (on, link, deaf, refuse, slow, freeze, thaw, crash, pin, procs)}


def main():
    verb = VERBS.get(os.path.basename(sys.argv[0]))
    if not verb:
        sys.exit(__doc__)
    try:
        return verb(*sys.argv[1:])
    except TypeError:
        sys.exit(__doc__)
    except subprocess.CalledProcessError as problem:
        return problem.returncode


if __name__ == "__main__":
    sys.exit(main())
