/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels compiled by nvcc: registers those of a translation unit, and launches kernels that
 * synchronise with other PEs. */
#ifndef WEFT_NVSHMEM_LAUNCH_H
#define WEFT_NVSHMEM_LAUNCH_H

#include "weft/nvshmem/host/job.h"

#ifdef __CUDACC__

/* --- The state of this translation unit ------------------------------------------------------- */

WEFT_NVSHMEM_INLINE int weft_nvshmem_fill_here(const struct weft_nvshmem_unit *unit,
                                               const struct weft_nvshmem_state *state, int gpu) {
    int before = gpu;
    (void)unit;
    cudaGetDevice(&before);
    cudaSetDevice(gpu);
    cudaError_t error = cudaMemcpyToSymbol(weft_nvshmem_state, state, sizeof *state);
    cudaSetDevice(before);
    return (int)error;
}

/* Makes the GPU that the program has chosen current, because Weft uses the current one. */
WEFT_NVSHMEM_INLINE void weft_nvshmem_prepare(void) {
    cudaFree(NULL);
}

static struct weft_nvshmem_unit weft_nvshmem_here = {
    weft_nvshmem_fill_here, weft_nvshmem_prepare, NULL, NULL, 0, NULL};

__attribute__((constructor)) static void weft_nvshmem_is_here(void) {
    weft_nvshmem_add_unit(&weft_nvshmem_here);
}

/* Runs when the library that contains this unit is unloaded, or the program ends. */
__attribute__((destructor)) static void weft_nvshmem_is_gone(void) {
    struct weft_nvshmem_unit **at = &weft_nvshmem_job.units;
    while (*at && *at != &weft_nvshmem_here)
        at = &(*at)->next;
    if (*at)
        *at = weft_nvshmem_here.next;
}

#endif

#ifdef CUDART_VERSION

/* --- Launches of grids that are resident as a whole, so that their blocks may wait ------------ */

/* Stores in *gridsize the largest number of blocks that can run at once. */
WEFT_NVSHMEM_INLINE int nvshmemx_collective_launch_query_gridsize(const void *func, dim3 blockDims,
                                                                  void **args, size_t sharedMem,
                                                                  int *gridsize) {
    int gpu = 0, sms = 0, blocks = 0, threads = (int)(blockDims.x * blockDims.y * blockDims.z);
    (void)args;
    cudaError_t error = cudaGetDevice(&gpu);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, gpu);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, func, threads, sharedMem);
    *gridsize = blocks * sms;
    return (int)error;
}

/* Collective over all PEs. With a grid of 0 blocks, uses the largest grid. Returns 0, CUDA's
 * error, or a negative error of Weft. */
WEFT_NVSHMEM_INLINE int nvshmemx_collective_launch(const void *func, dim3 gridDims, dim3 blockDims,
                                                   void **args, size_t sharedMem,
                                                   cudaStream_t stream) {
    int error = weft_nvshmem_open(), blocks = 0;
    if (error)
        return error;
    if (gridDims.x == 0 || gridDims.y == 0 || gridDims.z == 0) {
        error =
            nvshmemx_collective_launch_query_gridsize(func, blockDims, args, sharedMem, &blocks);
        gridDims = dim3((unsigned)blocks, 1, 1);
    }
    return error ? error
                 : (int)cudaLaunchCooperativeKernel(func, gridDims, blockDims, args, sharedMem,
                                                    stream);
}

#endif

#endif
