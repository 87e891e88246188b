#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A PE dies while the GPUs of the others wait for it: in kernels, in stream memory operations, in host calls, in
replayed graphs. The survivors' streams are released; each survivor names the PE and ends within a second, the job
within two, and nothing is left, also no GPU memory.

On the pretended driver, or on this machine's with GPU_REAL=1; GPU_PES is the number of PEs."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("WEFT_BUILD", "build")
REAL = bool(os.environ.get("GPU_REAL"))
if not REAL:
    os.environ["LD_LIBRARY_PATH"] = str((BUILD / "tests/gpu/driver").resolve())
os.environ["GPU_REQUIRED"] = "1"
sys.path.insert(0, str(ROOT / "tests/boot"))
from starters import torchrun  # noqa: E402
from harness import STRICT, Result, Skip, case, gone, main, read_numbers, settled_leftovers, start, wait_until  # noqa: E402

SCENES = str(BUILD / "tests/gpu/scenes")
NPES = int(os.environ.get("GPU_PES", "3"))
SURVIVORS_S, JOB_S = (1.0, 2.0) if REAL or STRICT else (5.0, 10.0)
LEFT_BYTES_MAX = 64 << 20
APART_MS = 50  # by the clock that a kernel reads before it traps

KILLED = r"was killed by signal 9 \(Killed\)|died|ended .*"  # what survivors say of a victim
CHECKED = "exited with status 255 without shmem_finalize"

KERNELS = ("wait_for_device_word", "wait_for_host_word", "barrier", "fcollect_by_kernels", "packets", "broadcasts")
WORDS = ("fcollect_by_engine", "many_by_engine", "flood", "stream_destroyed")
CALLS = ("host_wait", "host_collective", "host_put", "host_quiet", "host_handle", "host_handle_end")
OWN = ("own_kernel", "own_kernels")
INSIDE = ("inside_signal", "inside_signal_of_warp", "inside_signal_of_block", "inside_long_limit", "inside_barrier",
          "inside_sync", "inside_grid_barrier", "inside_packet", "inside_bytes")
PRODUCTS = ("gather_matmul", "gather_rows", "hopper_gather_rows", "matmul_scatter", "matmul_reduce",
            "cut_gather_matmul", "cut_matmul_scatter", "cut_matmul_reduce", "cut_hopper_rows_scatter",
            "cut_hopper_rows_reduce", "moe_dispatch", "moe_combine",
            "exchange_rows", "kv_shuffle", "rms_norm")
GRAPHS = ("replay_kernels", "replay_packets", "replay_engine", "replay_matmul",
          "cut_replay_matmul")


def used_memory():
    """Returns the bytes in use on each of the machine's GPUs."""
    if not REAL or not shutil.which("nvidia-smi"):
        return []
    said = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                          capture_output=True, text=True, check=True).stdout
    return [int(line) << 20 for line in said.split()]


def check_memory(before, where):
    def is_back():
        return all(now <= then + LEFT_BYTES_MAX for now, then in zip(used_memory(), before))
    wait_until(is_back, 5, f"{where}: GPU memory is back: {before} before, {used_memory()} now")


def check_left(seconds, where):
    assert seconds < JOB_S, f"{where}: took {seconds} s"
    left = settled_leftovers()
    assert not left, f"{where}: still running: {left}"


def wait_for_survivors(pids, where):
    begin = time.monotonic()
    wait_until(lambda: all(map(gone, pids)), SURVIVORS_S, f"{where}: the survivors {pids} are gone")
    return begin


def check_lines(err, pe, victim, pid, where, remark="", end=KILLED):
    said = re.findall(rf"^weft: PE {pe} \(pid \d+\): .*$", err, re.M)
    wanted = rf"PE {victim} \(pid {pid}\) ({end}); leaving{remark}"
    assert len(said) == 1 and re.search(wanted, said[0]), f"{where}: PE {pe} says {said}: {err}"


def under_oshrun(scene, victim, how, status, remark=""):
    where, before = f"{scene}, PE {victim} of {NPES} by {how}", used_memory()
    job = start("-n", NPES, SCENES, scene, victim, how)
    pids = read_numbers(job, "pid", NPES)
    dead = read_numbers(job, "victim", 1)[0]
    begin = wait_for_survivors(set(pids) - {dead}, where)
    result = Result(job)
    assert result.status == status, f"{where}: status {result.status}: {result.err}"
    check_left(time.monotonic() - begin, where)
    for pe in set(range(NPES)) - {victim}:
        if how == "exit":
            assert "weft:" not in result.err, f"{where}: {result.err}"
        else:
            check_lines(result.err, pe, victim, dead, where, remark, CHECKED if how == "check" else KILLED)
    check_memory(before, where)
    return result


def under_another(scene, victim):
    where, before = f"{scene}, PE {victim} of {NPES}, without oshrun", used_memory()
    job = torchrun(NPES, [SCENES, scene, victim, 9])
    dead = read_numbers(job.processes[victim], "victim", 1)[0]
    begin = time.monotonic()
    job.wait(seconds_max=JOB_S)
    check_left(time.monotonic() - begin, where)
    for pe in set(range(NPES)) - {victim}:
        assert job.status[pe] == 70, f"{where}: {job.status}: {job.err}"
        check_lines(job.err[pe], pe, victim, dead, where)
    check_memory(before, where)


def victims(scenes):
    """Yields each scene with another victim."""
    return [(scene, i % NPES) for i, scene in enumerate(scenes)]


