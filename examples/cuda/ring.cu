/* SPDX-License-Identifier: BSD-3-Clause */
/* An all-gather around a ring: in each step every PE passes the chunk that it received last to its
 * right neighbour. Each block works on its part of every chunk, with its own signal, so that the
 * blocks never wait for each other. */
#include "example.h"

enum { NELEMS = 100003, BLOCKS = 8, THREADS = 256 };

/* `all` is n chunks of nelems, which contain this PE's own chunk at first; arrived[b] is for block
 * b. */
__global__ void ring(const __grid_constant__ weft_device_team t, float *all, size_t nelems,
                     uint64_t *arrived) {
    int right = (t.me + 1) % t.n;
    size_t begin = nelems * blockIdx.x / gridDim.x, end = nelems * (blockIdx.x + 1) / gridDim.x;
    uint64_t *signal = &arrived[blockIdx.x];
    for (int step = 1; step < t.n; step++) {
        size_t chunk = (size_t)((t.me - step + 1 + t.n) % t.n); /* the newest on this PE */
        float *part = all + chunk * nelems + begin;
        weft_put_signal_b(&t, part, part, (end - begin) * sizeof *part, signal, (uint64_t)step,
                          WEFT_SIGNAL_SET, right);
        if (!weft_wait_ge_b(&t, signal, (uint64_t)step))
            return; /* the job is over */
    }
}

int main(void) {
    example_begin();
    int me = shmem_my_pe(), n = shmem_n_pes();
    uint64_t seed = example_seed();
    float *all = example_malloc<float>((size_t)n * NELEMS);
    uint64_t *arrived = example_malloc<uint64_t>(BLOCKS);
    weft_device_team team;
    WEFT(shmemx_device_team(SHMEM_TEAM_WORLD, 1, 0, &team));

    float *host = (float *)calloc((size_t)n * NELEMS, sizeof *host);
    for (size_t i = 0; i < NELEMS; i++)
        host[i] = example_float(seed + me, i);
    CUDA(
        cudaMemcpy(all + (size_t)me * NELEMS, host, NELEMS * sizeof *host, cudaMemcpyHostToDevice));
    ring<<<BLOCKS, THREADS>>>(team, all, NELEMS, arrived);
    CUDA(cudaMemcpy(host, all, (size_t)n * NELEMS * sizeof *host, cudaMemcpyDeviceToHost));

    long wrong = 0;
    for (int pe = 0; pe < n; pe++)
        for (size_t i = 0; i < NELEMS; i++)
            wrong += host[(size_t)pe * NELEMS + i] != example_float(seed + pe, i);
    free(host);
    return example_end("ring: an all-gather of 100003 floats", wrong, &team);
}
