/* SPDX-License-Identifier: BSD-3-Clause */
/* C = A x B on Hopper's tensor cores, for a row-major A and a transposed B: kernels whose clusters
 * compute tiles in turn (hopper_task.h has the tiles and their order). Those named weftk_gather
 * also gather A from the members of a team.
 *
 * The first warpgroup of a block loads, the others multiply 64 rows each (hopper_tile.cuh). The
 * blocks of a cluster end together, because each writes to the other's shared memory. */
#define WEFT_KERNEL_THREADS
#include "fused/hopper_gather.cuh"

enum { LOADER_REGISTERS = 56, MULTIPLIER_REGISTERS = 224 };

/* The threads of the first warpgroup: its first one loads, its second warp pushes. */
template <int WIDTH>
WEFT_DEVICE void gather(const struct gathering &call, const struct hopper_block &block) {
    uint32_t warp = weft_block_thread() / WEFT_WARP_LANES;
    if (weft_block_thread() == 0)
        load_gathered<WIDTH>(call, block);
    if (warp == 1)
        push_shard(call);
    if (warp == 1 && weft_block_index() == 0 && weft_lane() == 0)
        await_all(call);
}

template <int WIDTH, class ELEMENT, bool GATHERS>
WEFT_DEVICE void product(struct weft_gpu_abort abort, const struct weft_hopper_task *task) {
    struct hopper_block block = block_of<WIDTH>();
    /* The same in all lanes, which the compiler needs to know for addresses of wgmma. */
    uint32_t group = weft_warp_broadcast_u32(weft_block_thread() / GROUP_THREADS, 0);
    struct gathering call = {};
    if (GATHERS)
        call = gathering_begin(task, abort);
    block_begin(block);
    if (group == 0) {
        weft_registers_release<LOADER_REGISTERS>();
        if (GATHERS)
            gather<WIDTH>(call, block);
        else if (weft_block_thread() == 0)
            load<WIDTH>(task, block);
    } else {
        weft_registers_take<MULTIPLIER_REGISTERS>();
        multiply<WIDTH, ELEMENT>(task, block, group - 1);
    }
    weft_warp_sync();
    weft_cluster_sync();
    if (GATHERS && weft_block_thread() == 0)
        gathering_end(call);
}

/* Images for other GPUs have the kernels' names, so that all images have the same ones. Nothing
 * launches these kernels. */
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WEFT_PRODUCT(width, element, gathers) __trap()
#else
#define WEFT_PRODUCT(width, element, gathers) \
    product<width, struct weft_hopper_##element, gathers>(abort, &task)
#endif

#define WEFT_KERNEL(call, width, element, gathers)                                                 \
    extern "C" __global__ void __launch_bounds__(WEFT_HOPPER_THREADS, 1)                           \
        weftk_##call##_##element##_##width(struct weft_gpu_abort abort,                            \
                                           const __grid_constant__ struct weft_hopper_task task) { \
        (void)abort, (void)task;                                                                   \
        WEFT_PRODUCT(width, element, gathers);                                                     \
    }
#define WEFT_KERNELS(call, gathers)       \
    WEFT_KERNEL(call, 256, bf16, gathers) \
    WEFT_KERNEL(call, 208, bf16, gathers) \
    WEFT_KERNEL(call, 168, bf16, gathers) \
    WEFT_KERNEL(call, 256, f16, gathers)  \
    WEFT_KERNEL(call, 208, f16, gathers)  \
    WEFT_KERNEL(call, 168, f16, gathers)
WEFT_KERNELS(product, false)
WEFT_KERNELS(gather, true)
