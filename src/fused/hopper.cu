/* SPDX-License-Identifier: BSD-3-Clause */
/* C = A x B on Hopper's tensor cores, for a row-major A and a transposed B: kernels whose clusters
 * compute tiles in turn (hopper_task.h has the tiles and their order).
 *
 * The first warpgroup of a block loads, the others multiply 64 rows each (hopper_tile.cuh). The
 * blocks of a cluster end together, because each writes to the other's shared memory. */
#define WEFT_KERNEL_THREADS
#include "fused/hopper_tile.cuh"

enum { LOADER_REGISTERS = 56, MULTIPLIER_REGISTERS = 224 };

template <int WIDTH, class ELEMENT> WEFT_DEVICE void product(const struct weft_hopper_task *task) {
    struct hopper_block block = block_of<WIDTH>();
    uint32_t group = weft_block_thread() / GROUP_THREADS;
    block_begin(block);
    if (group == 0) {
        weft_registers_release<LOADER_REGISTERS>();
        if (weft_block_thread() == 0)
            load<WIDTH>(task, block);
    } else {
        weft_registers_take<MULTIPLIER_REGISTERS>();
        multiply<WIDTH, ELEMENT>(task, block, group - 1);
    }
    weft_warp_sync();
    weft_cluster_sync();
}

/* Images for other GPUs have the kernels' names alone, so that all images have the same ones. */
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WEFT_PRODUCT(width, element, task)
#else
#define WEFT_PRODUCT(width, element, task) product<width, struct weft_hopper_##element>(task)
#endif

#define WEFT_KERNEL(width, element)                                                               \
    extern "C" __global__ void __launch_bounds__(WEFT_HOPPER_THREADS, 1)                          \
        weftk_product_##element##_##width(struct weft_gpu_abort,                                  \
                                          const __grid_constant__ struct weft_hopper_task task) { \
        WEFT_PRODUCT(width, element, &task);                                                      \
    }
WEFT_KERNEL(256, bf16)
WEFT_KERNEL(208, bf16)
WEFT_KERNEL(168, bf16)
WEFT_KERNEL(256, f16)
WEFT_KERNEL(208, f16)
WEFT_KERNEL(168, f16)
