/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the first calls that need the GPU are made by many threads of a PE at once, while
 * its symmetric heap grows: each puts on a stream of its own. PEs: 1 2
 * Far: cyclic:2 seed=7,reorder=16 */
#include "gpu/gpu.h"
#include <pthread.h>
#include <shmemx.h>
#include <weft.h>

enum { THREADS = 8, GROWTHS = 6, BYTES = 3000 };

static unsigned char arrived[THREADS * BYTES];
static weft_cu_stream streams[THREADS];
static pthread_barrier_t together;
static _Atomic int failures;

static void *put(void *argument) {
    int thread = (int)(intptr_t)argument, next = (shmem_my_pe() + 1) % shmem_n_pes();
    unsigned char data[BYTES + 8];
    gpu_fill(data, BYTES, (uint64_t)thread);
    pthread_barrier_wait(&together);
    int rc = shmemx_putmem_on_stream(arrived + thread * BYTES, data, BYTES, next, streams[thread]);
    if (rc)
        fprintf(stderr, "# PE %d: thread %d: %d: %s\n", tap_pe, thread, rc, weft_last_error());
    failures += rc != 0;
    gpu_drain(streams[thread]);
    return NULL;
}

static void start_together(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, put, (void *)(intptr_t)i);
    pthread_barrier_wait(&together);
    for (size_t bytes = 4 << 20, i = 0; i < GROWTHS; i++, bytes *= 2)
        EXPECT(shmem_malloc(bytes), "%zu bytes of the host heap", bytes);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&together);
}

static void one_round(void) {
    EXPECT(failures == 0, "%d threads have failed", failures);
    shmem_barrier_all();
    for (int i = 0; i < THREADS; i++)
        gpu_expect(arrived + i * BYTES, gpu_data(BYTES, (uint64_t)i), BYTES, "thread %d", i);
}

/* Kernels reach all of the heap. */
static void expect_reached(void) {
    char *last = shmem_malloc(64);
    unsigned kind = 0;
    gpu_enter();
    gpu.cuPointerGetAttribute(&kind, WEFT_CU_POINTER_MEMORY_TYPE, (weft_cu_address)last);
    gpu_leave();
    EXPECT(kind == WEFT_CU_POINTER_TO_HOST, "the heap's end is of kind %u", kind);
}

int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    gpu_start();
    for (int i = 0; i < THREADS; i++)
        streams[i] = gpu_stream_new();
    tap_case("threads begin together");
    start_together();
    one_round();
    tap_case("the part by which the heap has grown is accessible");
    expect_reached();
    return gpu_finish();
}
