/* SPDX-License-Identifier: BSD-3-Clause */
/* The sum of all PEs' arrays on every PE, in one shot: each PE reads all arrays and adds them in
 * the order of the members, so that results have the same bits everywhere.
 *
 * Small arrays are sent in packets of 8 bytes with a flag, to an inbox of the handle. This takes
 * one trip over the link and no signal, and sources may be any memory. Large arrays lie in
 * symmetric memory, and are loaded from there between two barriers of the blocks. */
#include "example.h"

enum { BLOCKS = 16, THREADS = 256, SMALL = 2 * BLOCKS * THREADS, LARGE = 300007, ROUNDS = 20 };

/* Each thread handles two floats; the grid has as many blocks as needed. */
__global__ void all_reduce_small(const __grid_constant__ weft_device_team t, float *dest,
                                 const float *source, uint32_t nelems) {
    uint32_t channel = blockIdx.x, unit = threadIdx.x;
    uint32_t i = 2 * (blockIdx.x * THREADS + threadIdx.x);
    uint64_t epoch = weft_ll_epoch_begin(&t, channel);
    bool there = i < nelems, pair = i + 1 < nelems;
    float2 mine = {there ? source[i] : 0, pair ? source[i + 1] : 0}, sum = {0, 0};
    uint64_t data;
    memcpy(&data, &mine, sizeof data);
    if (there)
        weft_ll_bcast(&t, channel, unit, data, epoch); /* sends everything before it waits */
    for (int m = 0; there && m < t.n; m++) {
        float2 other = mine;
        if (m != t.me) {
            there = weft_ll_recv(&t, channel, unit, m, epoch, &data); /* 0: the job is over */
            memcpy(&other, &data, sizeof other);
        }
        sum.x += other.x;
        sum.y += other.y;
    }
    weft_ll_epoch_end(&t, channel, epoch);
    if (there)
        dest[i] = sum.x;
    if (there && pair)
        dest[i + 1] = sum.y;
}

/* Block b works with block b of the other members, on the same part of the array and through
 * channel b. */
__global__ void all_reduce_large(const __grid_constant__ weft_device_team t, float *dest,
                                 const float *source, size_t nelems) {
    size_t begin = nelems * blockIdx.x / gridDim.x, end = nelems * (blockIdx.x + 1) / gridDim.x;
    if (!weft_barrier_b(&t, blockIdx.x)) /* every member's source is complete */
        return;
    for (size_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        float sum = 0;
        for (int m = 0; m < t.n; m++)
            sum += *(const float *)weft_at(&t, source + i, m);
        dest[i] = sum;
    }
    weft_barrier_b(&t, blockIdx.x); /* all have read this source: the next kernel may change it */
}

static float expected(uint64_t seed, int n, size_t i) {
    float sum = 0;
    for (int pe = 0; pe < n; pe++)
        sum += example_float(seed + (uint64_t)pe, i);
    return sum;
}

int main(void) {
    example_begin();
    int me = shmem_my_pe(), n = shmem_n_pes();
    uint64_t seed = example_seed();
    float *source = example_malloc<float>(LARGE), *dest;
    CUDA(cudaMalloc(&dest, LARGE * sizeof *dest)); /* no other PE writes it */
    weft_device_team team;
    WEFT(shmemx_device_team(SHMEM_TEAM_WORLD, BLOCKS, 16 * THREADS, &team));

    long wrong = 0;
    static float host[LARGE];
    for (int round = 0; round < ROUNDS; round++) {
        bool small = round % 4 != 3;
        uint32_t nelems =
            1 + (uint32_t)(example_draw(seed, (uint64_t)round) % (small ? SMALL : LARGE));
        seed += 1000;
        for (size_t i = 0; i < nelems; i++)
            host[i] = example_float(seed + (uint64_t)me, i);
        CUDA(cudaMemcpy(source, host, nelems * sizeof *host, cudaMemcpyHostToDevice));
        if (small)
            all_reduce_small<<<(nelems + 2 * THREADS - 1) / (2 * THREADS), THREADS>>>(
                team, dest, source, nelems);
        else
            all_reduce_large<<<BLOCKS, THREADS>>>(team, dest, source, nelems);
        CUDA(cudaMemcpy(host, dest, nelems * sizeof *host, cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < nelems; i++)
            wrong += host[i] != expected(seed, n, i);
    }
    CUDA(cudaFree(dest));
    return example_end("all_reduce: 20 sums of up to 300007 floats", wrong, &team);
}
