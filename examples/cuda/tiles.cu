/* SPDX-License-Identifier: BSD-3-Clause */
/* A product whose left factor is computed by another PE: producers compute tiles directly into the
 * memory of the right neighbour's GPU, where consumers multiply each tile as soon as it has
 * arrived. Tiles use a ring of slots, so the consumer only needs room for a few of them.
 *
 *     producer's PE                                consumer's PE
 *     source --- tile ---> slots[tile % SLOTS] --- times b ---> out
 *                          filled[slot]: how often the slot has been filled, told by the producer
 *     emptied[slot] <----- how often the consumer has done with it
 *
 * The first half of the blocks produce, the others consume. */
#include "example.h"

enum { TILES = 75, SLOTS = 6, SIDE = 32, TILE = SIDE * SIDE, BLOCKS = 8, THREADS = 256 };

struct pipeline {
    float *slots;            /* symmetric: SLOTS tiles, from the left neighbour */
    uint64_t *filled;        /* symmetric: set by the left neighbour */
    uint64_t *emptied;       /* symmetric: set by the right neighbour */
    const float *source, *b; /* this PE's: TILES tiles, and the right factor */
    float *out;              /* TILES tiles */
};

static __device__ void produce(const weft_device_team *t, const struct pipeline *p, int tile) {
    int right = (t->me + 1) % t->n, slot = tile % SLOTS, turn = tile / SLOTS;
    if (!weft_wait_ge_b(t, &p->emptied[slot], (uint64_t)turn))
        return;
    float *there = (float *)weft_at(t, p->slots + slot * TILE, right);
    for (int i = (int)threadIdx.x; i < TILE; i += (int)blockDim.x)
        there[i] = fmaxf(p->source[tile * TILE + i], 0);
    __syncthreads();
    if (threadIdx.x == 0) /* after the barrier one thread's release covers the whole block */
        weft_signal(t, &p->filled[slot], (uint64_t)turn + 1, right);
}

static __device__ void consume(const weft_device_team *t, const struct pipeline *p, int tile) {
    int left = (t->me + t->n - 1) % t->n, slot = tile % SLOTS, turn = tile / SLOTS;
    if (!weft_wait_ge_b(t, &p->filled[slot], (uint64_t)turn + 1))
        return;
    const float *a = p->slots + slot * TILE;
    for (int i = (int)threadIdx.x; i < TILE; i += (int)blockDim.x) {
        float sum = 0;
        for (int k = 0; k < SIDE; k++)
            sum += a[i / SIDE * SIDE + k] * p->b[k * SIDE + i % SIDE];
        p->out[tile * TILE + i] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        weft_signal(t, &p->emptied[slot], (uint64_t)turn + 1, left);
}

__global__ void tiles(const __grid_constant__ weft_device_team t,
                      const __grid_constant__ struct pipeline p) {
    int half = (int)gridDim.x / 2, block = (int)blockIdx.x % half;
    for (int tile = block; tile < TILES && !weft_job_over(&t); tile += half)
        if ((int)blockIdx.x < half)
            produce(&t, &p, tile);
        else
            consume(&t, &p, tile);
}

/* Small whole numbers, so that sums are exact in any order. */
static void fill(float *array, int nelems, uint64_t seed) {
    for (int i = 0; i < nelems; i++)
        array[i] = (float)((int)(example_draw(seed, (uint64_t)i) % 17) - 8);
}

static long compare(const float *out, const float *source, const float *b) {
    long wrong = 0;
    for (int i = 0; i < TILES * TILE; i++) {
        float sum = 0;
        for (int k = 0; k < SIDE; k++)
            sum += fmaxf(source[i / SIDE * SIDE + k], 0) * b[k * SIDE + i % SIDE];
        wrong += out[i] != sum;
    }
    return wrong;
}

static float *on_gpu(const float *host, size_t nelems) {
    float *p;
    CUDA(cudaMalloc(&p, nelems * sizeof *p));
    if (host)
        CUDA(cudaMemcpy(p, host, nelems * sizeof *p, cudaMemcpyHostToDevice));
    return p;
}

int main(void) {
    example_begin();
    int me = shmem_my_pe(), n = shmem_n_pes();
    uint64_t seed = example_seed(), left = (uint64_t)((me + n - 1) % n);
    static float source[TILES * TILE], b[TILE], out[TILES * TILE];
    struct pipeline p;
    p.slots = example_malloc<float>(SLOTS * TILE);
    p.filled = example_malloc<uint64_t>(SLOTS);
    p.emptied = example_malloc<uint64_t>(SLOTS);
    weft_device_team team;
    WEFT(shmemx_device_team(SHMEM_TEAM_WORLD, 1, 0, &team));

    fill(source, TILES * TILE, seed + (uint64_t)me);
    fill(b, TILE, seed - 1);
    p.source = on_gpu(source, TILES * TILE);
    p.b = on_gpu(b, TILE);
    p.out = on_gpu(NULL, TILES * TILE);
    tiles<<<BLOCKS, THREADS>>>(team, p);
    CUDA(cudaMemcpy(out, p.out, sizeof out, cudaMemcpyDeviceToHost));

    fill(source, TILES * TILE, seed + left); /* the source of the left neighbour's tiles */
    return example_end("tiles: 75 tiles multiplied as they came", compare(out, source, b), &team);
}
