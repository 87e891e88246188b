#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Misuse ends the job with status 71 and one line that names routine, argument, value and remedy.

One program misuses the library in the way that its argument names; PE 1 of 3 does so, while the others are in a
barrier. The job prints only this line, except that the others say why they end. Far: also."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lines

# name, statement of PE 1, a pattern that the line must contain.
CASES = [
    ("a PE above the last", "shmem_int_p(&word, 1, 3)", "shmem_int_p: argument pe is 3, but the job has 3 PEs: pass 0 to 2"),
    ("a negative PE", "shmem_long_put(longs, longs, 2, -1)", "shmem_long_put: argument pe is -1"),
    ("a PE of no member", "shmem_ctx_int_p(pair, &word, 1, 2)", "shmem_ctx_int_p: argument pe is 2, but the context's team has 2 PEs"),
    ("a PE of an atomic", "shmem_long_atomic_add(longs, 1, 99)", "shmem_long_atomic_add: argument pe is 99"),
    ("a PE of a signal", "shmem_signal_set(&signal_word, 1, 7)", "shmem_signal_set: argument pe is 7"),
    ("a PE of pe_quiet", "int pes[] = {0, 5}; shmem_pe_quiet(pes, 2)", "shmem_pe_quiet: argument pe is 5"),
    ("dest on the stack", "int here; shmem_int_p(&here, 1, 0)", "shmem_int_p: argument dest is 0x[0-9a-f]+, which is not symmetric over 4 bytes"),
    ("source on the stack", "long here[4]; shmem_long_get(longs, here, 4, 0)", "shmem_long_get: argument source is 0x[0-9a-f]+, which is not symmetric over 32 bytes"),
    ("an atomic on malloc's memory", "int *p = malloc(4); shmem_int_atomic_inc(p, 0)", "shmem_int_atomic_inc: argument dest is 0x[0-9a-f]+, which is not symmetric"),
    ("fetch from the stack", "int here = 0; shmem_int_atomic_fetch(&here, 0)", "shmem_int_atomic_fetch: argument source is"),
    ("beyond the heap's end", "shmem_putmem(heap, longs, (size_t)1 << 45, 0)", "shmem_putmem: argument dest is"),
    ("a length that overflows", "shmem_long_put(heap, longs, SIZE_MAX / 4, 0)", "shmem_long_put: argument dest is 0x[0-9a-f]+, which is not symmetric over 18446744073709551615 bytes"),
    ("a stride that leaves the heap", "shmem_long_iput(heap, longs, -2, 1, 64, 0)", "shmem_long_iput: argument dest is 0x[0-9a-f]+, which is not symmetric over 1016 bytes"),
    ("a NULL source behind a stride", "shmem_long_iget(longs, NULL, 1, -2, 3, 0)", "shmem_long_iget: argument source is NULL"),
    ("a stride that overflows", "shmem_long_iget(longs, heap, 1, PTRDIFF_MAX / 2, 3, 0)", "shmem_long_iget: argument source is 0x[0-9a-f]+, which is not symmetric over 18446744073709551615 bytes"),
    ("as many blocks as wrap around", "shmem_long_iput(heap, longs, 1, 1, (SIZE_MAX >> 3) + 2, 0)", "shmem_long_iput: argument dest is 0x[0-9a-f]+, which is not symmetric over 18446744073709551615 bytes"),
    ("a local stride that overflows", "shmem_long_iput(heap, longs, 1, PTRDIFF_MAX / 2, 3, 0)", "shmem_long_iput: argument sst is 4611686018427387903: pass a stride with which the elements fit"),
    ("signal on the stack", "uint64_t here; shmem_int_put_signal(&word, &word, 1, &here, 1, SHMEM_SIGNAL_SET, 0)", "shmem_int_put_signal: argument sig_addr is"),
    ("payload on the stack", "int here; shmem_int_put_signal(&here, &word, 1, &signal_word, 1, SHMEM_SIGNAL_SET, 0)", "shmem_int_put_signal: argument dest is"),
    ("a NULL source", "shmem_int_put(&word, NULL, 1, 0)", "shmem_int_put: argument source is NULL"),
    ("a NULL dest", "shmem_int_p(NULL, 1, 0)", "shmem_int_p: argument dest is NULL"),
    ("a NULL destination of get", "shmem_getmem(NULL, longs, 8, 0)", "shmem_getmem: argument dest is NULL"),
    ("a NULL fetch", "shmem_int_atomic_fetch_nbi(NULL, &word, 0)", "shmem_int_atomic_fetch_nbi: argument fetch is NULL"),
    ("a NULL handle", "shmem_ctx_create(0, NULL)", "shmem_ctx_create: argument ctx is NULL"),
    ("a comparison that is none", "shmem_int_wait_until(&word, 77, 1)", "shmem_int_wait_until: argument cmp is 77: pass one of SHMEM_CMP_EQ"),
    ("a comparison in a set", "shmem_int_test_any(&word, 1, NULL, 0, 1)", "shmem_int_test_any: argument cmp is 0"),
    ("a wait on the stack", "int here = 0; shmem_int_wait_until(&here, SHMEM_CMP_EQ, 1)", "shmem_int_wait_until: argument ivar is"),
    ("a signal operation that is none", "shmem_int_put_signal(&word, &word, 1, &signal_word, 1, 9, 0)", "shmem_int_put_signal: argument sig_op is 9: pass SHMEM_SIGNAL_SET"),
    ("the invalid context", "shmem_ctx_int_p(SHMEM_CTX_INVALID, &word, 1, 0)", "shmem_ctx_int_p: argument ctx is 0x0: pass SHMEM_CTX_DEFAULT or a context"),
    ("a destroyed context", "shmem_ctx_destroy(pair); shmem_ctx_int_p(pair, &word, 1, 0)", "shmem_ctx_int_p: argument ctx is 0x[0-9a-f]+: pass SHMEM_CTX_DEFAULT or"),
    ("a wild context", "shmem_ctx_quiet((shmem_ctx_t)longs)", "shmem_ctx_quiet: argument ctx is 0x[0-9a-f]+: pass SHMEM_CTX_DEFAULT or"),
    ("the default context destroyed", "shmem_ctx_destroy(SHMEM_CTX_DEFAULT)", "shmem_ctx_destroy: argument ctx is 0x1: pass a context"),
    ("a session of no context", "shmem_ctx_session_start((shmem_ctx_t)longs, 0, NULL, 0)", "shmem_ctx_session_start: argument ctx is 0x[0-9a-f]+: pass SHMEM_CTX_DEFAULT or"),
    ("a session option that is none", "shmem_ctx_session_start(SHMEM_CTX_DEFAULT, 64, NULL, 0)", "shmem_ctx_session_start: argument options is 64: pass 0 or SHMEM_CTX_SESSION_BATCH"),
    ("a session mask that is none", "shmem_ctx_session_start(SHMEM_CTX_DEFAULT, 0, NULL, 6)", "shmem_ctx_session_start: argument config_mask is 6: pass 0 or SHMEM_CTX_SESSION_TOTAL_OPS"),
    ("a session without the configuration it names", "shmem_ctx_session_start(SHMEM_CTX_DEFAULT, 0, NULL, 1)", "shmem_ctx_session_start: argument config is NULL"),
    ("a destroyed context's session", "shmem_ctx_destroy(pair); shmem_ctx_session_stop(pair)", "shmem_ctx_session_stop: argument ctx is 0x"),
    ("a lock on the stack", "long here = 0; shmem_set_lock(&here)", "shmem_set_lock: argument lock is 0x[0-9a-f]+, which is not symmetric over 8 bytes"),
    ("a lock of NULL", "shmem_test_lock(NULL)", "shmem_test_lock: argument lock is NULL"),
    ("a lock that nobody holds", "shmem_clear_lock(longs)", "shmem_clear_lock: argument lock is 0x[0-9a-f]+, which this PE does not hold"),
    ("a predefined team destroyed", "shmem_team_destroy(SHMEM_TEAM_WORLD)", "shmem_team_destroy: argument team is 0x1: pass a team"),
    ("a root that is no member", "shmem_broadcastmem(SHMEM_TEAM_WORLD, heap, heap, 8, 3)", "shmem_broadcastmem: argument PE_root is 3, but there are 3 members: pass 0 to 2"),
    ("a collective's dest on the stack", "long here[6]; shmem_long_fcollect(SHMEM_TEAM_WORLD, here, longs, 2)", "shmem_long_fcollect: argument dest is 0x[0-9a-f]+, which is not symmetric over 48 bytes"),
    ("a collective's source on the stack", "long here[2] = {0}; shmem_long_sum_reduce(SHMEM_TEAM_WORLD, longs, here, 2)", "shmem_long_sum_reduce: argument source is 0x[0-9a-f]+, which is not symmetric over 16 bytes"),
    ("a collective whose length overflows", "shmem_long_alltoall(SHMEM_TEAM_WORLD, heap, longs, SIZE_MAX / 16)", "shmem_long_alltoall: argument dest is 0x[0-9a-f]+, which is not symmetric over 18446744073709551615 bytes"),
    ("a stride of nothing", "shmem_long_alltoalls(SHMEM_TEAM_WORLD, heap, longs, 1, 0, 1)", "shmem_long_alltoalls: argument sst is 0: pass 1 or more"),
    ("a negative reduction", "shmem_int_sum_to_all(&word, &word, -1, 0, 0, 3, &word, psync)", "shmem_int_sum_to_all: argument dest is 0x[0-9a-f]+, which is not symmetric"),
    ("an active set beyond the last PE", "shmem_barrier(1, 1, 2, psync)", "shmem_barrier: argument PE_size is 2: pass 1 to the number of PEs from PE_start on"),
    ("an active set without the caller", "shmem_sync(0, 1, 2, psync)", "shmem_sync: argument PE_start is 0: pass a set that the calling PE is a member of"),
    ("pSync on the stack", "long here[SHMEM_SYNC_SIZE] = {0}; shmem_sync(0, 0, 3, here)", "shmem_sync: argument pSync is 0x[0-9a-f]+, which is not symmetric over 512 bytes"),
]

