/* SPDX-License-Identifier: BSD-3-Clause */
#include "fused/hopper.h"
#include <assert.h>
#include "transport/gpu_kernel.h"
#include "device/device.h"
#include "fused/hopper_task.h"

/* A matrix whose rows are contiguous, in boxes. */
struct boxes {
    const weft_matrix *m;
    uint32_t rows, cols; /* of a box */
    bool swizzled;
};

static int map_make(struct weft_cu_tensor_map *map, struct boxes boxes) {
    const weft_matrix *m = boxes.m;
    int type = m->dtype == WEFT_BF16 ? WEFT_CU_TENSOR_BF16 : WEFT_CU_TENSOR_F16;
    int swizzle = boxes.swizzled ? WEFT_CU_TENSOR_SWIZZLE_128 : WEFT_CU_TENSOR_NO_SWIZZLE;
    const uint64_t sizes[] = {m->transposed ? m->rows : m->cols, m->transposed ? m->cols : m->rows};
    const uint64_t step = m->ld * 2;
    const unsigned box[] = {boxes.cols, boxes.rows}, strides[] = {1, 1};
    return weft_cuda_check(weft_cuda.cuTensorMapEncodeTiled(map, type, 2, m->data, sizes, &step,
                                                            box, strides, 0, swizzle,
                                                            WEFT_CU_TENSOR_L2_256, 0),
                           "cuTensorMapEncodeTiled");
}

static int maps_make(struct weft_hopper_task *task, const weft_matrix *a, const weft_matrix *b,
                     const weft_matrix *c, uint32_t width) {
    uint32_t lower = weft_hopper_lower(width), panel = weft_hopper_panel(width);
    int error = map_make(&task->a, (struct boxes){a, WEFT_HOPPER_ROWS, WEFT_HOPPER_DEPTH, true});
    error = error ? error : map_make(&task->b, (struct boxes){b, lower, WEFT_HOPPER_DEPTH, true});
    error =
        error ? error
              : map_make(&task->b_rest, (struct boxes){b, width - lower, WEFT_HOPPER_DEPTH, true});
    if (error || task->plain)
        return error;
    return map_make(&task->c, (struct boxes){c, WEFT_HOPPER_STORE_ROWS, panel, panel != width});
}

static uint32_t divide_up(size_t a, size_t b) {
    return (uint32_t)((a + b - 1) / b);
}

static int kernel_of(weft_dtype dtype, unsigned width) {
    bool bf16 = dtype == WEFT_BF16;
    assert(width == 256 || width == 208 || width == 168);
    if (width == 256)
        return bf16 ? WEFT_KERNEL_weftk_product_bf16_256 : WEFT_KERNEL_weftk_product_f16_256;
    if (width == 208)
        return bf16 ? WEFT_KERNEL_weftk_product_bf16_208 : WEFT_KERNEL_weftk_product_f16_208;
    return bf16 ? WEFT_KERNEL_weftk_product_bf16_168 : WEFT_KERNEL_weftk_product_f16_168;
}

/* A block takes nearly all shared memory of its multiprocessor, so as many blocks run at once as
 * there are multiprocessors. */
static unsigned blocks_for(const struct weft_hopper_tiles *tiles) {
    unsigned clusters = (unsigned)weft_device.gpu->sms / WEFT_HOPPER_CLUSTER;
    unsigned wanted = weft_hopper_tile_count(tiles);
    return (wanted < clusters ? wanted : clusters) * WEFT_HOPPER_CLUSTER;
}

int weft_hopper_enqueue(const weft_matrix *a, const weft_matrix *b, const weft_matrix *c,
                        unsigned width, weft_cu_stream stream) {
    bool aligned = (((uintptr_t)c->data | (c->ld * 2)) & 15) == 0;
    struct weft_hopper_task task = {
        .tiles = {divide_up(c->rows, WEFT_HOPPER_TILE_ROWS), divide_up(c->cols, width)},
        .steps = divide_up(a->cols, WEFT_HOPPER_DEPTH),
        .rows = (uint32_t)c->rows,
        .cols = (uint32_t)c->cols,
        .plain = aligned ? NULL : c->data,
        .ldc = c->ld};
    int error = maps_make(&task, a, b, c, width);
    if (error)
        return error;
    struct weft_gpu_shape shape = {blocks_for(&task.tiles), WEFT_HOPPER_THREADS,
                                   WEFT_HOPPER_CLUSTER, weft_hopper_shared_bytes(width)};
    return weft_gpu_launch_clusters((enum weft_gpu_kernel)kernel_of(c->dtype, width), &shape,
                                    stream, (void *[]){&task, NULL});
}
