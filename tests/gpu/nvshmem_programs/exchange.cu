/* SPDX-License-Identifier: BSD-3-Clause */
/* All PEs exchange words, lists by atomics, and collectives: in kernels, of the world and of a team
 * of every second PE, and on a stream. */
#include "begin.h"

enum { THREADS = 256, WORDS = 3000, LIST = 4096 };

__global__ void exchange(int *row, double *reals, short *shorts, int *found) {
    int pe = nvshmem_my_pe(), npes = nvshmem_n_pes(), thread = (int)threadIdx.x;
    if (thread < npes) {
        nvshmem_int_p(&row[pe], 100 * pe + thread, thread);
        nvshmem_double_p(&reals[pe], pe + thread / 8.0, thread);
        nvshmem_short_p(&shorts[pe], (short)(-pe - 1), thread);
    }
    nvshmemx_barrier_all_block();
    if (thread < npes)
        found[thread] = nvshmem_int_g(&row[thread], (pe + 1) % npes) + (int)(8 * reals[thread]) +
                        nvshmem_short_g(&shorts[thread], thread);
    nvshmemx_barrier_all_block();
}

/* Each thread stores its number in the list of each PE, at a place that it has taken by an atomic.
 */
__global__ void fill_lists(unsigned *taken, unsigned *list, unsigned long long *sums) {
    int pe = nvshmem_my_pe(), npes = nvshmem_n_pes();
    unsigned number = 1 + threadIdx.x + blockDim.x * (unsigned)pe;
    for (int to = 0; to < npes; to++) {
        unsigned place = nvshmem_uint_atomic_fetch_inc(taken, to);
        nvshmem_uint_p(&list[place], number, to);
        nvshmem_ulonglong_atomic_add(&sums[0], number, to);
        nvshmem_ulonglong_atomic_fetch_or(&sums[1], 1ull << number % 64, to);
        nvshmem_ulonglong_atomic_xor(&sums[2], number, to);
        if (nvshmem_ulonglong_atomic_compare_swap(&sums[3], 0, number, to) == 0)
            nvshmem_ulonglong_atomic_inc(&sums[4], to);
    }
    nvshmemx_barrier_all_block();
}

/* Words that the next PE sets one by one: any, some, all of them. */
__global__ void await(int *words, int *found) {
    int pe = nvshmem_my_pe(), next = (pe + 1) % nvshmem_n_pes(), status[8] = {0, 0, 1};
    size_t indices[8];
    if (threadIdx.x == 32)
        for (int i = 0; i < 8; i++)
            nvshmem_int_p(&words[i], i - 4, next);
    if (threadIdx.x == 0) {
        found[0] = (int)nvshmem_int_wait_until_any(words, 1, NULL, NVSHMEM_CMP_EQ, -4);
        found[1] = (int)nvshmem_int_wait_until_some(&words[7], 1, indices, NULL, NVSHMEM_CMP_GE, 3);
        nvshmem_int_wait_until_all(words, 8, status, NVSHMEM_CMP_LT, 9);
        nvshmem_int_wait_until(&words[2], NVSHMEM_CMP_LE, -2);
        found[2] = nvshmem_int_test(&words[3], NVSHMEM_CMP_NE, -1);
        found[3] = (int)nvshmem_int_test_some(words, 8, indices, NULL, NVSHMEM_CMP_LT, 0);
        found[4] = nvshmem_int_test_all(words, 8, NULL, NVSHMEM_CMP_GT, -5);
    }
    __syncthreads();
    nvshmemx_barrier_all_block();
}

/* All collectives of a team in succession: results follow each other in dest. */
__global__ void collectives(nvshmem_team_t team, int *dest, int *source, size_t nelems) {
    int members = nvshmem_team_n_pes(team), member = nvshmem_team_my_pe(team);
    for (size_t i = threadIdx.x; i < nelems * (size_t)members; i += blockDim.x)
        source[i] = 1000 * nvshmem_team_translate_pe(team, member, NVSHMEM_TEAM_WORLD) + (int)i;
    nvshmemx_barrier_block(team);
    nvshmemx_int_fcollect_block(team, dest, source, nelems);
    dest += nelems * (size_t)members;
    nvshmemx_int_alltoall_block(team, dest, source, nelems);
    dest += nelems * (size_t)members;
    nvshmemx_int_broadcast_block(team, dest, source, nelems, members - 1);
    dest += nelems;
    nvshmemx_int_sum_reduce_block(team, dest, source, nelems);
    dest += nelems;
    nvshmemx_int_max_reduce_block(team, dest, source, nelems);
    nvshmemx_team_sync_block(team);
}

