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
    if (!b->transposed)
        return map_make(&task->b,
                        (struct boxes){b, WEFT_HOPPER_BOX_DEPTH, WEFT_HOPPER_BOX_COLS, true});
    int error = map_make(&task->b, (struct boxes){b, lower, WEFT_HOPPER_DEPTH, true});
    return error
               ? error
               : map_make(&task->b_rest, (struct boxes){b, width - lower, WEFT_HOPPER_DEPTH, true});
}

static int a_map_make(struct weft_cu_tensor_map *map, const weft_matrix *a) {
    return map_make(map, (struct boxes){a, WEFT_HOPPER_ROWS, WEFT_HOPPER_DEPTH, true});
}

static void tiles_count(struct weft_hopper_task *task, size_t rows, size_t cols, unsigned width) {
    task->tiles.rows = (uint32_t)weft_steps_up(rows, WEFT_HOPPER_TILE_ROWS);
    task->tiles.cols = (uint32_t)weft_steps_up(cols, width);
    task->rows = (uint32_t)rows;
    task->cols = (uint32_t)cols;
}

static bool suits_boxes(const weft_matrix *c) {
    return weft_matrix_alignment(c) >= WEFT_HOPPER_UNIT &&
           c->cols * 2 % WEFT_HOPPER_UNIT == 0; /* bulk stores write whole units */
}

/* Describes a matrix for the stores of panels. */
static int panels_map_make(struct weft_cu_tensor_map *map, const weft_matrix *c, unsigned width) {
    uint32_t panel = weft_hopper_panel(width);
    return map_make(map, (struct boxes){c, WEFT_HOPPER_STORE_ROWS, panel, panel != width});
}

static int c_take(struct weft_hopper_task *task, const weft_matrix *c, unsigned width) {
    task->result = c->data;
    task->ldc = c->ld;
    task->boxes = suits_boxes(c);
    return task->boxes ? panels_map_make(&task->c, c, width) : 0;
}

/* Fills in what a product needs that does not depend on A's place; `rows` of C are of one member. b
 * is NULL if the product is there already. */
static int product_take(struct weft_hopper_task *task, const weft_matrix *b, const weft_matrix *c,
                        size_t rows, unsigned width) {
    tiles_count(task, rows, c->cols, width);
    if (b)
        task->steps = (uint32_t)weft_steps_up(b->rows, WEFT_HOPPER_DEPTH);
    int error = b ? b_maps_make(task, b, width) : 0;
    return error ? error : c_take(task, c, width);
}

/* --- Launches --------------------------------------------------------------------------------- */

enum call { PRODUCT, GATHER, REDUCE, CALLS };

