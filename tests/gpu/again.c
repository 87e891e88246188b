/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: shmem_init after shmem_finalize, and GPU memory again: objects that were not freed
 * are gone, new memory is zero, and puts, atomics and barriers on streams of WORLD and of a team
 * start afresh. One PE's GPU is small: memory that this GPU lacks no PE gets, and the rest can be
 * allocated. PEs: 1 2 3, also staged Far: cyclic:2 seed=7,reorder=16 */
#include "on_stream.h"

enum { ROUNDS = 3, SMALL_MB = 24 };

static long word;
static int me, npes, right;

static void on_streams(long round) {
    ON(putmem_on_stream(&word, &round, sizeof word, right, gpu_stream));
    gpu_drain(gpu_stream);
    shmem_barrier_all();
    EXPECT(word == round, "%ld", word);
}

static void memory(long round) {
    long *p = shmemx_malloc(SHMEMX_SPACE_DEVICE, 2 * sizeof *p);
    long zeros[2] = {0, 0};
    gpu_expect(p, zeros, sizeof zeros, "new memory");
    shmem_barrier_all();
    shmem_long_atomic_add(p, me + 1, right);
    shmem_long_p(p + 1, round, right);
    shmem_barrier_all();
    EXPECT(shmem_long_g(p, me) == (me + npes - 1) % npes + 1, "a sum of %ld", shmem_long_g(p, me));
    EXPECT(shmem_long_g(p + 1, me) == round, "%ld", shmem_long_g(p + 1, me));
}

static void barriers(void) {
    shmem_team_t all;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &all);
    for (int i = 0; i < 3; i++) {
        ON(barrier_all_on_stream(gpu_stream));
        ON(barrier_on_stream(all, gpu_stream));
    }
    gpu_drain(gpu_stream);
}

/* Only a pretended GPU is small. */
static void scarce(void) {
    char *p = shmemx_malloc(SHMEMX_SPACE_DEVICE, (size_t)2 * SMALL_MB << 20);
    if (getenv("GPU_REQUIRED"))
        EXPECT(!p && *weft_last_error(), "%p, \"%s\"", (void *)p, weft_last_error());
    shmem_free(p);
    p = shmemx_malloc(SHMEMX_SPACE_DEVICE, (size_t)SMALL_MB << 18);
    EXPECT(p, "a quarter: %s", weft_last_error());
    shmem_free(p);
}

int main(void) {
    for (long round = 1; round <= ROUNDS; round++) {
        shmem_init();
        me = shmem_my_pe();
        npes = shmem_n_pes();
        right = (me + 1) % npes;
        if (round == 1) {
            if (me == npes - 1)
                setenv("WEFT_FAKE_MEMORY_MB", "24", 1); /* SMALL_MB */
            gpu_start();
        }
        tap_case("a round");
        if (round == 2)
            on_streams(round);
        memory(round);
        barriers();
        scarce();
        if (round < ROUNDS)
            shmem_finalize();
    }
    return gpu_finish();
}
