/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: threads of every PE put, get, add and wait on GPU memory at the same time, each on
 * data of its own and all on common counters: a completed call is complete, whatever other threads
 * do. PEs: 1 2 3, also staged */
#include "gpu/gpu.h"
#include <pthread.h>
#include <shmemx.h>

enum { THREADS = 4, ROUNDS = 60, BYTES = 3000 };

static unsigned char *data, *room; /* room: of the host, within the GPU's reach */
static long *count;
static int me, npes;
static _Atomic int wrong;

static void one_round(int thread, int round, unsigned char *mine) {
    uint64_t key = (uint64_t)((me * THREADS + thread) * ROUNDS + round) * 8;
    unsigned char *there = data + (me * THREADS + thread) * BYTES, *back = room + thread * BYTES;
    int pe = (me + round) % npes;
    size_t bytes = 1 + gpu_draw(key, BYTES);
    gpu_fill(mine, bytes, key + 1);
    if (round % 2)
        shmem_putmem(there, mine, bytes, pe);
    else
        shmem_putmem_nbi(there, mine, bytes, pe);
    shmem_quiet();
    shmem_long_atomic_add(&count[0], 1, pe);
    memset(back, GPU_POISON, BYTES);
    if (round % 3)
        shmem_getmem(back, there, bytes, pe);
    else
        shmem_getmem_nbi(back, there, bytes, pe);
    shmem_quiet();
    wrong += memcmp(back, mine, bytes) != 0;
    long value = (long)key, seen;
    shmem_long_p(&count[1 + me * THREADS + thread], value, pe);
    shmem_quiet();
    seen = shmem_long_g(&count[1 + me * THREADS + thread], pe);
    wrong += seen != value;
}

static void *work(void *argument) {
    int thread = (int)(intptr_t)argument;
    unsigned char mine[BYTES + 8];
    for (int round = 0; round < ROUNDS; round++)
        one_round(thread, round, mine);
    return NULL;
}

int main(void) {
    int provided;
    pthread_t threads[THREADS];
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    gpu_start();
    tap_case("threads at once");
    data = shmemx_malloc(SHMEMX_SPACE_DEVICE, (size_t)(npes * THREADS * BYTES));
    room = shmem_malloc(THREADS * BYTES);
    count = shmemx_calloc(SHMEMX_SPACE_DEVICE, (size_t)(1 + npes * THREADS), sizeof *count);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    shmem_barrier_all();
    EXPECT(wrong == 0, "%d rounds are wrong", wrong);
    long sum = 0;
    for (int pe = 0; pe < npes; pe++)
        sum += shmem_long_g(&count[0], pe);
    EXPECT(sum == (long)npes * THREADS * ROUNDS, "%ld additions", sum);
    shmem_barrier_all();
    shmem_free(count);
    shmem_free(room);
    shmem_free(data);
    return gpu_finish();
}
