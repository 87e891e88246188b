/* SPDX-License-Identifier: BSD-3-Clause */
/* How a call is cut into blocks and threads: from its size, and from what is the same on all
 * members, alone. */
#include "coll/ll.h"
#include "transport/gpu_kernel.h"

enum {
    UNIT_BYTES = 8,
    BLOCK_UNITS = 64, /* as many as a block should have before there are more blocks */
    BLOCKS_MAX = WEFT_GPU_CHANNELS,
};

static uint32_t blocks_max(const struct weft_gpu_channels *channels) {
    return channels->blocks_max < BLOCKS_MAX ? channels->blocks_max : BLOCKS_MAX;
}

size_t weft_ll_bytes_max(const struct weft_gpu_channels *channels) {
    return (size_t)blocks_max(channels) * channels->slot_units * UNIT_BYTES;
}

/* Tiles of whole warps, as large as leaves a group of threads to each member. */
static uint32_t tile_shift_for(uint32_t share, int n) {
    uint32_t shift = 5;
    while (1u << shift < share && (2u << shift) * (uint32_t)n <= WEFT_GPU_CHANNEL_THREADS)
        shift++;
    return shift;
}

static int launch(enum weft_gpu_kernel kernel, const struct weft_gpu_channels *channels,
                  const struct weft_gpu_collective *task, weft_cu_stream stream) {
    uint32_t units = (uint32_t)((task->bytes + UNIT_BYTES - 1) / UNIT_BYTES);
    uint32_t blocks = (units + BLOCK_UNITS - 1) / BLOCK_UNITS, most = blocks_max(channels);
    blocks = blocks < most ? blocks : most;
    uint32_t share = (units + blocks - 1) / blocks, slot = channels->slot_units;
    share = share < slot ? share : slot;
    struct weft_ll_shape shape = {share, tile_shift_for(share, channels->n)};
    unsigned threads = (unsigned)channels->n << shape.tile_shift;
    struct weft_gpu_channels with = *channels;
    struct weft_gpu_collective what = *task;
    void *arguments[] = {&with, &what, &shape, NULL};
    return weft_gpu_launch(kernel, (units + share - 1) / share,
                           threads < WEFT_GPU_CHANNEL_THREADS ? threads : WEFT_GPU_CHANNEL_THREADS,
                           stream, arguments);
}

/* Sums wrap around, so signs do not matter. No kernel is number 0, which is weftk_copy. */
static const enum weft_gpu_kernel reductions[WEFT_FOLD_OPS][WEFT_NUMBERS] = {
    [WEFT_FOLD_SUM] = {[WEFT_NUMBER_FLOAT] = WEFT_KERNEL_weftk_ll_sum_f32,
                       [WEFT_NUMBER_DOUBLE] = WEFT_KERNEL_weftk_ll_sum_f64,
                       [WEFT_NUMBER_BF16] = WEFT_KERNEL_weftk_ll_sum_bf16,
                       [WEFT_NUMBER_F16] = WEFT_KERNEL_weftk_ll_sum_f16,
                       [WEFT_NUMBER_I32] = WEFT_KERNEL_weftk_ll_sum_u32,
                       [WEFT_NUMBER_U32] = WEFT_KERNEL_weftk_ll_sum_u32,
                       [WEFT_NUMBER_I64] = WEFT_KERNEL_weftk_ll_sum_u64,
                       [WEFT_NUMBER_U64] = WEFT_KERNEL_weftk_ll_sum_u64},
};

bool weft_ll_takes(enum weft_fold_op op, enum weft_number number) {
    return reductions[op][number] != 0;
}

int weft_ll_exchange(const struct weft_gpu_channels *channels,
                     const struct weft_gpu_collective *task, weft_cu_stream stream) {
    return launch(WEFT_KERNEL_weftk_ll_exchange, channels, task, stream);
}

int weft_ll_reduce(const struct weft_gpu_channels *channels, const struct weft_gpu_collective *task,
                   weft_cu_stream stream) {
    return launch(reductions[task->op][task->number], channels, task, stream);
}

int weft_ll_broadcast(const struct weft_gpu_channels *channels,
                      const struct weft_gpu_collective *task, weft_cu_stream stream) {
    return launch(WEFT_KERNEL_weftk_ll_broadcast, channels, task, stream);
}
