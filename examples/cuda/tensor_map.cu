/* SPDX-License-Identifier: BSD-3-Clause */
/* The tensor memory accelerator loads tiles of a matrix in another GPU's memory: a tensor map is
 * made for the address that shmemx_ptr returns, as for any matrix. Each PE computes the transpose
 * of its right neighbour's matrix. It needs GPUs of compute capability 9.0, and sm_90 or later:
 *
 *   nvcc -arch=sm_90 tensor_map.cu -o tensor_map $(pkg-config --cflags --libs weft)
 *   oshrun -n 2 ./tensor_map */
#include <cuda.h>
#include <dlfcn.h>
#include "example.h"

enum { ROWS = 320, COLS = 448, SIDE = 32, TILE_BYTES = SIDE * SIDE * sizeof(float) };

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900

/* Loads the box of the map whose first element is (row, col) to shared memory; called by one
 * thread. */
static __device__ void load_tile(void *shared, const CUtensorMap *map, int row, int col,
                                 uint64_t *arrival) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];" ::"r"((uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(map), "r"(col), "r"(row), "r"((uint32_t)__cvta_generic_to_shared(arrival))
                 : "memory");
}

/* Block (x, y) computes the tile in column x and row y of the neighbour's matrix. */
__global__ void transpose(const __grid_constant__ weft_device_team t,
                          const __grid_constant__ CUtensorMap theirs, float *dest) {
    __shared__ alignas(128) float tile[SIDE][SIDE];
    __shared__ uint64_t arrival;
    int row = (int)blockIdx.y * SIDE, col = (int)blockIdx.x * SIDE;
    if (threadIdx.x == 0) {
        weft_fence_async(); /* others' writes before the barrier, for a load by the accelerator */
        weft_mbarrier_init(&arrival, 1);
        weft_mbarrier_expect(&arrival, TILE_BYTES);
        load_tile(tile, &theirs, row, col, &arrival);
    }
    __syncthreads();
    if (!weft_mbarrier_wait(&t, &arrival, 0))
        return;
    for (int i = (int)threadIdx.x; i < SIDE * SIDE; i += (int)blockDim.x)
        dest[(col + i / SIDE) * ROWS + row + i % SIDE] = tile[i % SIDE][i / SIDE];
}

#else
__global__ void transpose(const __grid_constant__ weft_device_team,
                          const __grid_constant__ CUtensorMap, float *) {}
#endif

/* Waits until all PEs have reached this place in their streams. */
__global__ void meet(const __grid_constant__ weft_device_team t) {
    weft_barrier_b(&t, 0);
}

/* Makes the map of a matrix of rows x cols floats, whose boxes are tiles. The function is in the
 * driver, which is already loaded, so it need not be linked. */
static CUtensorMap make_map(void *matrix, uint64_t rows, uint64_t cols) {
    CUtensorMap map;
    void *function = dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuTensorMapEncodeTiled");
    example_need(function != NULL, "cuTensorMapEncodeTiled", "the driver has none");
    cuuint64_t size[] = {cols, rows}, pitch[] = {cols * sizeof(float)}; /* fastest first */
    cuuint32_t box[] = {SIDE, SIDE}, step[] = {1, 1};
    CUresult error = ((decltype(&cuTensorMapEncodeTiled))function)(
        &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, matrix, size, pitch, box, step,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    example_need(error == CUDA_SUCCESS, "cuTensorMapEncodeTiled", "it does not take the matrix");
    return map;
}

static bool has_tensor_maps(void) {
    int device, major;
    CUDA(cudaGetDevice(&device));
    CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    return major >= 9;
}

int main(void) {
    example_begin();
    int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n;
    if (!has_tensor_maps()) {
        printf("tensor_map: skipped, for this GPU has no tensor memory accelerator\n");
        shmem_finalize();
        return 0;
    }
    uint64_t seed = example_seed();
    float *matrix = example_malloc<float>(ROWS * COLS), *dest;
    CUDA(cudaMalloc(&dest, ROWS * COLS * sizeof *dest));
    weft_device_team team;
    WEFT(shmemx_device_team(SHMEM_TEAM_WORLD, 1, 0, &team));
    CUtensorMap theirs = make_map(shmemx_ptr(SHMEMX_SPACE_DEVICE, matrix, right), ROWS, COLS);

    static float host[ROWS * COLS];
    for (size_t i = 0; i < ROWS * COLS; i++)
        host[i] = example_float(seed + (uint64_t)me, i);
    CUDA(cudaMemcpy(matrix, host, sizeof host, cudaMemcpyHostToDevice));
    meet<<<1, 32>>>(team);
    transpose<<<dim3(COLS / SIDE, ROWS / SIDE), 256>>>(team, theirs, dest);
    meet<<<1, 32>>>(team); /* no PE continues, and frees the matrix, before it has been read */
    CUDA(cudaMemcpy(host, dest, sizeof host, cudaMemcpyDeviceToHost));

    long wrong = 0;
    for (size_t i = 0; i < ROWS * COLS; i++)
        wrong += host[i] != example_float(seed + (uint64_t)right, i % ROWS * COLS + i / ROWS);
    CUDA(cudaFree(dest));
    return example_end("tensor_map: a transpose of the neighbour's matrix", wrong, &team);
}
