#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hosts on this machine: namespaces that programs take for separate machines.

    tests/hosts/rig.py [-n HOSTS] COMMAND...

COMMAND runs on a host "login" beside HOSTS (2, at most 64) others: h0, h1, ... It can use the commands of
tests/hosts/bin: on, link, deaf, slow, freeze, thaw, crash, and fakessh, which is WEFT_SSH unless that is set.

     login 10.77.0.254    h0 10.77.0.1    h1 10.77.0.2    ...
           |                  eth0             eth0
           +------- bridge ----+----------------+         its ports are called h0, h1, ...

A host has namespaces of its own for network, names, System V and POSIX objects, mounts and processes, its own /dev/shm,
and a boot id: hosts share only files, as two machines might. They divide the processors of this machine, because waits
spin on a host with idle processors. The rig is made as root, or as any user if user namespaces are allowed; otherwise
it prints the one line of a skipped test. Nothing outside these namespaces is changed, and they end with their
processes, also when this process is killed."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import uuid

import kernel
import sshd

HERE = pathlib.Path(__file__).resolve().parent
LOGIN = "login"
HOSTS_MAX = 64
# Hosts that ask for each other's MAC addresses: all answers are in one table of the kernel, of 1,024 entries.
STRANGERS_MAX = 24


def address_of(host):
    fixed = {LOGIN: "10.77.0.254", "localhost": "127.0.0.1"}
    return fixed.get(host) or f"10.77.0.{int(host[1:]) + 1}"


def hardware_of(host):
    return f"02:00:0a:4d:00:{int(host[1:]) + 1:02x}"


def names_of(count):
    return [f"h{number}" for number in range(count)]


class Refused(Exception):
    """The reason why there can be no hosts here."""


def begin():
    """Makes namespaces around everything, and a first process in them; returns in that process. The outer process ends
    with its status."""
    for tool in ("ip", "nft", "tc"):
        if not shutil.which(tool, path=os.environ["PATH"]):
            raise Refused(f"there is no {tool} here (packages iproute2, nftables)")
    uid, gid = os.getuid(), os.getgid()
    try:
        kernel.unshare(kernel.HOST if uid == 0 else kernel.HOST | kernel.NEWUSER)
        if uid != 0:
            kernel.map_root(uid, gid)
    except OSError as problem:
        raise Refused(f"this user may make no namespaces ({problem.strerror})") from None
    first = os.fork()
    if first != 0:
        os._exit(kernel.status_of(os.waitpid(first, 0)[1]))
    kernel.die_with_parent()
    # The first process of a namespace has no default actions, and ends the namespace when it ends.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: os._exit(128 + number))


def furnish(name, table):
    """Mounts file systems and sets the names of the host in whose namespaces this process is."""
    kernel.keep_mounts()
    kernel.mount("proc", "/proc")
    kernel.mount("tmpfs", "/dev/shm")
    no_dns = "nameserver 127.0.0.1\n"  # refuses every query at once
    for path, text in (("/etc/hosts", table), ("/etc/resolv.conf", no_dns), ("/proc/sys/kernel/random/boot_id", f"{uuid.uuid4()}\n")):
        file = pathlib.Path("/dev/shm") / path.replace("/", "-")
        file.write_text(text)
        kernel.bind(file, path)
    kernel.mount("tmpfs", "/dev/shm")  # hides these files
    groups = os.open("/sys/fs/cgroup", os.O_PATH)
    kernel.mount("sysfs", "/sys")  # shows the interfaces of this network alone
    kernel.bind(f"/proc/self/fd/{groups}", "/sys/fs/cgroup")
    os.close(groups)
    socket.sethostname(name)


def processors_of(number, count):
    """Returns every count-th processor or, with more hosts than processors, one that hosts share."""
    all_of_them = sorted(os.sched_getaffinity(0))
    return all_of_them[number % len(all_of_them)::count]


