#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Misuse of GPU memory ends the job with one line that names routine, argument, value and remedy; shmemx_ calls refuse
invalid arguments with text, on every PE.

One program misuses the library in the way that its argument names; PE 1 of 3 does so, while the others are in a
barrier, or all PEs do. Checked mode finds more. On the pretended driver."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "api"))
import lines

ENVIRONMENT = {"LD_LIBRARY_PATH": str(lines.BUILD / "tests/gpu/driver")}
CHECKED = dict(ENVIRONMENT, SHMEM_DEBUG="1")

# name, statement of PE 1, a pattern that the line must contain.
CASES = [
    ("a PE above the last", "shmem_int_p((int *)gpu, 1, 3)", "shmem_int_p: argument pe is 3, but the job has 3 PEs: pass 0 to 2"),
    ("beyond the device heap", "shmem_putmem(gpu, longs, (size_t)1 << 45, 0)", "shmem_putmem: argument dest is 0x[0-9a-f]+, which is not symmetric over"),
    ("a stride that leaves it", "shmem_long_iput(gpu, longs, -1 << 20, 1, 64, 0)", "shmem_long_iput: argument dest is 0x[0-9a-f]+, which is not symmetric over 528482312 bytes"),
    ("a local stride that overflows", "shmem_long_iget(longs, gpu, PTRDIFF_MAX / 2, 1, 3, 0)", "shmem_long_iget: argument dst is 4611686018427387903: pass a stride with which the elements fit"),
    ("a PE of an atomic", "shmem_long_atomic_add(gpu, 1, 99)", "shmem_long_atomic_add: argument pe is 99"),
    ("a PE of a signal", "shmem_signal_set((uint64_t *)gpu, 1, 7)", "shmem_signal_set: argument pe is 7"),
    ("a payload of the GPU for the stack", "long here; shmem_long_put_signal(&here, gpu, 1, (uint64_t *)gpu, 1, SHMEM_SIGNAL_SET, 0)", "shmem_long_put_signal: argument dest is"),
    ("a signal on the stack", "uint64_t here; shmem_long_put_signal(gpu, longs, 1, &here, 1, SHMEM_SIGNAL_SET, 0)", "shmem_long_put_signal: argument sig_addr is"),
    ("a signal operation that is none", "shmem_long_put_signal(gpu, longs, 1, (uint64_t *)gpu, 1, 9, 0)", "shmem_long_put_signal: argument sig_op is 9"),
    ("a NULL source", "shmem_long_put(gpu, NULL, 1, 0)", "shmem_long_put: argument source is NULL"),
    ("a NULL destination of get", "shmem_getmem(NULL, gpu, 8, 0)", "shmem_getmem: argument dest is NULL"),
    ("a comparison that is none", "shmem_long_wait_until(gpu, 77, 1)", "shmem_long_wait_until: argument cmp is 77"),
    ("another PE's pointer", "shmem_long_p(shmemx_ptr(SHMEMX_SPACE_DEVICE, gpu, 2), 1, 0)", "shmem_long_p: argument dest is 0x[0-9a-f]+, in the memory of another PE, as returned by shmem_ptr"),
    ("a lock", "shmem_set_lock(gpu)", "shmem_set_lock: argument lock is 0x[0-9a-f]+, in GPU memory, but this call needs host memory"),
    ("a lock that is tested", "shmem_test_lock(gpu)", "shmem_test_lock: argument lock is 0x[0-9a-f]+, in GPU memory"),
    ("a pSync", "shmem_sync(0, 0, 3, gpu)", "shmem_sync: argument pSync is 0x[0-9a-f]+, in GPU memory"),
    ("a collective's source on the stack", "long here[2] = {0}; shmem_long_sum_reduce(SHMEM_TEAM_WORLD, gpu, here, 2)", "shmem_long_sum_reduce: argument source is 0x[0-9a-f]+, which is not symmetric over 16 bytes"),
    ("a collective beyond the device heap", "shmem_long_alltoall(SHMEM_TEAM_WORLD, gpu, gpu, SIZE_MAX / 64)", "shmem_long_alltoall: argument dest is"),
    ("CUDA memory that is not symmetric", "shmem_long_p((long *)((char *)shmemx_ptr(SHMEMX_SPACE_DEVICE, gpu, 1) + (1l << 34)), 1, 0)", "shmem_long_p: argument dest is 0x[0-9a-f]+, which is not symmetric"),
]

