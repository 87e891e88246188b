#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Beginnings and ends of a job: tests/api/life.c, linked with the shared library and with the archive, and interpreters
that load the library late. Far: also, where tests are long."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from harness import BUILD, ROOT, case, main, run

WORK = pathlib.Path(tempfile.mkdtemp(prefix="life-"))
SHARED = BUILD / "tests/api/life"
STATIC = WORK / "life-static"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def build_static():
    if not STATIC.exists():
        subprocess.run([BUILD / "bin/oshcc", "-std=gnu11", "-static-weft", "-o", STATIC,
                        ROOT / "tests/api/life.c", "-lpthread"], check=True)
    needed = subprocess.run(["ldd", STATIC], capture_output=True, text=True).stdout
    assert "weft" not in needed, needed


def both():
    build_static()
    return SHARED, STATIC


def global_exit_while(how, npes=3):
    for program in both():
        result = run("-n", npes, program, how).expect(42)
        assert "from 1 " in result.out and "farewell" in result.out, result.out
        assert result.err == "", result.err
        if how != "compute":  # in a call, every PE ends as exit() does: no output is lost
            assert result.out.count("farewell") == npes, result.out


for activity in "compute", "barrier", "finalize", "malloc", "wait", "lock", "split", "nested":
    case(f"shmem_global_exit while others are in: {activity}")(
        lambda activity=activity: global_exit_while(activity))


@case("shmem_global_exit while others leave shmem_init")
def exit_in_init():
    for turn in range(10):
        result = run("-n", 2 + turn % 3, SHARED, "in-init").expect(42)
        assert result.err == "", result.err


for activity in "compute", "barrier", "finalize", "wait", "lock":
    @case(f"shmem_global_exit from a thread of a PE whose first thread is in: {activity}")
    def exit_from_thread(activity=activity):
        result = run("-n", 2, SHARED, "thread-" + activity).expect(42)
        assert "farewell" in result.out and result.err == "", (result.out, result.err)


@case("shmem_global_exit from two threads of every PE at once: one of the statuses")
def exit_from_all():
    for _ in range(10):
        result = run("-n", 3, SHARED, "all")
        assert 10 <= result.status < 16 and result.err == "", (result.status, result.err)


@case("exit handlers after shmem_global_exit: finalize returns, a barrier ends the process")
def handlers():
    result = run("-n", 3, SHARED, "finalize-handler").expect(42)
    assert result.out.count("finalized") == 3 and result.err == "", (result.out, result.err)
    assert run("-n", 3, SHARED, "barrier-handler").expect(42).err == ""


@case("returning from main finalizes after start_pes and nested initialisation")
def implicit():
    for program in both():
        for start in "start_pes", "nested", "":
            for npes in 1, 3:
                run("-n", npes, program, "return", start).expect(0, err="", out="")
        run(program, "return", "start_pes").expect(0, out="")


@case("exit by another thread, and exit during a finalize")
def threads():
    run("-n", 3, SHARED, "exit-by-thread").expect(0)
    for _ in range(5):
        run("-n", 3, SHARED, "finalize-twice").expect(0)


@case("a job after a job, with the archive too")
def again():
    for program in both():
        for npes in 1, 2, 4:
            run("-n", npes, program, "again").expect(0)


@case("initialisation that fails: an error on every PE, and the program goes on to its end")
def failing():
    for npes in 1, 3:
        result = run("-n", npes, "env", "SHMEM_SYMMETRIC_SIZE=900t", SHARED, "return").expect(5)
        assert "SHMEM_SYMMETRIC_SIZE" in result.err, result.err
    result = run("-n", 2, "env", "SHMEM_SYMMETRIC_SIZE=x", SHARED, "return").expect(5)
    assert "SHMEM_SYMMETRIC_SIZE" in result.err, result.err


@case("initialisation that fails on one PE alone: the others do not wait for ever")
def failing_alone():
    limited = 'test $WEFT_PE = 1 && ulimit -v 30000; exec "$@"'
    result = run("-n", 3, "sh", "-c", limited, "sh", SHARED, "barrier")
    assert result.status not in (0, 42) and result.seconds < 3, (result.status, result.seconds)
    assert "cannot reserve" in result.err, result.err


@case("the holder of a lock is killed: PEs that wait or test report it and end")
def killed_holder():
    for npes in 2, 4:
        result = run("-n", npes, SHARED, "killed-holder").expect(137)
        for pe in set(range(npes)) - {1}:
            call = "shmem_test_lock" if pe == 0 else "shmem_set_lock"
            lines = [line for line in result.err.split("\n") if f"PE {pe} (pid" in line[:20]]
            assert len(lines) == 1 and f"in {call}: PE 1 (pid " in lines[0], result.err
            assert re.search("(died|was killed by signal 9 .Killed.); leaving", lines[0]), result.err


