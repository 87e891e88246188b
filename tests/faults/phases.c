/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: passes through the phases of a job's life one after the other; the tests of this
 * room count the system calls of each phase and strike at them. A phase begins with a write to
 * descriptor -1, which fails without effect but is visible to a tracer. Every PE prints the results
 * of calls that may fail, so that the test can compare the PEs. The argument is the size of the
 * blocks that are shared. Not a test by itself. PEs: none */
#include <errno.h>
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft.h>

enum { SMALL = 1000, LARGE = 9 << 20, NELEMS = 5000, TURNS = 5 };

static long counter, lock;
static float source[NELEMS], dest[NELEMS];

static void begin_phase(const char *name) {
    char mark[64];
    int length = snprintf(mark, sizeof mark, "phase %s", name);
    ssize_t refused = write(-1, mark, (size_t)length);
    (void)refused;
    errno = 0;
}

static void print_result(const char *call, int result) {
    char line[64];
    int length = snprintf(line, sizeof line, "PE %d %s %d\n", shmem_my_pe(), call, result);
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(99);
}

/* Makes one allocation that fits and two that make the heap grow, and frees them. */
static void allocate(void) {
    void *small = shmem_malloc(SMALL), *large = shmem_calloc(1, LARGE);
    print_result("malloc", small != NULL);
    print_result("calloc", large != NULL);
    void *larger = shmem_realloc(large, 2 * (size_t)LARGE);
    print_result("realloc", larger != NULL);
    if (large)
        shmem_free(larger ? larger : large);
    if (small)
        shmem_free(small);
}

static void meet(void) {
    for (int turn = 0; turn < TURNS; turn++) {
        shmem_long_atomic_add(&counter, 1, turn % shmem_n_pes());
        shmem_barrier_all();
        shmem_team_sync(SHMEM_TEAM_WORLD);
    }
}

static void split(void) {
    shmem_team_t half = SHMEM_TEAM_INVALID;
    int result =
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (shmem_n_pes() + 1) / 2, NULL, 0, &half);
    print_result("split", result == 0);
    if (half != SHMEM_TEAM_INVALID) {
        shmem_team_sync(half);
        shmem_team_destroy(half);
    }
}

static void take_turns(void) {
    for (int turn = 0; turn < TURNS; turn++) {
        shmem_set_lock(&lock);
        counter++;
        shmem_clear_lock(&lock);
    }
}

static void collect(void) {
    size_t share = NELEMS / (size_t)shmem_n_pes();
    shmem_broadcast(SHMEM_TEAM_WORLD, dest, source, NELEMS, 0);
    shmem_alltoall(SHMEM_TEAM_WORLD, dest, source, share);
    shmem_sum_reduce(SHMEM_TEAM_WORLD, dest, source, NELEMS);
    shmem_collect(SHMEM_TEAM_WORLD, dest, source, share);
    int result = shmem_sum_inscan(SHMEM_TEAM_WORLD, dest, source, NELEMS);
    print_result("collectives", result);
}

static void reduce(void) {
    int result = weft_all_reduce(SHMEM_TEAM_WORLD, dest, source, NELEMS, WEFT_F32, WEFT_SUM,
                                 WEFT_STREAM_HOST);
    print_result("all_reduce", result);
}

/* Returns whether all PEs succeeded. The caller checks the errno that a call returned. */
static int all_well(const char *call, int error) {
    static int failed, any;
    failed = error != 0;
    if (error)
        fprintf(stderr, "weft: %s\n", weft_last_error());
    shmem_int_max_reduce(SHMEM_TEAM_WORLD, &any, &failed, 1);
    print_result(call, !any);
    return !any;
}

/* Shares a block of each PE with all PEs. */
static void share(size_t bytes) {
    int npes = shmem_n_pes(), pes[npes];
    shmemx_block_t block = NULL;
    shmemx_share_t shared = NULL;
    shmem_team_t team = SHMEM_TEAM_INVALID;
    for (int i = 0; i < npes; i++)
        pes[i] = npes - 1 - i;
    int well = all_well("block", shmemx_block_alloc(SHMEMX_SPACE_HOST, bytes, &block));
    if (well)
        well = all_well("attach", shmemx_share_attach(block, pes, npes, 1, &shared));
    for (int i = 0; i < npes && well; i++)
        memset((char *)shmemx_share_ptr(shared, i) + bytes / 2, 1, bytes / 2);
    if (all_well("team", shmemx_team_create(pes, npes, 1, &team)))
        shmem_team_sync(team);
    shmem_team_destroy(team);
    shmemx_share_release(shared);
    shmemx_block_free(block);
}

int main(int argc, char **argv) {
    begin_phase("init");
    shmem_init();
    begin_phase("malloc");
    allocate();
    begin_phase("barrier");
    meet();
    begin_phase("lock");
    take_turns();
    begin_phase("split");
    split();
    begin_phase("collective");
    collect();
    begin_phase("operator");
    reduce();
    begin_phase("share");
    share(argc > 1 ? strtoull(argv[1], NULL, 10) : SMALL);
    begin_phase("finalize");
    shmem_finalize();
    begin_phase("after");
    return 0;
}