# Statements for a program of their own: before, after and beside the job. The status is that of one PE alone.
ALONE = [
    ("before shmem_init", "shmem_int_p(&word, 1, 0)", "shmem_int_p: called before shmem_init: call shmem_init first"),
    ("a barrier before shmem_init", "shmem_barrier_all()", "shmem_barrier_all: called before shmem_init"),
    ("malloc before shmem_init", "shmem_malloc(8)", "shmem_malloc: called before shmem_init"),
    ("my_pe before shmem_init", "shmem_my_pe()", "shmem_my_pe: called before shmem_init"),
    ("an atomic before shmem_init", "shmem_int_atomic_inc(&word, 0)", "shmem_int_atomic_inc: called before shmem_init"),
    ("a wait before shmem_init", "shmem_int_wait_until(&word, SHMEM_CMP_EQ, 0)", "shmem_int_wait_until: called before shmem_init"),
    ("a collective before shmem_init", "shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &word, &word, 1)", "shmem_int_sum_reduce: called before shmem_init"),
    ("after shmem_finalize", "shmem_init(); shmem_finalize(); shmem_int_p(&word, 1, 0)", "shmem_int_p: called after shmem_finalize"),
    ("quiet after shmem_finalize", "shmem_init(); shmem_finalize(); shmem_quiet()", "shmem_quiet: called after shmem_finalize"),
    ("finalize before shmem_init", "shmem_finalize()", "shmem_finalize: called before shmem_init"),
    ("free twice", "shmem_init(); heap = shmem_malloc(64); shmem_free(heap); shmem_free(heap)", "shmem_free: argument ptr is 0x[0-9a-f]+, an object of the symmetric heap that was freed before"),
    ("free twice, and it is part of a larger free run", "shmem_init(); void *before = shmem_malloc(64); heap = shmem_malloc(64); shmem_free(heap); shmem_free(before); shmem_free(heap)", "shmem_free: argument ptr is 0x[0-9a-f]+, an object of the symmetric heap that was freed before"),
    ("realloc of a part", "shmem_init(); heap = shmem_malloc(256); shmem_realloc(heap + 16, 512)", "shmem_realloc: argument ptr is 0x[0-9a-f]+, 128 bytes into an object of 256 bytes of the symmetric heap"),
    ("free of a part", "shmem_init(); heap = shmem_malloc(256); shmem_free(heap + 16)", "shmem_free: argument ptr is 0x[0-9a-f]+, 128 bytes into an object of 256 bytes of the symmetric heap"),
    ("free of what was freed and is part of another", "shmem_init(); void *before = shmem_malloc(64); heap = shmem_malloc(64); shmem_free(heap); shmem_free(before); before = shmem_malloc(4096); shmem_free(heap)", "shmem_free: argument ptr is 0x[0-9a-f]+, 64 bytes into an object of 4096 bytes"),
    ("free of nothing that was given out", "shmem_init(); heap = shmem_malloc(64); shmem_free(heap + 64)", "shmem_free: argument ptr is 0x[0-9a-f]+, in the symmetric heap, where no object is or was"),
    ("free of malloc's memory", "shmem_init(); shmem_free(malloc(8))", "shmem_free: argument ptr is 0x[0-9a-f]+, which is not in this PE's part of the symmetric heap"),
    ("put in a forked child", "in_child(put)", "shmem_int_p: called in a forked child"),
    ("get of the heap in a forked child", "in_child(get)", "shmem_int_g: called in a forked child"),
    ("barrier in a forked child", "in_child(shmem_barrier_all)", "shmem_barrier_all: called in a forked child"),
    ("init in a forked child", "in_child(shmem_init)", "shmem_init: called in a forked child"),
]

