/* SPDX-License-Identifier: BSD-3-Clause */
#include "fused/hopper.h"
#include <assert.h>
#include "base/size.h"
#include "transport/gpu_kernel.h"
#include "coll/elements.h"
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

static int b_maps_make(struct weft_hopper_task *task, const weft_matrix *b, uint32_t width) {
    uint32_t lower = weft_hopper_lower(width);
    int error = map_make(&task->b, (struct boxes){b, lower, WEFT_HOPPER_DEPTH, true});
    return error
               ? error
               : map_make(&task->b_rest, (struct boxes){b, width - lower, WEFT_HOPPER_DEPTH, true});
}

static int a_map_make(struct weft_cu_tensor_map *map, const weft_matrix *a) {
    return map_make(map, (struct boxes){a, WEFT_HOPPER_ROWS, WEFT_HOPPER_DEPTH, true});
}

/* Fills in what a product needs that does not depend on A's place; `rows` of C are of one member.
 */
static int task_begin(struct weft_hopper_task *task, const weft_matrix *b, const weft_matrix *c,
                      size_t rows, unsigned width) {
    uint32_t panel = weft_hopper_panel(width);
    task->tiles.rows = (uint32_t)weft_steps_up(rows, WEFT_HOPPER_TILE_ROWS);
    task->tiles.cols = (uint32_t)weft_steps_up(c->cols, width);
    task->steps = (uint32_t)weft_steps_up(b->rows, WEFT_HOPPER_DEPTH);
    task->rows = (uint32_t)rows;
    task->cols = (uint32_t)c->cols;
    task->result = c->data;
    task->ldc = c->ld;
    task->boxes = weft_matrix_alignment(c) >= WEFT_HOPPER_UNIT &&
                  c->cols * 2 % WEFT_HOPPER_UNIT == 0; /* bulk stores write whole units */
    int error = b_maps_make(task, b, width);
    if (error || !task->boxes)
        return error;
    return map_make(&task->c, (struct boxes){c, WEFT_HOPPER_STORE_ROWS, panel, panel != width});
}

/* --- Launches --------------------------------------------------------------------------------- */

static enum weft_gpu_kernel kernel_of(weft_dtype dtype, unsigned width, bool gathers) {
    static const enum weft_gpu_kernel products[2][3] = {
        {WEFT_KERNEL_weftk_product_bf16_256, WEFT_KERNEL_weftk_product_bf16_208,
         WEFT_KERNEL_weftk_product_bf16_168},
        {WEFT_KERNEL_weftk_product_f16_256, WEFT_KERNEL_weftk_product_f16_208,
         WEFT_KERNEL_weftk_product_f16_168}};
    static const enum weft_gpu_kernel gather[2][3] = {
        {WEFT_KERNEL_weftk_gather_bf16_256, WEFT_KERNEL_weftk_gather_bf16_208,
         WEFT_KERNEL_weftk_gather_bf16_168},
        {WEFT_KERNEL_weftk_gather_f16_256, WEFT_KERNEL_weftk_gather_f16_208,
         WEFT_KERNEL_weftk_gather_f16_168}};
    int at = width == 256 ? 0 : width == 208 ? 1 : 2;
    return (gathers ? gather : products)[dtype == WEFT_F16][at];
}

/* A block takes nearly all shared memory of its multiprocessor, so as many blocks run at once as
 * there are multiprocessors. `wanted`: clusters. */
static int launch(enum weft_gpu_kernel kernel, struct weft_hopper_task *task, uint64_t wanted,
                  unsigned width, weft_cu_stream stream) {
    uint64_t clusters = (uint64_t)weft_device.gpu->sms / WEFT_HOPPER_CLUSTER;
    clusters = wanted < clusters ? wanted : clusters;
    struct weft_gpu_shape shape = {(unsigned)clusters * WEFT_HOPPER_CLUSTER, WEFT_HOPPER_THREADS,
                                   WEFT_HOPPER_CLUSTER, weft_hopper_shared_bytes(width)};
    return weft_gpu_launch_clusters(kernel, &shape, stream, (void *[]){task, NULL});
}

int weft_hopper_enqueue(const weft_matrix *a, const weft_matrix *b, const weft_matrix *c,
                        unsigned width, weft_cu_stream stream) {
    struct weft_hopper_task task = {.tiles = {.members = 1}};
    int error = task_begin(&task, b, c, c->rows, width);
    error = error ? error : a_map_make(&task.a, a);
    return error ? error
                 : launch(kernel_of(c->dtype, width, false), &task,
                          weft_hopper_tile_count(&task.tiles), width, stream);
}

/* --- Gathering -------------------------------------------------------------------------------- */

static int shards_take(struct weft_hopper_task *task, const struct weft_hopper_shards *shards) {
    const weft_matrix *own = &shards->own;
    weft_matrix all = *own;
    all.data = weft_array_at(&shards->half->all, shards->me);
    all.rows *= (size_t)shards->n;
    task->gather = (struct weft_hopper_gather){
        .shard = own->data,
        .units = own->rows * own->cols * 2 / WEFT_HOPPER_UNIT,
        .row_units = own->cols * 2 / WEFT_HOPPER_UNIT,
        .slots = shards->half->all,
        .words = shards->half->words,
    };
    int error = a_map_make(&task->a, own);
    return error ? error : a_map_make(&task->slots, &all);
}

/* A warp of each block pushes, 64 units at a time. */
int weft_hopper_enqueue_gathered(const struct weft_hopper_shards *shards, const weft_matrix *b,
                                 const weft_matrix *c, unsigned width, weft_cu_stream stream) {
    enum { PUSHED_UNITS = 64 * WEFT_HOPPER_CLUSTER };
    struct weft_hopper_task task = {
        .tiles = {.members = (uint32_t)shards->n, .me = (uint32_t)shards->me}};
    _Static_assert(sizeof(struct weft_hopper_words) <= WEFT_HALF_WORDS, "the words fit");
    assert(shards->n >= 2 && shards->n <= WEFT_HOPPER_MEMBERS);
    int error = shards_take(&task, shards);
    if (!error && b)
        error = task_begin(&task, b, c, shards->own.rows, width);
    uint64_t tiles = weft_hopper_tile_count(&task.tiles);
    uint64_t pushed = task.gather.units / PUSHED_UNITS + 1;
    return error ? error
                 : launch(kernel_of(shards->own.dtype, width, true), &task,
                          tiles > pushed ? tiles : pushed, width, stream);
}
