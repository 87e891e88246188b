/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: rounds of barriers and collectives, whose results are all checked, for as many
 * milliseconds as the argument says, 0 for no round: for many more PEs than processors (limits.t),
 * and for PEs that are sometimes stopped (stops.t). Not a test by itself. PEs: none */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { NELEMS = 3 };

static int me, npes;

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void expect(long found, long expected, const char *what) {
    if (found == expected)
        return;
    fprintf(stderr, "PE %d: %s: %ld instead of %ld\n", me, what, found, expected);
    shmem_global_exit(1);
}

/* Returns element i of the data from `from` to `to`. */
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

/* Returns PE 0's decision whether to continue. */
static int go_on(long *dest, long *source, long end) {
    source[0] = now_ms() < end;
    expect(shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, 1, 0), 0, "broadcast");
    shmem_barrier_all();
    return dest[0] != 0;
}

int main(int argc, char **argv) {
    long milliseconds = argc > 1 ? atol(argv[1]) : 0, end = now_ms() + milliseconds;
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    size_t nelems = (size_t)npes * NELEMS;
    long *dest = shmem_malloc(nelems * sizeof *dest),
         *source = shmem_malloc(nelems * sizeof *source);
    if (!dest || !source) {
        fprintf(stderr, "PE %d got no symmetric memory for %zu words\n", me, nelems);
        shmem_global_exit(1);
    }
    for (int turn = 0; milliseconds && (turn == 0 || go_on(dest, source, end)); turn++) {
        exchange_all(dest, source, turn);
        reduce(dest, source, turn);
        spread(dest, source, turn);
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