# The same in checked mode.
ACCESSES = [
    ("put to freed memory", "shmem_long_p(freed, 1, 0)", "shmem_long_p: argument dest is 0x[0-9a-f]+, in memory of the symmetric heap that is not allocated"),
    ("an atomic on freed memory", "shmem_long_atomic_fetch_add(freed, 1, 2)", "shmem_long_atomic_fetch_add: argument dest is"),
    ("a source in freed memory", "shmem_long_put(longs, freed, 1, 0)", "shmem_long_put: argument source is"),
    ("one element too many", "long here[9] = {0}; shmem_long_put(gpu, here, 9, 0)", "argument dest is 0x[0-9a-f]+, 0 bytes into an object of 64 bytes: an access of 72 bytes leaves it"),
    ("a stride that leaves the object", "shmem_long_iput(gpu, longs, 3, 1, 4, 0)", "shmem_long_iput: argument dest is 0x[0-9a-f]+, 0 bytes into an object of 64 bytes: an access of 80 bytes"),
    ("a misaligned dest", "shmem_int_p((int *)((char *)gpu + 1), 1, 0)", "shmem_int_p: argument dest is 0x[0-9a-f]+, not aligned to 4 bytes"),
    ("a misaligned fetch", "shmem_long_atomic_fetch_nbi((long *)((char *)gpu + 4), longs, 0)", "shmem_long_atomic_fetch_nbi: argument fetch is"),
    ("overlap with itself", "shmem_long_put(gpu + 1, gpu, 3, 1)", "shmem_long_put: arguments dest (0x[0-9a-f]+, 24 bytes) and source (0x[0-9a-f]+, 24 bytes) overlap"),
    ("overlap of payload and signal", "shmem_long_put_signal(gpu, longs, 8, (uint64_t *)gpu + 2, 1, SHMEM_SIGNAL_SET, 0)", "shmem_long_put_signal: arguments dest (0x[0-9a-f]+, 64 bytes) and sig_addr"),
]

# Statements of all PEs, in checked mode; the line of one of them.
COLLECTIVES = [
    ("malloc in different spaces", "shmemx_malloc(me == 1 ? SHMEMX_SPACE_DEVICE : SHMEMX_SPACE_HOST, 64)", "shmemx_malloc: argument space is [01] here, but [01] on PE"),
    ("free in different spaces", "shmem_free(me == 2 ? (void *)gpu : (void *)heap)", ["shmem_free: argument space is", "shmem_free: argument ptr (offset in the heap) is"]),
    ("a reduction that leaves its object", "shmem_long_max_reduce(SHMEM_TEAM_WORLD, gpu, longs, 9)", "shmem_long_max_reduce: argument dest is 0x[0-9a-f]+, 0 bytes into an object of 64 bytes: an access of 72"),
    ("a reduction half in place", "shmem_long_sum_reduce(SHMEM_TEAM_WORLD, gpu + 1, gpu, 4)", "shmem_long_sum_reduce: arguments dest (0x[0-9a-f]+, 32 bytes) and source"),
    ("free twice", "shmem_free(gpu); shmem_free(gpu)", "shmem_free: argument ptr is 0x[0-9a-f]+, an object of the symmetric heap of GPU memory that was freed before"),
    ("the first malloc in different spaces", "shmemx_malloc(me == 1 ? SHMEMX_SPACE_DEVICE : SHMEMX_SPACE_HOST, 64)", "shmemx_malloc: argument space is [01] here, but [01] on PE"),
]

PROGRAM = """
#include <shmemx.h>
#include <stdlib.h>
static long longs[16] __attribute__((aligned(16)));
static long *heap, *gpu, *freed;

static void one(int which) {
    switch (which) {
%s
    }
}

static void all(int which, int me) {
    (void)me;
    switch (which) {
%s
    }
}

static void allocate(void) {
    heap = shmem_malloc(64);
    gpu = shmemx_malloc(SHMEMX_SPACE_DEVICE, 64);
    freed = shmemx_malloc(SHMEMX_SPACE_DEVICE, 64);
    shmem_free(freed);
}

int main(int argc, char **argv) {
    int which = atoi(argv[argc - 1]);
    shmem_init();
    if (which < %d) /* the last one makes the first allocation */
        allocate();
    if (shmem_my_pe() == 1)
        one(which);
    all(which, shmem_my_pe());
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
"""

if not (lines.BUILD / "tests/gpu/driver/libcuda.so.1").exists():
    print("1..0 # SKIP the pretended driver is not built")
    sys.exit(0)
first = len(CASES) + len(ACCESSES)
expect = lines.Expectation("gpu-misuse", PROGRAM % (lines.switch(CASES + ACCESSES, 0), lines.switch(COLLECTIVES, first), first + len(COLLECTIVES) - 1))
for case in CASES:
    expect.line(case, 3, "PE 1 ", ENVIRONMENT)
for case in ACCESSES:
    expect.line(case, 3, "PE 1 ", CHECKED)
for case in COLLECTIVES:
    expect.first_line(case, 3, CHECKED)
expect.finish()