PROGRAM = """
#include <shmem.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static int word;
static long longs[16], psync[SHMEM_SYNC_SIZE];
static uint64_t signal_word;
static long *heap;
static shmem_ctx_t pair;
static void put(void) { shmem_int_p(&word, 1, 0); }
static void get(void) { shmem_int_g((int *)heap, 0); }

/* The status of a child that calls `routine` is this process's. */
static void in_child(void (*routine)(void)) {
    int status;
    shmem_init();
    heap = shmem_malloc(64);
    pid_t child = fork();
    if (child == 0) {
        routine();
        _exit(0);
    }
    waitpid(child, &status, 0);
    shmem_barrier_all();
    shmem_finalize();
    exit(WEXITSTATUS(status));
}

static void job(int which) {
    shmem_team_t team;
    shmem_init();
    heap = shmem_malloc(sizeof longs);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
    if (team != SHMEM_TEAM_INVALID)
        shmem_team_create_ctx(team, 0, &pair);
    if (shmem_my_pe() != 1)
        shmem_barrier_all();
    switch (which) {
%s
    }
    shmem_barrier_all();
    shmem_finalize();
}

int main(int argc, char **argv) {
    int which = atoi(argv[argc - 1]);
    switch (which) {
%s
    default: job(which);
    }
    (void)put, (void)get;
    return 0;
}
"""


expect = lines.Expectation("misuse", PROGRAM % (lines.switch(CASES, 0), lines.switch(ALONE, len(CASES))))
for case in CASES:
    expect.line(case, pes=3, speaker=r"PE 1 \(pid \d+\): ")
for case in ALONE:
    expect.line(case, pes=1, speaker="")
expect.finish()
