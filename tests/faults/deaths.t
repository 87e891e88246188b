#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A PE dies while all others are inside a call that cannot end without it, for each call in turn: each survivor names
the dead PE and the call, and the job ends with the right status. Also with more PEs than processors, with the death of
PE 0, with two deaths at once, and with a death during shmem_global_exit."""
import itertools
import os
import re
import signal

from strike import MEMORY_MIB, LONG, SPEECHLESS_AFTER, check_remains
from harness import BUILD, Result, case, main, read_numbers, start

SCENES = str(BUILD / "tests/faults/scenes")
HOWS = {"9": 137, "11": 139, "6": 134, "exit": 3}

# The scene, and the routine in which the others notice the death; None: they are in no call of Weft.
WAITS = {
    "barrier_all": "shmem_barrier_all", "sync_all": "shmem_sync_all",
    "team_sync": "shmem_(?:sync_all|team_sync)", "wait_until": "shmem_long_wait_until",
    "wait_until_any": "shmem_long_wait_until_any", "signal_wait_until": "shmem_signal_wait_until",
    "test": "shmem_long_test", "set_lock": "shmem_set_lock", "test_lock": "shmem_test_lock",
    "malloc": "shmem_malloc", "malloc_growth": "shmem_malloc", "free": "shmem_free",
    "team_split_strided": "shmem_team_split_strided", "finalize": "shmem_finalize",
    "broadcast": "shmem_float_broadcast", "broadcast_much": "shmem_float_broadcast",
    "alltoall": "shmem_float_alltoall", "fcollect": "shmem_float_fcollect", "collect": "shmem_float_collect",
    "sum_reduce": "shmem_float_sum_reduce", "sum_reduce_much": "shmem_float_sum_reduce",
    "sum_exscan": "shmem_float_sum_exscan", "weft_all_reduce": "weft_all_reduce",
    "weft_moe_dispatch": "weft_moe_dispatch", "weft_moe_combine": "weft_moe_combine",
    "weft_all_to_allv_on_device": "weft_all_to_allv_on_device", "weft_kv_shuffle": "weft_kv_shuffle",
    "weft_all_reduce_rms_norm": "weft_all_reduce(?:_rms_norm)?",
    "team_create": "shmemx_team_create", "share_attach": "shmemx_share_attach", "pad_wait": "shmemx_pad_wait_on_stream",
}
ALONE = ("atomic_fetch", "compute")


def die(scene, npes, victim, how, below=()):
    job = start("-n", npes, SCENES, scene, victim, how, below=below)
    pid = read_numbers(job, "pid", 1)[0]
    return Result(job, seconds_max=30), pid


def check_end(result, where, statuses):
    assert result.status in statuses, f"{where}: status {result.status}: {result.err}"
    check_remains(result, where)


def check_scene(scene, npes, victim, how, below=()):
    where = f"{scene}, PE {victim} of {npes} dies by {how} {' '.join(below)}"
    result, pid = die(scene, npes, victim, how, below)
    # Removes the greeting of checked mode, and its list of objects that were not freed.
    result.err = re.sub(r"^weft: .* (heap slots of|at the end of the job:) .*\n", "", result.err, flags=re.M)
    check_end(result, where, [HOWS[how]])
    assert re.search(rf"^oshrun: PE {victim} \(pid {pid}\) .*; ending the job$", result.err, re.M), f"{where}: {result.err}"
    said = set(re.findall(rf"^weft: PE (\d+) \(pid \d+\): in {WAITS[scene]}: PE {victim} \(pid {pid}\) .*; leaving$",
                          result.err, re.M))
    assert result.err.count("\n") <= npes, f"{where}: more is said: {result.err}"
    missing = set(map(str, range(npes))) - {str(victim)} - said
    assert not missing or result.seconds > SPEECHLESS_AFTER, f"{where}: PEs {missing} do not name it: {result.err}"


def combinations():
    """Returns all of them, or each call once."""
    places = [(2, 1), (2, 0), (3, 1), (4, 0), (8, 7), (8, 0), (16, 5)]
    if LONG:
        return itertools.product(WAITS, places, HOWS)
    return [(scene, places[i % len(places)], list(HOWS)[i % len(HOWS)]) for i, scene in enumerate(WAITS)]


@case("a death while the others are in a call")
def in_calls():
    for scene, (npes, victim), how in combinations():
        check_scene(scene, npes, victim, how)


@case("the same in checked mode, which waits in ways of its own")
def in_checked_calls():
    for i, scene in enumerate(WAITS):
        check_scene(scene, 2 + i % 4, i % 2, "9", below=["env", "SHMEM_DEBUG=1"])


@case("a death while the others compute or poll by themselves")
def outside():
    for scene in ALONE:
        result, pid = die(scene, 4, 1, "9")
        check_end(result, scene, [137])
        assert f"oshrun: PE 1 (pid {pid}) was killed by signal 9" in result.err, result.err


@case("two deaths at once: all survivors name the same one")
def two():
    for turn in range(40 if LONG else 5):
        job = start("-n", 5, str(BUILD / "tests/core/loop"))
        pids = read_numbers(job, "pid", 5)
        os.kill(pids[turn % 5], signal.SIGKILL)
        os.kill(pids[(turn + 2) % 5], signal.SIGKILL)
        result = Result(job)
        check_end(result, f"turn {turn}", [137])
        named = set(re.findall(r"(PE \d+ \(pid \d+\)) (?:was killed|died)", result.err))
        assert len(named) == 1, result.err


@case("a death beside shmem_global_exit: the one status or the other, and no hang")
def beside_global_exit():
    for turn in range(60 if LONG else 8):
        result = Result(start("-n", 4, SCENES, "global_exit", turn % 3, "9"))
        check_end(result, f"turn {turn}", [137, 7])
        assert result.status == 137 or "weft:" not in result.err, result.err


main(MEMORY_MIB)
