/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits a call into blocks and threads, by its size and by other values that are equal on all
 * members. */
#include "coll/ll.h"
#include "transport/gpu_kernel.h"

enum {
    UNIT_BYTES = 8,
    PACKET_BYTES = 16,
    BLOCK_UNITS = 64, /* that a block should have before there are more blocks */
};

size_t weft_ll_bytes_max(const struct weft_gpu_channels *channels) {
    return (size_t)channels->blocks_max * channels->slot_units * UNIT_BYTES;
}

/* Returns the binary logarithm of a tile's units: whole warps, as many as leave a group of threads
 * to each member. */
static uint32_t tile_shift_for(uint32_t share, int n) {
    uint32_t shift = 5;
    while (1u << shift < share && (2u << shift) * (uint32_t)n <= WEFT_GPU_CHANNEL_THREADS)
        shift++;
    return shift;
}

/* Returns how many units of a block are whole words at aligned addresses in both arrays: all,
 * except a last one that is shorter; or none. */
static uint32_t words_of(const struct weft_gpu_collective *task) {
    uintptr_t addresses =
        (uintptr_t)task->source | (uintptr_t)task->dest | task->source_step | task->dest_step;
    return addresses % UNIT_BYTES == 0 ? (uint32_t)(task->bytes / UNIT_BYTES) : 0;
}

static struct weft_ll_work make_work(const struct weft_gpu_channels *channels,
                                     const struct weft_gpu_collective *task) {
    uint32_t slot_bytes = channels->slot_units * PACKET_BYTES;
    return (struct weft_ll_work){
        .source = task->source,
        .dest = task->dest,
        .source_step = task->source_step,
        .dest_step = task->dest_step,
        .epoch = &weft_gpu_channel_head(channels, channels->me, 0)->packets,
        .out = weft_gpu_channel_slot(channels, 0, 0, 0, channels->me),
        .out_step = (size_t)channels->inbox.step,
        .in = weft_gpu_channel_slot(channels, channels->me, 0, 0, 0),
        .head_bytes = (uint32_t)weft_gpu_channel_bytes(channels->n),
        .slot_bytes = slot_bytes,
        .half_bytes = slot_bytes * (uint32_t)channels->n,
        .bytes = (uint32_t)task->bytes,
        .units = (uint32_t)((task->bytes + UNIT_BYTES - 1) / UNIT_BYTES),
        .words = words_of(task),
        .me = channels->me,
        .n = channels->n,
        .root = task->root,
        .divisor = task->divisor,
    };
}

static int launch(enum weft_gpu_kernel kernel, struct weft_ll_work *work,
                  const struct weft_gpu_channels *channels, weft_cu_stream stream) {
    uint32_t blocks = (work->units + BLOCK_UNITS - 1) / BLOCK_UNITS;
    blocks = blocks < channels->blocks_max ? blocks : channels->blocks_max;
    uint32_t share = (work->units + blocks - 1) / blocks, slot = channels->slot_units;
    work->share = share < slot ? share : slot;
    work->tile_shift = tile_shift_for(work->share, work->n);
    unsigned threads = (unsigned)work->n << work->tile_shift;
    work->single = threads <= WEFT_GPU_CHANNEL_THREADS && work->share <= UINT32_C(1)
                                                                             << work->tile_shift;
    void *arguments[] = {work, NULL};
    return weft_gpu_launch(kernel, (work->units + work->share - 1) / work->share,
                           threads < WEFT_GPU_CHANNEL_THREADS ? threads : WEFT_GPU_CHANNEL_THREADS,
                           stream, arguments);
}

/* Kernel 0 is weftk_copy, so 0 means that there is no kernel. */
#define OWN(X, family, op, number, OP, NUMBER) \
    [WEFT_FOLD_##OP][WEFT_NUMBER_##NUMBER] = WEFT_KERNEL_weftk_ll_##op##_##number,
#define ANY(X, family, op, number, OP, NUMBER) \
    [WEFT_FOLD_##OP][WEFT_NUMBER_##NUMBER] = WEFT_KERNEL_weftk_ll_fold,
static const enum weft_gpu_kernel reductions[WEFT_FOLD_OPS][WEFT_NUMBERS] = {
    WEFT_LL_SUMS(OWN, , ) WEFT_LL_FOLDS(ANY, , )};
#undef OWN
#undef ANY

/* Signed integers use the kernel of unsigned ones if the bits of the result are the same. */
static enum weft_number number_for(enum weft_fold_op op, enum weft_number number) {
    return reductions[op][number] ? number : weft_number_unsigned(number);
}

bool weft_ll_takes(enum weft_fold_op op, enum weft_number number) {
    return reductions[op][number_for(op, number)] != 0;
}

int weft_ll_exchange(const struct weft_gpu_channels *channels,
                     const struct weft_gpu_collective *task, weft_cu_stream stream) {
    struct weft_ll_work work = make_work(channels, task);
    return launch(WEFT_KERNEL_weftk_ll_exchange, &work, channels, stream);
}

int weft_ll_reduce(const struct weft_gpu_channels *channels, const struct weft_gpu_collective *task,
                   weft_cu_stream stream) {
    struct weft_ll_work work = make_work(channels, task);
    work.op = task->op;
    work.number = (int)number_for((enum weft_fold_op)task->op, (enum weft_number)task->number);
    return launch(reductions[work.op][work.number], &work, channels, stream);
}

int weft_ll_broadcast(const struct weft_gpu_channels *channels,
                      const struct weft_gpu_collective *task, weft_cu_stream stream) {
    struct weft_ll_work work = make_work(channels, task);
    uint64_t *started = weft_gpu_channel_row(channels, task->root, 0, WEFT_GPU_CHANNEL_STARTED);
    work.epoch = &weft_gpu_channel_head(channels, channels->me, 0)->directed;
    work.started = channels->me == task->root ? started : started + channels->me;
    return launch(WEFT_KERNEL_weftk_ll_broadcast, &work, channels, stream);
}