/* The kernels for a width of tiles and an order of b. */
#define KERNELS_OF(call, suffix) \
    { WEFT_KERNEL_weftk_##call##_bf16_##suffix, WEFT_KERNEL_weftk_##call##_f16_##suffix }
#define VARIANT(X, name, suffix, width, transposed, percent) \
    {width,                                                  \
     transposed,                                             \
     {KERNELS_OF(product, suffix), KERNELS_OF(gather, suffix), KERNELS_OF(reduce, suffix)}},
static const struct variant {
    unsigned width;
    bool transposed;
    enum weft_gpu_kernel kernels[CALLS][2]; /* of bf16 and f16 */
} variants[] = {WEFT_GPU_TILES(VARIANT, , )};

/* Returns the kernel for a call. b may be NULL in a call that multiplies nothing. */
static enum weft_gpu_kernel kernel_of(enum call call, weft_dtype dtype, const weft_matrix *b,
                                      unsigned width) {
    enum { COUNT = sizeof variants / sizeof *variants };
    bool transposed = !b || b->transposed;
    int i = 0;
    while (i < COUNT && (variants[i].width != width || variants[i].transposed != transposed))
        i++;
    assert(i < COUNT);
    return variants[i].kernels[call][dtype == WEFT_F16];
}

/* Launches `wanted` clusters, or as many as run at once if these are fewer. A block takes nearly
 * all shared memory of its multiprocessor, so as many blocks run at once as there are
 * multiprocessors. */
static int launch(enum weft_gpu_kernel kernel, struct weft_hopper_task *task, uint64_t wanted,
                  unsigned width, weft_cu_stream stream) {
    uint64_t clusters = (uint64_t)weft_device.gpu->sms / WEFT_HOPPER_CLUSTER;
    clusters = wanted < clusters ? wanted : clusters;
    struct weft_gpu_shape shape = {(unsigned)clusters * WEFT_HOPPER_CLUSTER, WEFT_HOPPER_THREADS,
                                   WEFT_HOPPER_CLUSTER, weft_hopper_shared_bytes(width)};
    return weft_gpu_launch_shape(kernel, &shape, stream, (void *[]){task, NULL});
}

int weft_hopper_enqueue(const weft_matrix *a, const weft_matrix *b, const weft_matrix *c,
                        unsigned width, weft_cu_stream stream) {
    struct weft_hopper_task task = {.tiles = {.members = 1}};
    int error = a_map_make(&task.a, a);
    error = error ? error : product_take(&task, b, c, c->rows, width);
    return error ? error
                 : launch(kernel_of(PRODUCT, c->dtype, b, width), &task,
                          weft_hopper_tile_count(&task.tiles), width, stream);
}

/* --- Exchange --------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct weft_hopper_words) <= WEFT_HALF_WORDS, "the words fit");

/* Returns the task of a member, whose tiles begin with those of member `first`. */
static struct weft_hopper_task task_of(const struct weft_hopper_team *team, int first) {
    assert(team->n >= 2 && team->n <= WEFT_HOPPER_MEMBERS);
    return (struct weft_hopper_task){
        .tiles = {.members = (uint32_t)team->n, .first = (uint32_t)first},
        .exchange = {(uint32_t)team->me, team->half->all, team->half->words}};
}

static int shard_take(struct weft_hopper_task *task, const struct weft_hopper_team *team,
                      const weft_matrix *own) {
    weft_matrix all = *own;
    all.data = weft_array_at(&team->half->all, team->me);
    all.rows *= (size_t)team->n;
    task->gather = (struct weft_hopper_gather){
        .shard = own->data,
        .units = own->rows * own->cols * 2 / WEFT_HOPPER_UNIT,
        .row_units = own->cols * 2 / WEFT_HOPPER_UNIT,
    };
    int error = a_map_make(&task->a, own);
    return error ? error : a_map_make(&task->exchanged, &all);
}

int weft_hopper_enqueue_gathered(const struct weft_hopper_team *team, const weft_matrix *own,
                                 const weft_matrix *b, const weft_matrix *c, unsigned width,
                                 weft_cu_stream stream) {
    enum { OF_CLUSTER = WEFT_HOPPER_CLUSTER * WEFT_HOPPER_PUSHERS * WEFT_HOPPER_PUSHED_UNITS };
    struct weft_hopper_task task = task_of(team, team->me);
    int error = shard_take(&task, team, own);
    if (!error && b)
        error = product_take(&task, b, c, own->rows, width);
    uint64_t tiles = weft_hopper_tile_count(&task.tiles);
    uint64_t pushed = task.gather.units / OF_CLUSTER + 1;
    return error ? error
                 : launch(kernel_of(GATHER, own->dtype, b, width), &task,
                          tiles > pushed ? tiles : pushed, width, stream);
}

/* The tiles of this member's product begin with the rows of the next member. */
int weft_hopper_enqueue_reduced(const struct weft_hopper_team *team, const weft_matrix *a,
                                const weft_matrix *b, const weft_matrix *c,
                                const weft_matrix *product, bool for_all, unsigned width,
                                weft_cu_stream stream) {
    struct weft_hopper_task task = task_of(team, (team->me + 1) % team->n);
    size_t rows = product->rows / (size_t)team->n;
    assert(suits_boxes(c) && product->rows % ((size_t)team->n * WEFT_HOPPER_STORE_ROWS) == 0);
    task.reduce = (struct weft_hopper_reduce){product->data, a == NULL, for_all};
    int error = a ? a_map_make(&task.a, a) : 0;
    error = error ? error : product_take(&task, a ? b : NULL, c, rows, width);
    error = error ? error : panels_map_make(&task.exchanged, product, width);
    assert(weft_hopper_chunk_tiles(&task.tiles) * WEFT_HOPPER_TILE_PARTS < WEFT_HOPPER_SHARES);
    return error ? error
                 : launch(kernel_of(REDUCE, c->dtype, b, width), &task,
                          weft_hopper_tile_count(&task.tiles), width, stream);
}