def dies(name, scenes):
    @case(name)
    def run_scenes():
        for scene, victim in victims(scenes):
            under_oshrun(scene, victim, 9, 137)


dies("while the others' streams wait in kernels", KERNELS)
dies("while they wait for words, by the streams alone", WORDS)
dies("while they multiply matrices", PRODUCTS)
dies("while they are in calls of the host that wait for the GPU", CALLS)
dies("while they replay graphs and call Weft no more", GRAPHS)
dies("while kernels of the program's own wait", OWN)
dies("in every kind of wait inside kernels", INSIDE)


@case("the same without oshrun")
def another():
    for scene, victim in victims(KERNELS[1:3] + WORDS[:2] + CALLS[:2] + GRAPHS + OWN):
        under_another(scene, victim)


@case("who has set a limit to its wait goes on to an end of its own, where the peer is dead or is late")
def bounded():
    for how, victim in ((9, 0), (9, NPES - 1), ("late", 0)):
        job = torchrun(NPES, [SCENES, "bounded_wait", victim, how])
        job.wait(seconds_max=JOB_S + 2)
        check_left(0, "bounded_wait")
        for pe in range(NPES):
            dies = pe == victim and how == 9
            assert dies or job.status[pe] == 0 and (pe == victim or "raised" in job.out[pe]), (
                f"{how}: {job.status}: {job.out}: {job.err}")
    if NPES > 1:
        late = Result(start("-n", NPES, SCENES, "bounded_wait", 0, "late"))
        assert late.status == 0 and late.out.count("raised") == NPES - 1, f"{late.status}: {late.out}: {late.err}"


@case("PEs that share a GPU trap apart: of two at once the driver would tell one alone")
def apart():
    if REAL:
        raise Skip("only the pretended driver says when a kernel has trapped")
    for _ in range(3):  # a pretended GPU that gets no processor for as long is given up, and does not trap
        with tempfile.NamedTemporaryFile("r") as traps:
            job = torchrun(NPES, [SCENES, "bounded_wait", 0, 9], WEFT_FAKE_GPUS="1", WEFT_FAKE_TRAPS=traps.name)
            job.wait(seconds_max=JOB_S + 2)
            times_ms = sorted(int(line.split()[1]) / 1e6 for line in traps)
        if not any("has not stopped" in text for text in job.err):
            break
    assert len(times_ms) == NPES - 1, f"{times_ms}: {job.status}: {job.err}"
    gaps_ms = [later - earlier for earlier, later in zip(times_ms, times_ms[1:])]
    assert all(gap >= APART_MS for gap in gaps_ms), f"traps lie {gaps_ms} ms apart"


@case("shmem_global_exit: all end with its status and say nothing")
def global_exit():
    for scene, victim in victims(("barrier", "many_by_engine", "host_wait", "replay_engine")):
        under_oshrun(scene, victim, "exit", 7)


@case("exit(-1), as where a call of CUDA has failed, while others are in kernels: the job ends with that status")
def check_failed():
    for scene, victim in victims(("barrier", "own_kernel", "own_kernels", "inside_barrier", "matmul_reduce", "host_wait")):
        result = under_oshrun(scene, victim, "check", 255)
        assert re.search(rf"^oshrun: PE {victim} \(pid \d+\) {CHECKED}; ending the job", result.err, re.M), result.err


def tells(result, victim, text):
    """Checks that only the victim prints a line."""
    lines = re.findall(r"^weft: PE (\d+) \(pid \d+\): (.*)$", result.err, re.M)
    assert len(lines) == 1 and lines[0][0] == str(victim) and re.fullmatch(text, lines[0][1]), f"{result.err}"


@case("a kernel ends the job: with its status, and one line")
def by_kernel():
    for scene, victim in victims(("barrier", "host_wait", "replay_engine", "own_kernel", "own_kernels")):
        result = Result(start("-n", NPES, SCENES, scene, victim, "kernel"))
        assert result.status == 7, f"{scene}: {result.status}: {result.err}"
        tells(result, victim, "a kernel has ended the job by weft_abort, with status 7")
    alone = subprocess.run([SCENES, "own_kernel", "0", "kernel"], capture_output=True, text=True, timeout=JOB_S)
    assert alone.returncode == 7 and "by weft_abort" in alone.stderr, f"{alone.returncode}: {alone.stderr}"


@case("a kernel ends the job, and its host goes on: the others' exits behind that are not the cause")
def by_kernel_before():
    for how, scene in (("heard", "check_behind_barrier"), ("summed", "check_behind_sum")) * 2:
        result = Result(start("-n", NPES, SCENES, scene, NPES - 1, how))
        assert result.status == 7, f"{scene}: {result.status}: {result.err}"
        tells(result, NPES - 1, "a kernel has ended the job by weft_abort, with status 7")


@case("a kernel that meets by a handle which has been freed ends the job, and says so")
def stale():
    for scene, victim in victims(("barrier", "own_kernel")):
        result = Result(start("-n", NPES, SCENES, scene, victim, "stale"))
        assert result.status == 71, f"{scene}: {result.status}: {result.err}"
        tells(result, victim, r"a kernel uses a handle of shmemx_device_team that has been freed: free it after the "
                              r"last kernel that uses it \(generation [1-9]\d*\)")


@case("a GPU that does not stop: its process ends hard")
def busy():
    under_oshrun("busy", 0, 9, 137, "; the GPU has not stopped within 100 ms")


main()
