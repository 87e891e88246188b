#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checked mode (SHMEM_DEBUG) finds misuse that is not looked for otherwise, and reports it in one line.

PE 1 of 3 misuses the library in the way that its argument names, or all PEs do, each differently. A correct program
behaves in checked mode as it does without. Far: also."""
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lines

# name, statement of PE 1, a pattern that the line must contain.
ACCESSES = [
    ("put to freed memory", "shmem_long_p(freed, 1, 0)", "shmem_long_p: argument dest is 0x[0-9a-f]+, in memory of the symmetric heap that is not allocated"),
    ("get from freed memory", "long here[2]; shmem_long_get(here, freed, 2, 0)", "shmem_long_get: argument source is"),
    ("an atomic on freed memory", "shmem_long_atomic_add(freed, 1, 2)", "shmem_long_atomic_add: argument dest is"),
    ("a signal in freed memory", "shmem_signal_set((uint64_t *)freed, 1, 2)", "shmem_signal_set: argument sig_addr is"),
    ("a wait on freed memory", "shmem_long_wait_until(freed, SHMEM_CMP_EQ, 5)", "shmem_long_wait_until: argument ivar is"),
    ("a source in freed memory", "shmem_long_put(heap, freed, 1, 0)", "shmem_long_put: argument source is"),
    ("one element too many", "long here[9] = {0}; shmem_long_put(heap, here, 9, 0)", "argument dest is 0x[0-9a-f]+, 0 bytes into an object of 64 bytes: an access of 72 bytes leaves it"),
    ("one byte too many", "char here[4] = {0}; shmem_putmem(odd + 10, here, 4, 2)", "shmem_putmem: argument dest is 0x[0-9a-f]+, 10 bytes into an object of 13 bytes: an access of 4 bytes leaves it (for PE 2): at most 3 bytes fit"),
    ("a stride that leaves the object", "shmem_long_iput(heap, longs, 3, 1, 4, 0)", "shmem_long_iput: argument dest is 0x[0-9a-f]+, 0 bytes into an object of 64 bytes: an access of 80 bytes"),
    ("a negative stride that leaves it", "shmem_long_iget(longs, heap, 1, -1, 2, 0)", "shmem_long_iget: argument source is"),
    ("a payload that leaves its object", "shmem_long_put_signal(heap, longs, 9, &signal_word, 1, SHMEM_SIGNAL_SET, 0)", "shmem_long_put_signal: argument dest is"),
    ("one element too many for a static", "shmem_long_put(longs, heap, 8, 0); long here[17] = {0}; shmem_long_put(longs, here, 17, 0)", "shmem_long_put: argument dest is 0x[0-9a-f]+, 0 bytes into variable longs of 128 bytes: an access of 136 bytes leaves it (for PE 0): at most 128 bytes fit"),
    ("a get that leaves a static in its middle", "long here[3]; shmem_long_get(here, longs + 13, 3, 0); shmem_long_get(here, longs + 14, 3, 0)", "shmem_long_get: argument source is 0x[0-9a-f]+, 112 bytes into variable longs of 128 bytes: an access of 24 bytes"),
    ("a source that leaves a static", "shmem_long_put(heap, longs + 9, 8, 0)", "shmem_long_put: argument source is 0x[0-9a-f]+, 72 bytes into variable longs of 128 bytes: an access of 64 bytes leaves it: at most 56 bytes fit"),
    ("a static of a function", "static int inside[10]; shmem_int_put(inside, (int *)longs, 20, 0)", "shmem_int_put: argument dest is 0x[0-9a-f]+, 0 bytes into variable inside of 40 bytes: an access of 80 bytes"),
    ("a member of a static structure", "static struct { int a[4], b[4]; } both; shmem_int_put(both.a, both.b, 4, 0); shmem_int_put(both.b, both.a, 5, 0)", "shmem_int_put: argument dest is 0x[0-9a-f]+, 16 bytes into variable both of 32 bytes: an access of 20 bytes"),
    ("a misaligned dest", "shmem_int_p((int *)(odd + 1), 1, 0)", "shmem_int_p: argument dest is 0x[0-9a-f]+, not aligned to 4 bytes"),
    ("a misaligned source", "shmem_long_put(longs, (long *)((char *)heap + 4), 1, 0)", "shmem_long_put: argument source is 0x[0-9a-f]+, not aligned to 8 bytes"),
    ("a misaligned atomic", "shmem_int_atomic_inc((int *)(odd + 2), 0)", "shmem_int_atomic_inc: argument dest is 0x[0-9a-f]+, not aligned to 4 bytes"),
    ("misaligned 128-bit items", "shmem_put128((char *)longs + 8, heap, 1, 0)", "shmem_put128: argument dest is 0x[0-9a-f]+, not aligned to 16 bytes"),
    ("a misaligned word to wait for", "shmem_long_test((long *)((char *)longs + 4), SHMEM_CMP_EQ, 5)", "shmem_long_test: argument ivar is"),
    ("overlap with itself", "shmem_long_put(heap + 1, heap, 3, 1)", "shmem_long_put: arguments dest (0x[0-9a-f]+, 24 bytes) and source (0x[0-9a-f]+, 24 bytes) overlap"),
    ("overlap of a get", "shmem_getmem(longs, longs, 8, 1)", "shmem_getmem: arguments source (0x[0-9a-f]+, 8 bytes) and dest (0x[0-9a-f]+, 8 bytes) overlap"),
    ("overlap of payload and signal", "shmem_long_put_signal(heap, longs, 8, (uint64_t *)heap + 2, 1, SHMEM_SIGNAL_SET, 0)", "shmem_long_put_signal: arguments dest (0x[0-9a-f]+, 64 bytes) and sig_addr"),
    ("another PE's pointer", "shmem_long_p(shmem_ptr(heap, 2), 1, 0)", "shmem_long_p: argument dest is 0x[0-9a-f]+, in the memory of another PE, as returned by shmem_ptr"),
    ("another PE's static", "shmem_int_atomic_inc(shmem_ptr(&word, 0), 0)", "shmem_int_atomic_inc: argument dest is 0x[0-9a-f]+, in the memory of another PE"),
    ("a thread that may not call", "in_thread(put)", "shmem_int_p: called by a thread other than the one that called shmem_init, at thread level SHMEM_THREAD_SINGLE"),
    ("a thread that may not order", "in_thread(shmem_quiet)", "shmem_quiet: called by a thread other than the one that called shmem_init, at thread level SHMEM_THREAD_SINGLE"),
    ("a thread that may not set a lock", "in_thread(set_lock)", "shmem_set_lock: called by a thread other than"),
    ("a thread that may not wait", "in_thread(shmem_barrier_all)", "shmem_barrier_all: called by a thread other than"),
    ("another thread's private context", "in_thread(put_private)", "shmem_ctx_int_p: argument ctx is 0x[0-9a-f]+, a private context that another thread created"),
    ("a put while another thread waits", "beside(wait, put)", "shmem_int_p: called while another thread is in shmem_long_wait_until, at thread level SHMEM_THREAD_SERIALIZED"),
    ("a fence while another thread is in a collective", "beside(sync_two, shmem_fence)", "shmem_fence: called while another thread is in shmem_sync, at thread level SHMEM_THREAD_SERIALIZED"),
    ("an allocation while another thread waits for a lock", "shmem_set_lock(&lock); beside(set_lock, allocate)", "shmem_malloc: called while another thread is in shmem_set_lock, at"),
    ("a bad PE is still one", "shmem_int_p(&word, 1, 3)", "shmem_int_p: argument pe is 3, but the job has 3 PEs"),
]

# name, statement of all PEs, a pattern that the line of one of them must contain.
COLLECTIVES = [
    ("barrier against sync", "me == 1 ? shmem_sync_all() : shmem_barrier_all()", ["shmem_barrier_all: PE 1 is in shmem_sync_all instead: all members", "shmem_sync_all: PE [02] is in shmem_barrier_all instead"]),
    ("malloc of different sizes", "shmem_malloc(me == 1 ? 64 : 128)", ["shmem_malloc: argument size is 64 here, but 128 on PE [02]", "shmem_malloc: argument size is 128 here, but 64 on PE 1"]),
    ("malloc against calloc", "me == 0 ? shmem_malloc(8) : shmem_calloc(1, 8)", "is in shmem_[cm]a?l+oc instead"),
    ("free of different objects", "shmem_free(me == 2 ? heap : (void *)odd)", "shmem_free: argument ptr (offset in the heap) is"),
    ("free of what is not of the heap", "shmem_free(me == 1 ? (void *)&word : heap)", "shmem_free: argument ptr is 0x[0-9a-f]+, which is not in this PE's part of the symmetric heap"),
    ("free twice", "shmem_free(freed)", "shmem_free: argument ptr is 0x[0-9a-f]+, an object of the symmetric heap that was freed before"),
    ("realloc of what was freed", "shmem_realloc(freed, 128)", "shmem_realloc: argument ptr is 0x[0-9a-f]+, an object of the symmetric heap that was freed before"),
    ("an alignment that is no power of two", "shmem_align(63, 64)", "shmem_align: argument alignment is 63: pass a power of two that is a multiple of 8"),
    ("an alignment below a pointer's", "shmem_align(2, 64)", "shmem_align: argument alignment is 2: pass a power of two that is a multiple of 8"),
    ("different teams", "shmem_team_t team; shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, me == 1 ? 2 : 3, NULL, 0, &team)", "shmem_team_split_strided: argument size is [23] here, but [23] on PE"),
    ("a barrier against malloc", "me == 1 ? (void)shmem_malloc(8) : shmem_barrier_all()", ["is in shmem_malloc instead", "is in shmem_barrier_all instead"]),
    ("different roots", "shmem_long_broadcast(SHMEM_TEAM_WORLD, heap, longs, 4, me == 1)", "shmem_long_broadcast: argument PE_root is [01] here, but [01] on PE"),
    ("different sizes", "shmem_long_fcollect(SHMEM_TEAM_WORLD, heap, longs, 1 + (me == 2))", "shmem_long_fcollect: argument nelems (in bytes) is [18]6? here"),
    ("different types", "if (me == 0) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, heap, longs, 1); else shmem_ulong_sum_reduce(SHMEM_TEAM_WORLD, (unsigned long *)heap, (unsigned long *)longs, 1)", "is in shmem_u?long_sum_reduce instead"),
    ("a reduction that leaves its object", "shmem_long_max_reduce(SHMEM_TEAM_WORLD, heap, longs, 9)", "shmem_long_max_reduce: argument dest is 0x[0-9a-f]+, 0 bytes into an object of 64 bytes: an access of 72"),
    ("a reduction half in place", "shmem_long_sum_reduce(SHMEM_TEAM_WORLD, heap + 1, heap, 4)", "shmem_long_sum_reduce: arguments dest (0x[0-9a-f]+, 32 bytes) and source"),
    ("a broadcast in place", "shmem_long_broadcast(SHMEM_TEAM_WORLD, heap, heap, 4, 0)", "shmem_long_broadcast: arguments dest (0x[0-9a-f]+, 32 bytes) and source"),
    ("all-to-all into freed memory", "shmem_long_alltoall(SHMEM_TEAM_WORLD, freed, longs, 1)", "shmem_long_alltoall: argument dest is 0x[0-9a-f]+, in memory of the symmetric heap that is not allocated"),
    ("a collect that fills more than dest", "shmem_long_collect(SHMEM_TEAM_WORLD, heap, longs, 3)", "shmem_long_collect: argument dest is 0x[0-9a-f]+, 0 bytes into an object of 64 bytes: an access of 72 bytes leaves it"),
    ("a collect into its own source", "shmem_long_collect(SHMEM_TEAM_WORLD, heap, heap + 2, 2)", "shmem_long_collect: arguments dest (0x[0-9a-f]+, 48 bytes) and source (0x[0-9a-f]+, 16 bytes) overlap"),
    ("a collect of an active set that fills more", "shmem_collect64(heap, longs, 2 + me, 0, 0, 3, psync)", "shmem_collect64: argument dest is 0x[0-9a-f]+, 0 bytes into an object of 64 bytes: an access of 72 bytes leaves it"),
    ("a barrier that one leaves out", "if (me != 1) shmem_barrier_all(); else exit(0)", "shmem_barrier_all waits for PE 1, which has finalized"),
    ("a barrier of an active set that one leaves out", "if (me != 1) shmem_barrier(0, 0, 3, psync); else exit(0)", "shmem_barrier waits for PE 1, which has finalized"),
]

# The same on active sets, where only the first member reports.
ACTIVE_SETS = [
    ("active sets: barrier against sync", "me == 1 ? shmem_sync(0, 0, 3, psync) : shmem_barrier(0, 0, 3, psync)", "shmem_barrier: PE 1 is in shmem_sync instead: all members"),
    ("active sets: another order", "if (me == 2) shmem_barrier(0, 0, 3, psync), shmem_sync(0, 0, 3, other); else shmem_sync(0, 0, 3, other), shmem_barrier(0, 0, 3, psync)", "shmem_sync: PE 2 is in shmem_barrier instead"),
    ("active sets: different counts", "shmem_fcollect64(heap, longs, 1 + (me == 2), 0, 0, 3, psync)", "shmem_fcollect64: argument nelems (in bytes) is 8 here, but 16 on PE 2"),
    ("active sets: different strides", "shmem_alltoalls32(heap, longs, 1 + (me == 1), 1, 2, 0, 0, 3, psync)", "shmem_alltoalls32: argument dst is 1 here, but 2 on PE 1"),
    ("active sets: different roots", "shmem_broadcast64(heap, longs, 4, me == 2, 0, 0, 3, psync)", "shmem_broadcast64: argument PE_root is 0 here, but 1 on PE 2"),
    ("active sets: different sizes of elements", "if (me == 1) shmem_collect32(heap, longs, 2, 0, 0, 3, psync); else shmem_collect64(heap, longs, 1, 0, 0, 3, psync)", "shmem_collect64: PE 1 is in shmem_collect32 instead"),
    ("active sets: different types", "if (me == 1) shmem_longlong_sum_to_all((long long *)heap, (long long *)longs, 1, 0, 0, 3, (long long *)longs + 8, psync); else shmem_long_sum_to_all(heap, longs, 1, 0, 0, 3, longs + 8, psync)", "shmem_long_sum_to_all: PE 1 is in shmem_longlong_sum_to_all instead"),
    ("active sets: different pSync", "shmem_barrier(0, 0, 3, me == 1 ? other : psync)", "shmem_barrier: argument pSync (as an offset) is -[0-9]+ here, but -[0-9]+ on PE 1"),
    ("active sets: pSync of another value", "for (int i = 0; me == 1 && i < SHMEM_SYNC_SIZE; i++) psync[i] = -1; shmem_barrier(0, 0, 3, psync)", "shmem_barrier: argument pSync is 0x[0-9a-f]+, whose element 0 is -1, not SHMEM_SYNC_VALUE"),
    ("active sets: one element of pSync", "if (me == 1) psync[40] = 7; shmem_long_sum_to_all(heap, heap, 1, 0, 0, 3, longs, psync)", "shmem_long_sum_to_all: argument pSync is 0x[0-9a-f]+, whose element 40 is 7, not SHMEM_SYNC_VALUE"),
    ("active sets: a part of the PEs", "if (me > 0) { if (me == 2) shmem_sync(1, 0, 2, psync); else shmem_barrier(1, 0, 2, psync); } else pause()", "shmem_barrier: PE 2 is in shmem_sync instead"),
]

# The call that is late, and its place.
LATE = [
    ("a PE that comes late is named once, and waited for", "shmem_barrier_all"),
    ("a PE that comes late to an active set, too", "shmem_sync"),
]

PROGRAM = """
#include <shmem.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static int word;
static long longs[16] __attribute__((aligned(16))), psync[SHMEM_SYNC_SIZE], other[SHMEM_SYNC_SIZE], lock, never;
static uint64_t signal_word;
static long *heap, *freed;
static char *odd;
static shmem_ctx_t private;
static void put(void) { shmem_int_p(&word, 1, 0); }
static void put_private(void) { shmem_ctx_int_p(private, &word, 1, 0); }
static void set_lock(void) { shmem_set_lock(&lock); }
static void sync_two(void) { shmem_sync(1, 0, 2, psync); }
static void wait(void) { shmem_long_wait_until(&never, SHMEM_CMP_NE, 0); }
static void allocate(void) { shmem_free(shmem_malloc(8)); }

