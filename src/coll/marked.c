/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/marked.h"

enum { UNIT = 16 }; /* bytes */

static uint32_t units_of(size_t bytes) {
    return (uint32_t)((bytes + UNIT - 1) / UNIT);
}

static uint32_t quotient_up(uint32_t a, uint32_t b) {
    return (a + b - 1) / b;
}

bool weft_marked_takes(enum weft_fold_op op, enum weft_number number) {
    return op == WEFT_FOLD_SUM &&
           (number == WEFT_NUMBER_FLOAT || number == WEFT_NUMBER_BF16 || number == WEFT_NUMBER_F16);
}

size_t weft_marked_reduce_max(const struct weft_gpu_channels *channels) {
    return (size_t)channels->blocks_max * channels->slot_units * UNIT;
}

size_t weft_marked_all_reduce_max(const struct weft_gpu_channels *channels) {
    return weft_marked_reduce_max(channels) * (size_t)channels->n;
}

/* Returns the number of blocks of a kernel whose arrays have `bytes`: enough that a thread has one
 * unit of each member, up to the number that large calls use. */
static uint32_t blocks_of(const struct weft_gpu_channels *channels, size_t bytes, uint32_t chunk) {
    enum { BLOCK = 8 << 10, FEW = 32, LARGE = 2 << 20 };
    size_t wanted = bytes >= LARGE ? WEFT_GPU_CHANNELS : bytes / BLOCK < FEW ? bytes / BLOCK : FEW;
    uint32_t full = quotient_up(chunk, WEFT_GPU_CHANNEL_THREADS);
    uint32_t least = quotient_up(chunk, channels->slot_units);
    uint32_t blocks = wanted > full ? (uint32_t)wanted : full;
    blocks = blocks > least ? blocks : least;
    return blocks < channels->blocks_max ? blocks : channels->blocks_max;
}

struct weft_marked_array weft_marked_array_of(const void *first, size_t bytes, size_t step) {
    bool aligned = ((uintptr_t)first | step) % UNIT == 0;
    return (struct weft_marked_array){.first = (char *)first,
                                      .step = (ptrdiff_t)step,
                                      .bytes = (ptrdiff_t)bytes,
                                      .whole = aligned ? (uint32_t)(bytes / UNIT) : 0};
}

/* Returns the chunks of one array as blocks. */
static struct weft_marked_array chunks_of(const char *first, size_t bytes, uint32_t chunk) {
    struct weft_marked_array array = weft_marked_array_of(first, bytes, (size_t)chunk * UNIT);
    array.less = chunk;
    return array;
}

/* Returns the kernel for `n` members whose threads have one unit of each, or several. */
static enum weft_gpu_kernel kernel_for(enum weft_number number, int n, bool several) {
/* clang-format off */
#define KERNELS_OF(name) {{WEFT_KERNEL_##name##_2x1, WEFT_KERNEL_##name##_2x4}, \
                          {WEFT_KERNEL_##name##_4x1, WEFT_KERNEL_##name##_4x2}, \
                          {WEFT_KERNEL_##name##_8x1, WEFT_KERNEL_##name##_8x1}}
    /* clang-format on */
    static const enum weft_gpu_kernel kernels[WEFT_NUMBERS][3][2] = {
        [WEFT_NUMBER_FLOAT] = KERNELS_OF(weftk_marked_f32),
        [WEFT_NUMBER_BF16] = KERNELS_OF(weftk_marked_bf16),
        [WEFT_NUMBER_F16] = KERNELS_OF(weftk_marked_f16),
    };
#undef KERNELS_OF
    return kernels[number][(n > 2) + (n > 4)][several];
}

void weft_marked_connect(struct weft_marked_work *work, const struct weft_gpu_channels *channels) {
    work->epochs = (char *)&weft_gpu_channel_head(channels, channels->me, 0)->epoch;
    work->epoch_step = (uint32_t)weft_gpu_channel_bytes(channels->n);
    work->inboxes = weft_array_at(&channels->inbox, 0);
    work->inbox_step = channels->inbox.step;
    work->slot_units = channels->slot_units;
    work->me = channels->me, work->n = channels->n;
}

/* `bytes`: of all blocks of the source. */
static int launch(struct weft_marked_work *work, const struct weft_gpu_channels *channels,
                  const struct weft_gpu_collective *task, size_t bytes, weft_cu_stream stream) {
    weft_marked_connect(work, channels);
    work->divisor = task->divisor;
    work->part = quotient_up(work->chunk, blocks_of(channels, bytes, work->chunk));
    bool several = work->part > WEFT_GPU_CHANNEL_THREADS;
    void *arguments[] = {work, NULL};
    return weft_gpu_launch(kernel_for((enum weft_number)task->number, work->n, several),
                           quotient_up(work->chunk, work->part),
                           weft_gpu_warps(work->part, WEFT_GPU_CHANNEL_THREADS), stream, arguments);
}

int weft_marked_reduce(const struct weft_gpu_channels *channels,
                       const struct weft_gpu_collective *task, weft_cu_stream stream) {
    struct weft_marked_work work = {
        .from = weft_marked_array_of(task->source, task->bytes, task->source_step),
        .to = weft_marked_array_of(task->dest, task->bytes, 0),
        .chunk = units_of(task->bytes)};
    size_t blocks = task->source_step ? (size_t)channels->n : 1;
    return launch(&work, channels, task, blocks * task->bytes, stream);
}

/* With two members, one shot sends the same number of bytes. */
int weft_marked_all_reduce(const struct weft_gpu_channels *channels,
                           const struct weft_gpu_collective *task, weft_cu_stream stream) {
    if (channels->n == 2 && task->bytes <= weft_marked_reduce_max(channels))
        return weft_marked_reduce(channels, task, stream);
    uint32_t chunk = quotient_up(units_of(task->bytes), (uint32_t)channels->n);
    struct weft_marked_work work = {.from = chunks_of(task->source, task->bytes, chunk),
                                    .to = chunks_of(task->dest, task->bytes, chunk),
                                    .chunk = chunk};
    return launch(&work, channels, task, task->bytes, stream);
}