static void words(void) {
    int *row = (int *)zeros(64 * sizeof *row), *found = (int *)zeros(64 * sizeof *found);
    double *reals = (double *)zeros(64 * sizeof *reals);
    short *shorts = (short *)zeros(64 * sizeof *shorts);
    void *exchanged[] = {&row, &reals, &shorts, &found}, *awaited[] = {&row, &found};
    run((const void *)exchange, 1, THREADS, exchanged);
    printf("PE %d: words %08x\n", me, sum_of(found, 64 * sizeof *found));
    CUDA(cudaMemset(row, 0x7f, 64 * sizeof *row));
    CUDA(cudaMemset(found, 0, 64 * sizeof *found));
    CUDA(cudaDeviceSynchronize());
    run((const void *)await, 1, THREADS, awaited);
    printf("PE %d: waits %08x\n", me, sum_of(found, 64 * sizeof *found));
    nvshmem_free(shorts);
    nvshmem_free(reals);
    nvshmem_free(found);
    nvshmem_free(row);
}

static int by_number(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

static void lists(void) {
    static unsigned found[LIST];
    unsigned *taken = (unsigned *)zeros(sizeof *taken), *list = (unsigned *)zeros(sizeof found);
    unsigned long long *sums = (unsigned long long *)zeros(8 * sizeof *sums), sum[8];
    void *arguments[] = {&taken, &list, &sums};
    run((const void *)fill_lists, 1, THREADS, arguments);
    CUDA(cudaMemcpy(found, list, sizeof found, cudaMemcpyDefault));
    CUDA(cudaMemcpy(sum, sums, sizeof sum, cudaMemcpyDefault));
    qsort(found, LIST, sizeof *found, by_number);
    for (unsigned i = 0; i < THREADS * (unsigned)n; i++)
        CHECK(found[LIST - THREADS * (unsigned)n + i] == i + 1);
    printf("PE %d: sums %llu %llx %llu, %llu\n", me, sum[0], sum[1], sum[2], sum[4]);
    nvshmem_free(sums);
    nvshmem_free(list);
    nvshmem_free(taken);
}

static void of_team(nvshmem_team_t team, const char *name) {
    size_t nelems = WORDS / 8, room = 3 * (size_t)n * WORDS;
    int *dest = (int *)zeros(room * sizeof *dest), *source = (int *)zeros(room * sizeof *source);
    nvshmem_barrier_all();
    if (team != NVSHMEM_TEAM_INVALID) {
        collectives<<<1, THREADS, 0, stream>>>(team, dest, source, nelems);
        CUDA(cudaStreamSynchronize(stream));
    }
    nvshmem_barrier_all();
    printf("PE %d: %s %08x\n", me, name, sum_of(dest, room * sizeof *dest));
    nvshmem_free(source);
    nvshmem_free(dest);
}

static void on_stream(void) {
    float *source = (float *)zeros(WORDS * sizeof *source),
          *dest = (float *)zeros(WORDS * sizeof *dest);
    uint64_t *sig = (uint64_t *)zeros(sizeof *sig);
    static float host[WORDS];
    for (int i = 0; i < WORDS; i++)
        host[i] = (float)(i + me);
    CUDA(cudaMemcpyAsync(source, host, sizeof host, cudaMemcpyDefault, stream));
    CHECK(nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, dest, source, WORDS, stream) ==
          0);
    nvshmemx_barrier_all_on_stream(stream);
    nvshmemx_putmem_signal_on_stream(source, dest, sizeof host, sig, 5, NVSHMEM_SIGNAL_SET,
                                     (me + 1) % n, stream);
    nvshmemx_signal_wait_until_on_stream(sig, NVSHMEM_CMP_EQ, 5, stream);
    CHECK(nvshmemx_broadcastmem_on_stream(NVSHMEM_TEAM_WORLD, dest, source, sizeof host, n - 1,
                                          stream) == 0);
    CUDA(cudaStreamSynchronize(stream));
    printf("PE %d: stream %08x %08x\n", me, sum_of(source, sizeof host), sum_of(dest, sizeof host));
    nvshmem_free(sig);
    nvshmem_free(dest);
    nvshmem_free(source);
}

int main(void) {
    nvshmem_team_t evens = NVSHMEM_TEAM_INVALID;
    begin();
    words();
    lists();
    of_team(NVSHMEM_TEAM_WORLD, "world");
    nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, NULL, 0, &evens);
    of_team(evens, "evens");
    on_stream();
    if (evens != NVSHMEM_TEAM_INVALID)
        nvshmem_team_destroy(evens);
    return end();
}