static void *thread(void *routine) {
    (*(void (**)(void))routine)();
    return NULL;
}

static void in_thread(void (*routine)(void)) {
    pthread_t id;
    pthread_create(&id, NULL, thread, &routine);
    pthread_join(id, NULL);
}

/* One thread is in a routine, and will be for long, when this one calls another. */
static void beside(void (*routine)(void), void (*call)(void)) {
    pthread_t id;
    pthread_create(&id, NULL, thread, &routine);
    usleep(300000);
    call();
}

/* Something of everything, all of it right. */
static void correct(int me, int npes) {
    int next = (me + 1) %% npes;
    long before[8];
    shmem_team_t team;
    shmem_ctx_t ctx;
    shmem_long_put(heap, longs, 8, next);
    shmem_long_get(before, heap, 8, next);
    shmem_long_iput(heap + 7, longs, -1, 1, 8, next);
    shmem_putmem(odd + 12, "x", 1, next);
    shmem_long_put(heap, heap + 4, 4, me);
    shmem_putmem(heap, NULL, 0, next);
    shmem_long_atomic_add(longs, 1, next);
    shmem_barrier_all();
    shmem_long_put_signal(heap, longs, 8, &signal_word, 1, SHMEM_SIGNAL_ADD, next);
    shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, 1);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
    shmem_team_create_ctx(team, SHMEM_CTX_PRIVATE, &ctx);
    shmem_ctx_int_p(ctx, &word, 1, next);
    shmem_ctx_quiet(ctx);
    shmem_ctx_destroy(ctx);
    shmem_team_sync(team);
    shmem_long_sum_reduce(team, heap, heap, 8);
    shmem_long_fcollect(team, longs, heap, 2);
    shmem_long_broadcast(team, heap, longs, 8, npes - 1);
    shmem_long_alltoalls(team, longs, heap, 2, 1, 2);
    shmem_long_collect(team, longs, heap, (size_t)me);
    shmem_long_sum_exscan(team, heap, heap, 3);
    shmem_team_destroy(team);
    shmem_broadcast64(heap, longs, 2, 0, 0, 0, npes, psync);
    shmem_collect64(longs, heap, me == 0, 0, 0, npes, psync);
    shmem_long_sum_to_all(heap, heap, 4, 0, 0, npes, longs, psync);
    if (me %% 2 == 0)
        shmem_barrier(0, 1, (npes + 1) / 2, psync);
    shmem_sync(0, 0, npes, psync);
    heap = shmem_realloc(heap, 60);
    shmem_putmem((char *)heap + 56, longs, 4, next);
    shmem_free(heap);
    shmem_free(NULL);
}

