#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""If a resource of the machine is exhausted (descriptors, address space, file size, processes, memory of a cgroup,
/dev/shm, /proc), the job works all the same, or ends at once with a line that names the resource. Many more PEs than
processors work, too."""
import contextlib
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import uuid

from strike import LONG, MEMORY_MIB, PHASES, check_remains, results, run_traced, runs_or_says, why_not
from harness import BUILD, Result, Skip, case, main, preloaded, start

HARNESS = str(pathlib.Path(__file__).resolve().parents[1] / "launch")
CROWD = str(BUILD / "tests/faults/crowd")
PIECES = str(BUILD / "tests/faults/pieces")
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def limited(kind, value, npes, program=PHASES):
    return Result(start("-n", npes, program, preexec_fn=lambda: resource.setrlimit(kind, (value, value))),
                  seconds_max=30)


def check_limits(kind, values, npes):
    """Runs under each limit; the smallest is refused, the largest suffices."""
    outcomes = [runs_or_says(limited(kind, value, npes), f"limit {value} for {npes} PEs") for value in values]
    print(f"# {npes} PEs: {' '.join(f'{v}:{o}' for v, o in zip(values, outcomes))}")
    assert outcomes[-1] == "ran", outcomes


@case("any limit on descriptors")
def descriptors():
    for npes in (2, 5):
        check_limits(resource.RLIMIT_NOFILE, range(4, 89, 1 if LONG else 12), npes)


@case("any limit on address space")
def address_space():
    check_limits(resource.RLIMIT_AS, [16 * MIB, 64 * MIB, 256 * MIB, 512 * MIB, GIB, 2 * GIB, 4 * GIB, 64 * GIB], 3)


@case("any limit on the size of files")
def file_size():
    check_limits(resource.RLIMIT_FSIZE, [0, 4 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB, 64 * GIB], 2)


@case("a limit on the stack and on locked memory")
def small_limits():
    for kind, value in ((resource.RLIMIT_STACK, 128 * KIB), (resource.RLIMIT_MEMLOCK, 0), (resource.RLIMIT_CORE, 0)):
        assert runs_or_says(limited(kind, value, 3), f"limit {kind}") == "ran"


@case("locked memory, where the program has locked what it will map")
def locked():
    if not shutil.which("setpriv") or not shutil.which("prlimit"):
        raise Skip("there is no setpriv or prlimit here (util-linux)")
    if 0 <= resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] < 4 * MIB:
        raise Skip("less than 4 MiB may be locked here (ulimit -l)")
    program = "import ctypes, os; c = ctypes.CDLL(os.environ['WEFT']); ctypes.CDLL(None).mlockall(2); c.shmem_init()"
    without_the_right = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"] if os.geteuid() == 0 else []
    result = Result(start("-n", 2, "-x", f"WEFT={BUILD}/lib/libweft.so", "prlimit", f"--memlock={4 * MIB}",
                          *without_the_right, sys.executable, "-c", program), seconds_max=30)
    wanted = r"mmap\): .*the limit on locked memory, which mlockall\(2\) has asked for, is 4 MiB: raise it \(ulimit -l\)"
    assert result.status and re.search(wanted, result.err), (result.status, result.err)


@contextlib.contextmanager
def cgroup(controller, limits):
    """Makes a cgroup of version 1 or 2 with these limits."""
    for top, files in ((pathlib.Path("/sys/fs/cgroup") / controller, limits[0]), (pathlib.Path("/sys/fs/cgroup"), limits[1])):
        group = top / f"faults-{uuid.uuid4().hex[:12]}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            for name, value in files.items():
                (group / name).write_text(str(value))
            yield group
            return
        except OSError:
            pass
        finally:
            with contextlib.suppress(OSError):
                group.rmdir()
    raise Skip("no cgroup can be made here")


@contextlib.contextmanager
def nested(limits, names):
    """Returns the innermost of nested groups with these names, which has the limits."""
    with cgroup("memory", ({}, {})) as outer:
        groups = [outer]
        try:
            for name in names:
                with contextlib.suppress(OSError):
                    (groups[-1] / "cgroup.subtree_control").write_text("+memory")
                groups.append(groups[-1] / name)
                groups[-1].mkdir()
            version_2 = (groups[-1] / "memory.max").exists()
            for name, value in limits[version_2].items():
                (groups[-1] / name).write_text(str(value))
            yield groups[-1]
        finally:
            for group in groups[:0:-1]:
                with contextlib.suppress(OSError):
                    group.rmdir()


def join(group):
    return lambda: (group / "cgroup.procs").write_text(str(os.getpid()))


@contextlib.contextmanager
def available(kibibytes):
    """Returns the words before a command for which the machine has this much memory available."""
    here = re.sub(r"(?m)^MemAvailable:.*$", f"MemAvailable: {kibibytes} kB", pathlib.Path("/proc/meminfo").read_text())
    with tempfile.NamedTemporaryFile("w", prefix="weft-meminfo-") as file:
        file.write(here)
        file.flush()
        words = ["unshare", "-m", "sh", "-c", f'mount --bind {file.name} /proc/meminfo && exec "$@"', "sh"]
        tried = subprocess.run([*words, "true"], capture_output=True, text=True)
        if tried.returncode != 0:
            raise Skip(f"nothing can be mounted over /proc/meminfo here: {tried.stderr.strip()}")
        yield words


@case("a machine that has less available than is left to others: a small heap is granted, a large one is not")
def short_of_memory():
    with available(1000000) as words:
        for npes in 1, 2:
            result = Result(start("-n", npes, PIECES, below=words), seconds_max=30)
            granted = {int(line.split()[0]) for line in result.out.splitlines()}
            assert result.status == 0 and len(granted) == 1, (npes, result.status, result.out, result.err)
            assert 2 <= granted.pop() <= 16 // npes, (npes, result.out)
            line = (r"shmem_malloc of 2 MiB failed on all PEs: it needs 2 MiB per PE, and 0 bytes per PE is available"
                    r" \(details: weft\(7\)\)$")
            assert re.search(line, result.err, re.M), result.err


@case("a test that needs more memory than is available waits for it, and is skipped with that reason")
def skipped():
    program = """
