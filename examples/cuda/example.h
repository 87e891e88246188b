/* SPDX-License-Identifier: BSD-3-Clause */
/* Common parts of the programs in this folder: a job with one GPU for each PE, calls that must
 * succeed, random numbers, and one line at the end. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <cuda_runtime.h>
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft.h>
#include <weft/device.cuh>

/* Checks a call of CUDA, or a call of Weft that returns 0 or a negative errno. */
#define CUDA(call) \
    example_need((call) == cudaSuccess, #call, cudaGetErrorString(cudaGetLastError()))
#define WEFT(call) example_need((call) == 0, #call, weft_last_error())

static inline void example_need(bool good, const char *call, const char *text) {
    if (good)
        return;
    fprintf(stderr, "PE %d: %s: %s\n", shmem_my_pe(), call, text);
    shmem_global_exit(1);
}

/* A job, and the GPU of this PE. */
static inline void example_begin(void) {
    int device;
    shmem_init();
    WEFT(shmemx_device(&device));
    CUDA(cudaSetDevice(device));
}

/* Symmetric memory on the GPUs, all zero: `nelems` elements of T on every PE. Collective. */
template <class T> static T *example_malloc(size_t nelems) {
    void *p = shmemx_calloc(SHMEMX_SPACE_DEVICE, nelems, sizeof(T));
    example_need(p != NULL, "shmemx_calloc", weft_last_error());
    return (T *)p;
}

/* Returns a seed that is the same on all PEs and differs in each run. Collective. */
static inline uint64_t example_seed(void) {
    static uint64_t seed; /* symmetric, as statics are */
    if (shmem_my_pe() == 0)
        seed = (uint64_t)time(NULL) * 1000003 + (uint64_t)clock();
    shmem_broadcastmem(SHMEM_TEAM_WORLD, &seed, &seed, sizeof seed, 0);
    return seed;
}

/* Returns number `index` of the seed's sequence, so that any PE can compute the numbers of another.
 */
static inline uint64_t example_draw(uint64_t seed, uint64_t index) {
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* As draw(), as a float from -1 to 1. */
static inline float example_float(uint64_t seed, uint64_t index) {
    return (float)(int32_t)example_draw(seed, index) / 2147483648.0f;
}

/* Prints the number of wrong elements on all PEs, frees the handle, and ends the job; returns the
 * status of main. */
static inline int example_end(const char *what, long wrong, weft_device_team *team) {
    static long mine, all;
    mine = wrong;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all, &mine, 1);
    if (shmem_my_pe() == 0)
        printf("%s on %d PEs: %s\n", what, shmem_n_pes(), all ? "WRONG" : "right");
    if (wrong)
        fprintf(stderr, "PE %d: %ld elements are wrong\n", shmem_my_pe(), wrong);
    WEFT(shmemx_device_team_free(team));
    shmem_finalize();
    return all != 0;
}

#endif