for activity in "barrier", "malloc", "wait", "lock", "split", "finalize":
    @case(f"a PE is killed, and the others' handlers leave: {activity}")
    def handler(activity=activity):
        for program in both():
            result = run("-n", 3, program, "handler-" + activity).expect(137)
            for pe in 0, 2:
                told = re.findall(rf"told PE {pe}: PE 1 \(pid \d+\) (?:died|was killed by signal 9 \(Killed\))\n",
                                  result.out)
                assert len(told) >= 2, result.out  # one thread may have got the lock
                assert len(re.findall(rf"PE {pe} \(pid \d+\): in shmem_finalize: PE 1", result.err)) == 1, result.err
            assert result.out.count("cleared up") == 2, result.out


@case("the holder of a lock has finalized: a PE that waits or tests names it and ends the job")
def departed_holder():
    for npes, holder, testing in (2, 1, ""), (2, 0, ""), (3, 0, "t"), (4, 2, "t"):
        result = run("-n", npes, SHARED, f"departed-holder-{holder}{testing}").expect(71)
        call = "shmem_test_lock" if testing else "shmem_set_lock"
        line = rf"weft: PE \d \(pid \d+\): {call} waits for PE {holder}, which holds the lock and has finalized .*: clear it before .*"
        said = [one for one in result.err.splitlines() if not re.search(r"\+0x[0-9a-f]+ \(", one)]
        assert 1 <= len(said) < npes and all(re.fullmatch(line, one) for one in said), result.err


@case("the first thread ends by pthread_exit while another one goes on")
def first_thread_ends():
    for program in both():
        result = run("-n", 3, program, "first-thread-ends").expect(0)
        assert result.err == "", result.err


LATE = """
import ctypes, os, sys
way = sys.argv[2]
weft = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL if way == "global" else ctypes.RTLD_LOCAL)
weft.shmem_malloc.restype = weft.shmem_ptr.restype = ctypes.c_void_p
weft.shmem_malloc.argtypes = [ctypes.c_size_t]
weft.shmem_ptr.argtypes = [ctypes.c_void_p, ctypes.c_int]
weft.shmem_int64_g.restype, weft.shmem_int64_g.argtypes = ctypes.c_int64, [ctypes.c_void_p, ctypes.c_int]
weft.shmem_int64_p.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
weft.shmem_addr_accessible.argtypes = [ctypes.c_void_p, ctypes.c_int]
for job in range(3):
    weft.shmem_init()
    me, npes = weft.shmem_my_pe(), weft.shmem_n_pes()
    heap = weft.shmem_malloc(4096)
    weft.shmem_int64_p(heap, 10 * job + me, (me + 1) % npes)
    weft.shmem_barrier_all()
    value = ctypes.c_int64.from_address(heap).value
    assert value == 10 * job + (me - 1) % npes, value
    there = weft.shmem_ptr(heap, (me + 1) % npes)
    assert bool(there) == (npes == 1 or "WEFT_PRETEND_HOSTS" not in os.environ)
    there = ctypes.c_int64.from_address(there).value if there else weft.shmem_int64_g(heap, (me + 1) % npes)
    assert there == 10 * job + me, there
    assert not weft.shmem_addr_accessible(ctypes.addressof(ctypes.c_int(5)), me)
    if job < 2 or way != "implicit":
        weft.shmem_finalize()
if way == "exit":
    weft.shmem_init()
    if me == npes - 1:
        weft.shmem_global_exit(42)
    weft.shmem_barrier_all()
print("done")
"""


@case("an interpreter that opens the library late: its heap is symmetric, and jobs come and go")
def late():
    for way in "global", "local", "implicit":
        for npes in 1, 3:
            result = run("-n", npes, PYTHON, "-c", LATE, BUILD / "lib/libweft.so", way).expect(0, seconds_max=5)
            assert result.out.count("done") == npes, result.out
    run("-n", 3, PYTHON, "-c", LATE, BUILD / "lib/libweft.so", "exit").expect(42, seconds_max=5)


LOADER = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    for (int turn = 0; turn < 3; turn++) {
        void *weft = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!weft || argc != 2)
            return fprintf(stderr, "%s\n", dlerror()), 1;
        ((void (*)(void))dlsym(weft, "shmem_init"))();
        ((void (*)(void))dlsym(weft, "shmem_barrier_all"))();
        if (turn == 1)
            ((void (*)(void))dlsym(weft, "shmem_finalize"))();
        dlclose(weft); /* of turn 0 the job is still running */
    }
    return 0;
}
"""


@case("a program that opens and closes the library, finalized or not")
def loader():
    source = WORK / "loader.c"
    source.write_text(LOADER)
    subprocess.run(["cc", "-o", WORK / "loader", source, "-ldl"], check=True)
    for npes in 1, 3:
        run("-n", npes, WORK / "loader", BUILD / "lib/libweft.so").expect(0)


try:
    main()
finally:
    shutil.rmtree(WORK)
