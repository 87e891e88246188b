/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: an endless loop of puts, atomics, locks, allocation, barriers, teams, collectives
 * and operators, for tests/core/kill.t to kill. Not a test itself. PEs: none */
#include <shmem.h>
#include <stdio.h>
#include <unistd.h>
#include <weft.h>

enum { NELEMS = 5000 };

static long counter, lock, guarded;
static float source[NELEMS], dest[NELEMS];
static long psync[SHMEM_SYNC_SIZE];

/* Members run ahead in small collectives and meet in large ones; on an active set they wait in the
 * program's own words. */
static void collectives(int npes) {
    for (int i = 0; i < 20; i++)
        shmem_float_broadcast(SHMEM_TEAM_WORLD, dest, source, 2, i % npes);
    shmem_float_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 2);
    shmem_float_sum_reduce(SHMEM_TEAM_WORLD, dest, source, NELEMS);
    shmem_float_broadcast(SHMEM_TEAM_WORLD, dest, source, NELEMS, 0);
    shmem_sync(0, 0, npes, psync);
}

static void round_of_everything(int me, int npes) {
    shmem_long_atomic_add(&counter, 1, (me + 1) % npes);
    shmem_set_lock(&lock);
    shmem_long_p(&guarded, shmem_long_g(&guarded, 0) + 1, 0);
    shmem_clear_lock(&lock);
    long *word = shmem_calloc(100, sizeof *word);
    shmem_long_p(&word[me % 100], 7, (me + 1) % npes);
    shmem_barrier_all();
    shmem_free(word);
    weft_all_reduce(SHMEM_TEAM_WORLD, dest, source, NELEMS, WEFT_F32, WEFT_SUM, WEFT_STREAM_HOST);
    collectives(npes);
    shmem_team_t half;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (npes + 1) / 2, NULL, 0, &half);
    if (half != SHMEM_TEAM_INVALID) {
        shmem_team_sync(half);
        shmem_team_destroy(half);
    }
}

int main(void) {
    shmem_init();
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    for (;;)
        round_of_everything(shmem_my_pe(), shmem_n_pes());
}