def acquaint(name, count):
    """Enters the MAC addresses of all other hosts."""
    if count <= STRANGERS_MAX:
        return []
    others = [host for host in names_of(count) if host != name]
    return [f"neigh add {address_of(host)} lladdr {hardware_of(host)} nud permanent dev eth0" for host in others]


def start_host(name, count, table, processors):
    """Forks the host's first process, which takes a step for each byte that it reads, and answers each with a byte.
    Returns (pid, descriptor for answers, descriptor for steps)."""
    (ready, say_ready), (wait, go_on) = os.pipe(), os.pipe()
    outer = os.fork()
    if outer == 0:
        os.sched_setaffinity(0, processors)
        kernel.unshare(kernel.HOST)
        first = os.fork()
        if first != 0:
            os.write(say_ready, first.to_bytes(4, "little"))
            os._exit(0)
        os.read(wait, 1)
        furnish(name, table)
        os.write(say_ready, b"+")
        os.read(wait, 1)  # until the cable is connected
        configure([f"addr add {address_of(name)}/24 dev eth0", "link set eth0 up", *acquaint(name, count)])
        sshd.serve(say_ready)
    os.close(say_ready)
    os.close(wait)
    os.waitpid(outer, 0)
    return int.from_bytes(os.read(ready, 4), "little"), ready, go_on


def configure(lines):
    subprocess.run(["ip", "-batch", "-"], input="\n".join(["link set lo up", *lines]), text=True, check=True)


def step(started):
    """Lets all hosts take a step, concurrently."""
    for _, _, go_on in started.values():
        os.write(go_on, b"+")
    for name, (_, ready, _) in started.items():
        if not os.read(ready, 1):
            sys.exit(f"rig.py: {name} did not start")


def build(count):
    """Makes all hosts, and returns their first processes by name."""
    hosts = names_of(count)
    table = "".join(f"{address_of(host)} {host}\n" for host in ("localhost", *hosts, LOGIN))
    furnish(LOGIN, table)
    started = {name: start_host(name, count, table, processors_of(number, count)) for number, name in enumerate(hosts)}
    step(started)
    cables = ["link add bridge type bridge", "link set bridge up", f"addr add {address_of(LOGIN)}/24 dev bridge"]
    for name, (pid, *_) in started.items():
        cables += [f"link add {name} type veth peer name eth0 address {hardware_of(name)} netns {pid}",
                   f"link set {name} master bridge up"]
    configure(cables)
    step(started)
    return {name: pid for name, (pid, *_) in started.items()}


def run(count, command):
    """Makes hosts, runs the command, and returns its exit status."""
    begin()
    environment = {f"RIG_{name}": str(pid) for name, pid in {LOGIN: os.getpid(), **build(count)}.items()}
    environment["PATH"] = f"{HERE / 'bin'}:{os.environ['PATH']}"
    environment["WEFT_SSH"] = os.environ.get("WEFT_SSH", "fakessh")
    child = os.fork()
    if child == 0:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.environ.update(environment)
        try:
            os.execvp(command[0], command)
        except OSError as problem:
            sys.exit(f"rig.py: {command[0]}: {problem.strerror}")
    while True:  # orphans are this process's children, too
        pid, status = os.wait()
        if pid == child:
            return kernel.status_of(status)


def enter(count):
    """Continues a test script with hosts beside it, or skips it."""
    if "RIG_h0" not in os.environ:
        sys.exit(main(["-n", str(count), sys.executable, *sys.argv]))


def hosts():
    """Returns the hosts of the rig beside this process."""
    return [name for name in names_of(HOSTS_MAX) if f"RIG_{name}" in os.environ]


def main(arguments):
    count = 2
    if arguments[:1] == ["-n"] and len(arguments) > 1:
        count = int(arguments[1]) if arguments[1].isdigit() else 0
        arguments = arguments[2:]
    if not arguments or not 1 <= count <= HOSTS_MAX:
        sys.exit(__doc__)
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    try:
        return run(count, arguments)
    except (Refused, PermissionError) as reason:
        print(f"ok 1 - {count} hosts # SKIP {reason}\n1..1")
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
