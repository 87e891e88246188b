/* SPDX-License-Identifier: BSD-3-Clause */
/* C = A x B on Hopper's tensor cores, for a row-major A: kernels whose clusters compute tiles in
 * turn (hopper_task.h has the tiles and their order). Kernels named weftk_gather also gather A from
 * the members of a team, and kernels named weftk_reduce add the members' products. The names end
 * with the width of a tile, and with row_major if B is row-major; otherwise B is transposed.
 *
 * The first warpgroup of a block loads and exchanges data, the others multiply 64 rows each
 * (hopper_tile.cuh). The blocks of a cluster end together, because each writes to the other's
 * shared memory. */
#define WEFT_KERNEL_THREADS
#include "transport/gpu_tile.h"
#include "fused/hopper_gather.cuh"
#include "fused/hopper_reduce.cuh"

enum { LOADER_REGISTERS = 56, MULTIPLIER_REGISTERS = 224 };

enum mode { PRODUCT, GATHER, REDUCE };

/* Does the work of the first warpgroup. Its first thread loads; other warps exchange data. */
template <int WIDTH, class ELEMENT, enum order ORDER, enum mode MODE>
WEFT_DEVICE void serve(const struct hopper_call &call, const struct hopper_block &block) {
    uint32_t thread = weft_block_thread(), warp = thread / WEFT_WARP_LANES;
    if (MODE == PRODUCT && thread == 0)
        load<WIDTH, ORDER>(call.task, block);
    if (MODE == GATHER && thread == 0)
        load_gathered<WIDTH, ORDER>(call, block);
    if (MODE == GATHER && warp >= 1 && warp <= WEFT_HOPPER_PUSHERS)
        push_shard(call);
    if (MODE == GATHER && warp == 1 && weft_block_index() == 0 && weft_lane() == 0)
        await_all(call);
    if (MODE == REDUCE && thread == 0 && !call.task->reduce.multiplied)
        load_taken<WIDTH, ORDER>(call, block);
    if (MODE == REDUCE && warp >= MOVER && warp < MOVER + GROUPS)
        move<WIDTH, ELEMENT>(call, block, warp - MOVER);
    if (MODE == REDUCE && warp == COLLECTOR && weft_block_index() == 0)
        count_empty(call);
    if (MODE == REDUCE && warp == COLLECTOR && call.task->reduce.for_all)
        collect_sums<WIDTH>(call);
}

template <int WIDTH, class ELEMENT, enum order ORDER, enum mode MODE>
WEFT_DEVICE void run(struct weft_gpu_abort abort, const struct weft_hopper_task *task) {
    struct hopper_block block = block_of<WIDTH>(MODE != PRODUCT);
    /* A broadcast, because the compiler must know for addresses of wgmma that all lanes have the
     * same value. */
    uint32_t group = weft_warp_broadcast_u32(weft_block_thread() / GROUP_THREADS, 0);
    struct hopper_call call = {task, abort, 0};
    if (MODE != PRODUCT && block.rank == 0 && weft_block_thread() == 0)
        call.first = take_tile(task);
    block_begin(block);
    if (group == 0) {
        weft_registers_release<LOADER_REGISTERS>();
        serve<WIDTH, ELEMENT, ORDER, MODE>(call, block);
    } else {
        weft_registers_take<MULTIPLIER_REGISTERS>();
        if (MODE == REDUCE)
            multiply_for_mover<WIDTH, ELEMENT, ORDER>(call, block, group - 1);
        else
            multiply<WIDTH, ELEMENT, ORDER>(task, block, group - 1);
    }
    weft_warp_sync();
    weft_cluster_sync();
    if (MODE == GATHER && weft_block_thread() == 0)
        exchange_end(call, WEFT_HOPPER_SHARDS, WEFT_HOPPER_SHARDS);
    if (MODE == REDUCE && weft_block_thread() == 0)
        exchange_end(call, WEFT_HOPPER_PARTS,
                     task->reduce.for_all ? WEFT_HOPPER_SUMS : WEFT_HOPPER_PARTS);
}

/* Images for other GPUs have the kernels' names, so that all images have the same names. Nothing
 * launches these kernels. */
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WEFT_RUN(width, element, order, mode) __trap()
#else
#define WEFT_RUN(width, element, order, mode) \
    run<width, struct weft_##element, order, mode>(abort, &task)
#endif

#define WEFT_MODE_product PRODUCT
#define WEFT_MODE_gather  GATHER
#define WEFT_MODE_reduce  REDUCE
#define WEFT_KERNEL(call, element, suffix, width, transposed, percent)                           \
    extern "C" __global__ void __launch_bounds__(WEFT_HOPPER_THREADS, 1)                         \
        weftk_##call##_##element##_##suffix(                                                     \
            struct weft_gpu_abort abort, const __grid_constant__ struct weft_hopper_task task) { \
        weft_dependency_wait();                                                                  \
        (void)abort, (void)task;                                                                 \
        WEFT_RUN(width, element, transposed ? TRANSPOSED : ROW_MAJOR, WEFT_MODE_##call);         \
    }
WEFT_GPU_TILES(WEFT_KERNEL, product, bf16)
WEFT_GPU_TILES(WEFT_KERNEL, product, f16)
WEFT_GPU_TILES(WEFT_KERNEL, gather, bf16)
WEFT_GPU_TILES(WEFT_KERNEL, gather, f16)
WEFT_GPU_TILES(WEFT_KERNEL, reduce, bf16)
WEFT_GPU_TILES(WEFT_KERNEL, reduce, f16)
