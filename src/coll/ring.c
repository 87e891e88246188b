/* SPDX-License-Identifier: BSD-3-Clause */
/* The shapes of ring reductions: the same on all members, as they come from the sizes alone. */
#include "coll/ring.h"
#include "transport/gpu_kernel.h"

/* No kernel is number 0, which is weftk_copy. */
static const enum weft_gpu_kernel kernels[WEFT_NUMBERS] = {
    [WEFT_NUMBER_FLOAT] = WEFT_KERNEL_weftk_ring_sum_f32,
    [WEFT_NUMBER_DOUBLE] = WEFT_KERNEL_weftk_ring_sum_f64,
    [WEFT_NUMBER_BF16] = WEFT_KERNEL_weftk_ring_sum_bf16,
    [WEFT_NUMBER_F16] = WEFT_KERNEL_weftk_ring_sum_f16,
};

bool weft_ring_takes(enum weft_fold_op op, enum weft_number number) {
    return op == WEFT_FOLD_SUM && kernels[number] != 0;
}

static size_t quotient_up(size_t a, size_t b) {
    return (a + b - 1) / b;
}

/* Of the largest chunk. */
static size_t chunk_bytes(const struct weft_gpu_channels *channels,
                          const struct weft_gpu_collective *task) {
    return task->source_step ? task->bytes
                             : weft_split_most(task->bytes, weft_split_grain(1), channels->n);
}

struct weft_ring_shape weft_ring_shape_of(const struct weft_gpu_channels *channels,
                                          const struct weft_gpu_collective *task, unsigned *blocks,
                                          unsigned *threads) {
    enum {
        BLOCKS = 64,
        DEPTH = 4,
        TILES = 8,
        BYTES_OF_BLOCK = 16 << 10,
        LEAST = (WEFT_RING_THREADS / 2 - 32) * 16
    };
    struct weft_ring_shape shape = {.depth = DEPTH, .areas = WEFT_GPU_CHANNELS / BLOCKS};
    size_t chunk = chunk_bytes(channels, task);
    size_t wanted = quotient_up(chunk, BYTES_OF_BLOCK);
    unsigned most = channels->blocks_max < BLOCKS ? channels->blocks_max : BLOCKS;
    *blocks = wanted < most ? (unsigned)wanted : most;
    *threads = WEFT_RING_THREADS;
    shape.place_bytes = shape.areas * 2 * channels->slot_units / DEPTH * 16;
    size_t tile = chunk / *blocks / TILES;
    tile = tile < LEAST ? LEAST : tile / LEAST * LEAST;
    tile = tile < shape.place_bytes / LEAST * LEAST ? tile : shape.place_bytes / LEAST * LEAST;
    if (tile == 0)
        tile = shape.place_bytes;
    shape.tiles = (uint32_t)quotient_up(chunk, tile * *blocks);
    shape.tile_bytes = (uint32_t)quotient_up(chunk, (size_t)*blocks * shape.tiles * 16) * 16;
    return shape;
}

int weft_ring_reduce_as(const struct weft_gpu_channels *channels,
                        const struct weft_gpu_collective *task, struct weft_ring_shape shape,
                        unsigned blocks, unsigned threads, weft_cu_stream stream) {
    void *arguments[] = {(void *)channels, (void *)task, &shape, NULL};
    return weft_gpu_launch(kernels[task->number], blocks, threads, stream, arguments);
}

int weft_ring_reduce(const struct weft_gpu_channels *channels,
                     const struct weft_gpu_collective *task, weft_cu_stream stream) {
    unsigned blocks, threads;
    struct weft_ring_shape shape = weft_ring_shape_of(channels, task, &blocks, &threads);
    return weft_ring_reduce_as(channels, task, shape, blocks, threads, stream);
}
