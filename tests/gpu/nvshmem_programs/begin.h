/* SPDX-License-Identifier: BSD-3-Clause */
/* Code shared by programs for NVSHMEM that run over either library: initialised by a unique id,
 * which PE 0 stores in the file MEET, if RANK and NPES are set, and otherwise as the launcher
 * provides it. */
#ifndef TESTS_GPU_NVSHMEM_PROGRAMS_BEGIN_H
#define TESTS_GPU_NVSHMEM_PROGRAMS_BEGIN_H

#include <nvshmem.h>
#include <nvshmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int me, n, wrong;
static cudaStream_t stream;

#define CUDA(call)                                                                              \
    do {                                                                                        \
        cudaError_t cuda_error = (call);                                                        \
        if (cuda_error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(cuda_error)); \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

#define CHECK(what)                                                          \
    do {                                                                     \
        if (!(what)) {                                                       \
            wrong++;                                                         \
            printf("PE %d: %s:%d: not %s\n", me, __FILE__, __LINE__, #what); \
        }                                                                    \
    } while (0)

static void hand_out(nvshmemx_uniqueid_t *id, int rank) {
    const char *path = getenv("MEET");
    char made[4096];
    snprintf(made, sizeof made, "%s.new", path);
    FILE *file = NULL;
    if (rank == 0) {
        file = fopen(made, "wb");
        CHECK(file && fwrite(id, sizeof *id, 1, file) == 1 && fclose(file) == 0);
        CHECK(rename(made, path) == 0);
        return;
    }
    for (int turns = 0; !file && turns < 30000; turns++, usleep(1000))
        file = fopen(path, "rb");
    CHECK(file && fread(id, sizeof *id, 1, file) == 1 && fclose(file) == 0);
}

static void begin(void) {
    const char *rank = getenv("RANK"), *npes = getenv("NPES");
    if (rank && npes) {
        nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
        nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
        if (atoi(rank) == 0)
            CHECK(nvshmemx_get_uniqueid(&id) == 0);
        hand_out(&id, atoi(rank));
        CHECK(nvshmemx_set_attr_uniqueid_args(atoi(rank), atoi(npes), &id, &attributes) == 0);
        CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) == 0);
    } else {
        nvshmem_init();
    }
    int gpus = 0;
    me = nvshmem_my_pe();
    n = nvshmem_n_pes();
    CUDA(cudaGetDeviceCount(&gpus));
    CUDA(cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) % gpus));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

/* Launches on all PEs, and waits. */
static void run(const void *kernel, int blocks, int threads, void **arguments) {
    nvshmem_barrier_all();
    CHECK(nvshmemx_collective_launch(kernel, dim3((unsigned)blocks), dim3((unsigned)threads),
                                     arguments, 0, stream) == 0);
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaGetLastError());
    nvshmem_barrier_all();
}

/* Returns a checksum of this PE's memory. */
static unsigned sum_of(const void *device, size_t bytes) {
    unsigned char *found = (unsigned char *)malloc(bytes);
    unsigned sum = 17;
    CUDA(cudaMemcpy(found, device, bytes, cudaMemcpyDefault));
    for (size_t i = 0; i < bytes; i++)
        sum = sum * 31 + found[i];
    free(found);
    return sum;
}

static void *zeros(size_t bytes) {
    void *p = nvshmem_malloc(bytes);
    CHECK(p != NULL);
    CUDA(cudaMemset(p, 0, bytes));
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    return p;
}

static int end(void) {
    CUDA(cudaStreamDestroy(stream));
    printf("PE %d of %d: %d wrong\n", me, n, wrong);
    nvshmem_finalize();
    return wrong != 0;
}

#endif
