/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: barriers and collectives with many more PEs than processors, for
 * tests/faults/limits.t; with the argument "brief" one barrier only. No test of its own. PEs: none
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NELEMS = 3, TURNS = 3 };

static int me, npes;

static void expect(long found, long expected, const char *what) {
    if (found == expected)
        return;
    fprintf(stderr, "PE %d: %s: %ld instead of %ld\n", me, what, found, expected);
    shmem_global_exit(1);
}

/* Element i of what `from` sends to `to`. */
static long element(int from, int to, int i, int turn) {
    return ((long)from * 1000 + to) * 100 + i * 10 + turn;
}

static void exchange_all(long *dest, long *source, int turn) {
    for (int to = 0; to < npes; to++)
        for (int i = 0; i < NELEMS; i++)
            source[to * NELEMS + i] = element(me, to, i, turn);
    shmem_barrier_all();
    expect(shmem_long_alltoall(SHMEM_TEAM_WORLD, dest, source, NELEMS), 0, "alltoall");
    for (int from = 0; from < npes; from++)
        for (int i = 0; i < NELEMS; i++)
            expect(dest[from * NELEMS + i], element(from, me, i, turn), "alltoall's element");
    shmem_barrier_all();
}

static void reduce(long *dest, long *source, int turn) {
    for (int i = 0; i < NELEMS; i++)
        source[i] = me + i * turn;
    shmem_barrier_all();
    expect(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, NELEMS), 0, "sum_reduce");
    for (int i = 0; i < NELEMS; i++)
        expect(dest[i], (long)npes * (npes - 1) / 2 + (long)npes * i * turn, "a sum");
    shmem_barrier_all();
}

static void spread(long *dest, long *source, int turn) {
    int root = (turn * 7 + 5) % npes;
    source[0] = 100 * me + turn;
    shmem_barrier_all();
    expect(shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, 1, root), 0, "broadcast");
    expect(dest[0], 100 * root + turn, "what was broadcast");
    shmem_barrier_all();
    expect(shmem_long_fcollect(SHMEM_TEAM_WORLD, dest, source, 1), 0, "fcollect");
    for (int from = 0; from < npes; from++)
        expect(dest[from], 100 * from + turn, "fcollect's element");
    shmem_barrier_all();
}

int main(int argc, char **argv) {
    (void)argv;
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    size_t nelems = (size_t)npes * NELEMS;
    long *dest = shmem_malloc(nelems * sizeof *dest),
         *source = shmem_malloc(nelems * sizeof *source);
    for (int turn = 0; argc == 1 && turn < TURNS; turn++) {
        exchange_all(dest, source, turn);
        reduce(dest, source, turn);
        spread(dest, source, turn);
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