int main(int argc, char **argv) {
    int which = atoi(argv[argc - 1]), provided;
    shmem_init_thread(which == %d ? SHMEM_THREAD_MULTIPLE : which >= %d && which < %d ? SHMEM_THREAD_SERIALIZED : SHMEM_THREAD_SINGLE, &provided);
    int me = shmem_my_pe();
    heap = shmem_malloc(64);
    odd = shmem_malloc(13);
    freed = shmem_malloc(64);
    shmem_free(freed);
    shmem_ctx_create(SHMEM_CTX_PRIVATE, &private);
    if (which < 0)
        correct(me, shmem_n_pes());
    else if (which < %d && me == 1)
        switch (which) {
%s
        }
    else if (which >= %d)
        switch (which) {
%s
        case %d: sleep(me == 1 ? 2 : 0); break;
        case %d: sleep(me == 1 ? 2 : 0); shmem_sync(0, 0, 3, psync); break;
        default: shmem_finalize(); shmem_finalize();
        }
    (void)put, (void)put_private, (void)set_lock, (void)sync_two, (void)wait, (void)allocate, (void)beside;
    shmem_barrier_all();
    return 0;
}
"""

# Frees some of its objects. The rest is reported with one line for each place of the program, for objects that all PEs
# have made only on PE 0.
LEFT = """
#include <shmem.h>
static long lock, cleared;
static __attribute__((noinline)) void *make(int i) { return shmem_malloc(64 * i); }
int main(void) {
    shmem_team_t team, destroyed;
    shmem_ctx_t ctx, with_team;
    shmem_init();
    for (int i = 1; i < 5; i++)
        make(i);
    void *moved = shmem_realloc(shmem_calloc(3, 8), 1000);
    shmem_free(shmem_malloc(8));
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &destroyed);
    shmem_team_create_ctx(destroyed, 0, &with_team);
    shmem_team_destroy(destroyed);
    if (shmem_my_pe() == 1) {
        shmem_ctx_create(0, &ctx);
        shmem_set_lock(&lock);
    }
    shmem_set_lock(&cleared);
    shmem_clear_lock(&cleared);
    return !moved;
}
"""
LISTED = [
    r"PE 0 .*: not freed at the end of the job: 4 objects, 640 bytes in all \(the first is 0x[0-9a-f]+\), made in left\+0x[0-9a-f]+ \(make\)",
    r"PE 0 .*: not freed at the end of the job: 1 object, 1000 bytes \(0x[0-9a-f]+\), made in left\+0x[0-9a-f]+ \(main\)",
    r"PE 0 .*: not destroyed at the end of the job: 1 team \(0x[0-9a-f]+\), made in left\+0x[0-9a-f]+ \(main\)",
    r"PE 1 .*: not destroyed at the end of the job: 1 context \(0x[0-9a-f]+\), made in left\+0x[0-9a-f]+ \(main\)",
    r"PE 1 .*: still held at the end of the job: 1 lock \(0x[0-9a-f]+\), set in left\+0x[0-9a-f]+ \(main\)",
]


def list_what_is_left(expect):
    left = lines.Expectation("left", LEFT)
    for environment, patterns in (CHECKED, LISTED), ({}, []):
        run = left.run(0, 2, environment=environment)
        said = sorted(line for line in run.stderr.splitlines() if " heap slots of " not in line)
        good = run.returncode == 0 and len(said) == len(patterns) and all(
            any(re.fullmatch("weft: " + pattern, line) for line in said) for pattern in patterns)
        expect.verdict(f"what was not freed, {len(patterns)} lines", not good and f"status {run.returncode}", run)
    shutil.rmtree(left.work)


CHECKED = {"SHMEM_DEBUG": "1"}
names = [name for name, _, _ in ACCESSES]
multiple = names.index("another thread's private context")
serialized = [number for number, (_, statement, _) in enumerate(ACCESSES) if "beside(" in statement]
count = len(ACCESSES)
together = COLLECTIVES + ACTIVE_SETS
expect = lines.Expectation("checked", PROGRAM % (
    multiple, serialized[0], serialized[-1] + 1, count, lines.switch(ACCESSES, 0), count, lines.switch(together, count), count + len(together), count + len(together) + 1))
FAR = "WEFT_PRETEND_HOSTS" in os.environ
for case in ACCESSES:
    if FAR and "shmem_ptr(" in case[1]:
        expect.skip(case, "shmem_ptr has no address of a far PE's memory")
        continue
    expect.line(case, pes=3, speaker=r"PE 1 \(pid \d+\): ", environment=CHECKED)
for case in COLLECTIVES:
    expect.first_line(case, pes=3, environment=CHECKED)
for case in ACTIVE_SETS:
    expect.line(case, pes=3, speaker=r"PE [01] \(pid \d+\): ", environment=CHECKED)
for extra, (what, call) in enumerate(LATE):
    run = expect.run(count + len(together) + extra, 3, environment={**CHECKED, "WEFT_HANG_SECONDS": "0.5"})
    said = lines.spoken(run)
    late = rf"{call} at \S+ (main) has waited \S+ s for PE 1 (pid \d+), which is in no call of Weft that lasts (its own code, or a loop of tests or fetches): it sleeps"
    good = run.returncode == 0 and len(said) == 1 and lines.names(said[0], late)
    expect.verdict(what, not good and f"status {run.returncode}, {len(said)} lines", run)
run = expect.run(count + len(together) + len(LATE), 3, environment=CHECKED)
said = lines.spoken(run)
good = run.returncode == 71 and said and all("shmem_finalize: called after shmem_finalize" in line for line in said)
expect.verdict("a second finalize", not good and f"status {run.returncode}", run)
for pes in 1, 3:
    run = expect.run(-1, pes, environment=CHECKED)
    expect.verdict(f"a correct program in checked mode, {pes} PEs", run.returncode != 0 and f"status {run.returncode}", run)
list_what_is_left(expect)
expect.finish()
