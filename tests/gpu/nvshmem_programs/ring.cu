/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages go around a ring: each block of a grid sends a part, by puts with signals, and the next
 * PE passes on the data that it has received. */
#include "begin.h"

enum { BLOCKS = 4, THREADS = 128, ROUNDS = 8, WORDS = 1000 };

/* A block's part of the message, by one thread, a warp or the whole block. */
__device__ void pass_on(unsigned *dest, const unsigned *source, uint64_t *sig, int next,
                        int round) {
    size_t bytes = WORDS * sizeof *dest;
    if (round % 3 == 0)
        nvshmemx_putmem_signal_nbi_block(dest, source, bytes, sig, 1, NVSHMEM_SIGNAL_ADD, next);
    else if (round % 3 == 1 && threadIdx.x < 32)
        nvshmemx_uint_put_signal_warp(dest, source, WORDS, sig, 1, NVSHMEM_SIGNAL_ADD, next);
    else if (round % 3 == 2 && threadIdx.x == 0)
        nvshmem_putmem_signal(dest, source, bytes, sig, 1, NVSHMEM_SIGNAL_ADD, next);
    __syncthreads();
}

__global__ void ring(unsigned *in, unsigned *out, uint64_t *signals, uint64_t *credits) {
    int pe = nvshmem_my_pe(), npes = nvshmem_n_pes(), next = (pe + 1) % npes;
    int last = (pe + npes - 1) % npes;
    unsigned *dest = in + blockIdx.x * WORDS, *source = out + blockIdx.x * WORDS;
    for (int round = 0; round < ROUNDS; round++) {
        for (unsigned i = threadIdx.x; i < WORDS; i += blockDim.x)
            source[i] = (round ? dest[i] : i) * 3 + (unsigned)pe + blockIdx.x;
        __syncthreads();
        if (threadIdx.x == 0) { /* the next PE has read the message before */
            nvshmemx_signal_op(&credits[blockIdx.x], 1, NVSHMEM_SIGNAL_ADD, last);
            nvshmem_uint64_wait_until(&credits[blockIdx.x], NVSHMEM_CMP_GT, (uint64_t)round);
        }
        __syncthreads();
        pass_on(dest, source, &signals[blockIdx.x], next, round);
        if (threadIdx.x == 0)
            nvshmem_signal_wait_until(&signals[blockIdx.x], NVSHMEM_CMP_GE, (uint64_t)round + 1);
        __syncthreads();
    }
}

int main(void) {
    begin();
    unsigned *in = (unsigned *)zeros(BLOCKS * WORDS * sizeof *in);
    unsigned *out = (unsigned *)zeros(BLOCKS * WORDS * sizeof *out);
    uint64_t *signals = (uint64_t *)zeros(BLOCKS * sizeof *signals);
    uint64_t *credits = (uint64_t *)zeros(BLOCKS * sizeof *credits);
    void *arguments[] = {&in, &out, &signals, &credits};
    run((const void *)ring, BLOCKS, THREADS, arguments);
    printf("PE %d: in %08x, out %08x\n", me, sum_of(in, BLOCKS * WORDS * sizeof *in),
           sum_of(out, BLOCKS * WORDS * sizeof *out));
    nvshmem_free(credits);
    nvshmem_free(signals);
    nvshmem_free(out);
    nvshmem_free(in);
    return end();
}
