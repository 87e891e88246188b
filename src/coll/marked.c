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

/* Of a kernel whose arrays have so many bytes: so many that a thread has a unit of each member, up
 * to the number that large calls have. */
static uint32_t blocks_of(const struct weft_gpu_channels *channels, size_t bytes, uint32_t chunk) {
    enum { BLOCK = 8 << 10, FEW = 32, LARGE = 2 << 20 };
    size_t wanted = bytes >= LARGE ? WEFT_GPU_CHANNELS : bytes / BLOCK < FEW ? bytes / BLOCK : FEW;
    uint32_t full = quotient_up(chunk, WEFT_GPU_CHANNEL_THREADS);
    uint32_t least = quotient_up(chunk, channels->slot_units);
    uint32_t blocks = wanted > full ? (uint32_t)wanted : full;
    blocks = blocks < WEFT_GPU_CHANNELS ? blocks : WEFT_GPU_CHANNELS;
    blocks = blocks > least ? blocks : least;
    return blocks < channels->blocks_max ? blocks : channels->blocks_max;
}

/* `first`: the kernel of floats for two members. */
static int launch(enum weft_gpu_kernel first, const struct weft_gpu_channels *channels,
                  const struct weft_gpu_collective *task, size_t bytes, uint32_t chunk,
                  weft_cu_stream stream) {
    uint32_t part = quotient_up(chunk, blocks_of(channels, bytes, chunk));
    struct weft_marked_cut cut = {.chunk = chunk, .part = part};
    void *arguments[] = {(void *)channels, (void *)task, &cut, NULL};
    int number = task->number == WEFT_NUMBER_FLOAT ? 0 : task->number == WEFT_NUMBER_BF16 ? 1 : 2;
    int members = channels->n <= 2 ? 0 : channels->n <= 4 ? 1 : 2;
    return weft_gpu_launch((enum weft_gpu_kernel)((int)first + number * 3 + members),
                           quotient_up(chunk, part), weft_gpu_warps(part, WEFT_GPU_CHANNEL_THREADS),
                           stream, arguments);
}

int weft_marked_reduce(const struct weft_gpu_channels *channels,
                       const struct weft_gpu_collective *task, weft_cu_stream stream) {
    size_t bytes = task->bytes * (task->source_step ? (size_t)channels->n : 1);
    return launch(WEFT_KERNEL_weftk_marked_reduce_f32_2, channels, task, bytes,
                  units_of(task->bytes), stream);
}

/* Of two members each sends as much in one shot. */
int weft_marked_all_reduce(const struct weft_gpu_channels *channels,
                           const struct weft_gpu_collective *task, weft_cu_stream stream) {
    if (channels->n == 2 && task->bytes <= weft_marked_reduce_max(channels))
        return weft_marked_reduce(channels, task, stream);
    uint32_t chunk = quotient_up(units_of(task->bytes), (uint32_t)channels->n);
    return launch(WEFT_KERNEL_weftk_marked_all_reduce_f32_2, channels, task, task->bytes, chunk,
                  stream);
}
