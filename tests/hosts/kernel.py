# SPDX-License-Identifier: BSD-3-Clause
"""System calls of Linux that Python lacks: namespaces, mounts, the death of a parent, and descriptors of other
processes."""
import ctypes
import os
import signal

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
HOST = NEWNS | NEWUTS | NEWIPC | NEWPID | NEWNET  # the namespaces of a host
_BIND, _REC, _PRIVATE, _PDEATHSIG, _PIDFD_GETFD = 4096, 16384, 1 << 18, 1, 438
_libc = ctypes.CDLL(None, use_errno=True)


def _call(name, *arguments):
    if getattr(_libc, name)(*arguments):
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def unshare(flags):
    _call("unshare", flags)


def enter(pid, flags=HOST):
    """Joins the namespaces of a process. Children that are forked from here on are in its pid namespace."""
    descriptor = os.pidfd_open(pid)
    _call("setns", descriptor, flags)
    os.close(descriptor)


def mount(kind, where):
    _call("mount", b"weft", str(where).encode(), kind.encode(), 0, None)


def bind(source, where):
    _call("mount", str(source).encode(), str(where).encode(), None, _BIND | _REC, None)


def keep_mounts():
    """Makes mounts of this namespace invisible outside of it."""
    _call("mount", b"none", b"/", None, _REC | _PRIVATE, None)


def die_with_parent():
    _call("prctl", _PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def descriptors(pid):
    """Returns duplicates of all descriptors of a process."""
    process = os.pidfd_open(pid)
    found = [_libc.syscall(_PIDFD_GETFD, process, int(name), 0) for name in os.listdir(f"/proc/{pid}/fd")]
    os.close(process)
    return [descriptor for descriptor in found if descriptor >= 0]


def map_root(uid, gid):
    """Maps users of a new user namespace: its creator is root there; there are no other users."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def status_of(wait_status):
    """Returns the exit status as a shell reports it."""
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code