import sys
sys.path.insert(0, sys.argv[1])
import harness
harness.memory_await.__defaults__ = (0.5,)
harness.case("large")(lambda: print("# runs"))
harness.main(int(sys.argv[2]))
"""
    settings = {name: value for name, value in os.environ.items() if name != "WEFT_TEST_CASES"}
    with available(1000000) as words:
        for mebibytes, said in (976, "# runs\nok 1 - large\n1..1\n"), \
                (977, "ok 1 - large # SKIP 977 MiB of memory are needed, and 976 MiB are available\n1..1\n"):
            done = subprocess.run([*words, sys.executable, "-c", program, HARNESS, str(mebibytes)], env=settings,
                                  capture_output=True, text=True, timeout=60)
            assert done.returncode == 0 and done.stdout == said, (mebibytes, done)


@case("a program of these tests that gets no symmetric memory says so")
def no_memory():
    nothing = """#include <stddef.h>
void *shmem_malloc(size_t bytes) { return NULL; }
void *shmem_calloc(size_t count, size_t bytes) { return NULL; }
void *shmem_align(size_t alignment, size_t bytes) { return NULL; }"""
    with preloaded(nothing) as words:
        for program, *arguments in ("crowd", 1), ("closed",), ("growth", 100), ("scenes", "allocate", 1, 9):
            result = Result(start("-n", 2, *words, BUILD / "tests/faults" / program, *arguments), seconds_max=30)
            assert result.status == 1 and re.search(r"no (symmetric )?memory|expected \*place", result.err), (program, result.status, result.err)
        result = Result(start("-n", 2, *words, PHASES), seconds_max=30)
        assert {"PE 0 malloc 0", "PE 1 calloc 0"} <= set(result.out.splitlines()), result.out


@case("the memory of a cgroup: an allocation beyond it is NULL on all PEs, with a line, and no PE is killed")
def cgroup_memory():
    with cgroup("memory", ({"memory.limit_in_bytes": 48 * MIB}, {"memory.max": 48 * MIB})) as group:
        result = Result(start("-n", 2, PHASES, preexec_fn=join(group)), seconds_max=30)
        assert runs_or_says(result, "48 MiB") == "said", result.out
        assert result.status == 0 and results(result.out)["malloc"] == {"1"}, (result.status, result.out, result.err)
        assert "memory" in result.err, result.err


@case("the same in a cgroup whose path is long")
def nested_cgroup_memory():
    with nested(({"memory.limit_in_bytes": 48 * MIB}, {"memory.max": 48 * MIB}), ["a" * 200, "b" * 200]) as group:
        result = Result(start("-n", 2, PHASES, preexec_fn=join(group)), seconds_max=30)
        assert result.status == 0 and results(result.out)["malloc"] == {"1"}, (result.status, result.out, result.err)
        assert "b" * 200 + "/memory." in result.err, result.err


def take_pieces(how, limit_mib, npes):
    """Returns how many MiB each PE gets in a cgroup with this limit, when it touches all of them."""
    limit = limit_mib * MIB
    with cgroup("memory", ({"memory.limit_in_bytes": limit}, {"memory.max": limit})) as group:
        result = Result(start("-n", npes, PIECES, how, preexec_fn=join(group)), seconds_max=60)
    granted = {line.split()[0] for line in result.out.splitlines()}
    assert result.status == 0 and len(granted) == 1, (how, result.status, result.out, result.err)
    assert result.out.count("whole") == npes and " failed on all PEs: it needs " in result.err, (how, result.out, result.err)
    return int(granted.pop())


@case("all memory of a cgroup, in pieces: whenever they are touched, there is nearly all of it and no PE is killed")
def cgroup_pieces():
    for how in "at once", "later", "return":
        for limit_mib, npes in ((160, 2), (224, 3)):
            granted = take_pieces(how, limit_mib, npes)
            print(f"# {how}: {granted} MiB on each of {npes} PEs in {limit_mib} MiB")
            assert granted * npes > limit_mib * 3 // 4, (how, granted)


@case("the same for blocks, which each PE makes for itself")
def cgroup_blocks():
    with cgroup("memory", ({"memory.limit_in_bytes": 48 * MIB}, {"memory.max": 48 * MIB})) as group:
        for bytes_each, granted in ((8 * MIB, "1"), (64 * MIB, "0"), (30 * MIB, None)):
            result = Result(start("-n", 2, PHASES, bytes_each, preexec_fn=join(group)), seconds_max=30)
            runs_or_says(result, f"blocks of {bytes_each} bytes")
            given = results(result.out)["block"]
            assert result.status == 0 and (given == {granted} or not granted), (result.status, result.out, result.err)


@case("a limit on processes")
def processes():
    with cgroup("pids", ({"pids.max": 5}, {"pids.max": 5})) as group:
        result = Result(start("-n", 8, PHASES, preexec_fn=join(group)), seconds_max=30)
        assert result.status == 71 and re.search("cannot start: (fork|pthread_create), for PE .*pids.max", result.err), (result.status, result.err)
        check_remains(result, "5 processes")


@case("memfd_create forbidden: a line that says so, and nothing of limits")
def no_memfd():
    if why_not():
        raise Skip(why_not())
    forbidden = ["-e", "trace=memfd_create", "-e", "inject=memfd_create:error=EPERM"]
    result, _ = run_traced(2, 1, forbidden, PHASES)
    assert result.status == 71 and "(memfd_create, mmap)" in result.err and "seccomp" in result.err, (result.status, result.err)
    assert "ulimit" not in result.err, result.err


def without(setup):
    """Runs a job in a mount namespace of its own, after `setup`; returns None if that is forbidden."""
    below = ["unshare", "--mount", "sh", "-c", f'{setup} && exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*below, "true"], capture_output=True).returncode:
        return None
    return Result(start("-n", 3, PHASES, below=below), seconds_max=30)


@case("/dev/shm without room or without being there, and /proc without content")
def no_file_systems():
    for setup in ("mount -t tmpfs -o size=64k none /dev/shm", "mount -t tmpfs -o ro none /dev", "mount -t tmpfs -o ro none /proc",
                  "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp"):
        result = without(setup)
        if not result:
            print(f"# not permitted here: {setup}")
        else:
            assert runs_or_says(result, setup) == "ran", (setup, result.err)


@case("64 PEs: barriers and collectives; 128 start and end")
def crowd():
    Result(start("-n", 64, CROWD, 3), seconds_max=120).expect(0, seconds_max=120)
    Result(start("-n", 128, CROWD, 0), seconds_max=120).expect(0, seconds_max=120)


main(MEMORY_MIB)
