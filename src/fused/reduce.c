/* SPDX-License-Identifier: BSD-3-Clause */
/* Product + reduce-scatter, and product + all-reduce. Each member owns some rows of the sum. It
 * multiplies the rows of the members after it, then those of the members before it, its own last;
 * the parts of one product are pushed to their owners during the next. Then it folds the parts in
 * its slots in the order of members: slot i receives the part of member i.
 *
 * In an all-reduce, the kernel that folds stores the rows of the sum at all members, in n further
 * slots.
 *
 * A small sum is computed by one kernel after the whole product: a product that is cut takes
 * longer, and so do copy engines. If members' data passes through the host, every sum is computed
 * so.
 *
 * If the members choose Weft's kernel (fused/choice.h), one launch multiplies, pushes and adds. */
#include "base/size.h"
#include "coll/on_stream.h"
#include "coll/on_stream_fold.h"
#include "coll/on_stream_meet.h"
#include "fused/choice.h"
#include "fused/exchange.h"
#include "fused/fused.h"
#include "fused/hopper.h"
#include "fused/plan.h"
#include "fused/product.h"

struct reduction {
    const struct weft_fused_reduction *call;
    struct weft_fused f;
    bool scatters;
    bool whole;   /* the sum is computed after the whole product, by weft_on_stream_fold */
    size_t rows;  /* of a member's part; the last parts may be shorter */
    size_t bytes; /* of a part */
    size_t step;  /* bytes from one slot to the next: kernels fold 16 bytes at a time */
};

static int members(const struct reduction *r) {
    return r->f.on->team->npes;
}

static int me(const struct reduction *r) {
    return r->f.on->team->my_pe;
}

/* Returns the first row of a member's part; for member n, the number of rows. */
static size_t first_row(const struct reduction *r, int member) {
    size_t row = (size_t)member * r->rows, all = r->call->a->rows;
    return row < all ? row : all;
}

static size_t part_bytes(const struct reduction *r, int member) {
    size_t rows = first_row(r, member + 1) - first_row(r, member);
    return rows * r->call->b->cols * weft_element_bytes(r->call->c->dtype);
}

/* Returns the address of a slot of this member. */
static char *own_slot(const struct reduction *r, int slot) {
    return weft_fused_at(&r->f, me(r), (size_t)slot * r->step);
}

/* --- Products --------------------------------------------------------------------------------- */

/* Multiplies rows of a, from `first` on, into c. */
static int multiply_rows(const struct reduction *r, size_t first, const weft_matrix *c) {
    const struct weft_fused_reduction *call = r->call;
    struct weft_piece piece = {.row = first, .rows = c->rows, .cols = c->cols};
    struct weft_scaling scaling;
    struct weft_product p = {weft_matrix_rows(call->a, first, c->rows), *call->b, *c, NULL};
    if (call->scales) {
        scaling = weft_scaling_of(call->scales, 0, &piece);
        p.scaling = &scaling;
    }
    return weft_product_enqueue(&p, r->f.room, r->f.on->stream);
}

/* Multiplies the rows of members [from, to) into a matrix without gaps. */
static int multiply(const struct reduction *r, int from, int to, char *dest) {
    size_t first = first_row(r, from), cols = r->call->b->cols;
    weft_matrix c = {dest, first_row(r, to) - first, cols, cols, r->call->c->dtype, false};
    return multiply_rows(r, first, &c);
}

/* Multiplies the rows of members [from, to) and pushes each member its rows. */
static int multiply_and_push(struct reduction *r, int from, int to) {
    if (from == to)
        return 0;
    int error = multiply(r, from, to, r->f.own + (size_t)from * r->bytes);
    if (error)
        return error;
    error = weft_fused_fork(&r->f);
    for (int member = from; member < to && error == 0; member++)
        error = weft_fused_push(&r->f, member, (size_t)me(r) * r->step,
                                r->f.own + (size_t)member * r->bytes, part_bytes(r, member));
    return error;
}

/* Fills this member's slots with all members' parts of its rows. If it does not meet the others,
 * their parts have arrived after the next meeting. */
static int collect_parts(struct reduction *r, bool meets) {
    int error = weft_fused_begin_writes(&r->f);
    error = error ? error : multiply_and_push(r, me(r) + 1, members(r));
    error = error ? error : multiply_and_push(r, 0, me(r));
    error = error ? error : multiply(r, me(r), me(r) + 1, own_slot(r, me(r)));
    if (meets && !error)
        error = weft_fused_meet(&r->f);
    return weft_fused_join(&r->f, error);
}

/* --- The sum ---------------------------------------------------------------------------------- */

/* Returns the fold of the parts of this member's rows into arrays without gaps. */
static struct weft_fold_task fold_of(const struct reduction *r, struct weft_array dests,
                                     int ndests) {
    struct weft_reduction reduction = weft_element_reduction(r->call->c->dtype, r->call->op);
    int n = members(r);
    return (struct weft_fold_task){.sources = {own_slot(r, 0), (ptrdiff_t)r->step, NULL},
                                   .dests = dests,
                                   .nelems =
                                       part_bytes(r, me(r)) / weft_element_bytes(r->call->c->dtype),
                                   .nsources = n,
                                   .ndests = ndests,
                                   .op = reduction.op,
                                   .number = reduction.number,
                                   .divisor = reduction.average ? n : 0};
}

static int fold_parts(const struct reduction *r, char *dest) {
    struct weft_fold_task task = fold_of(r, (struct weft_array){.first = dest}, 1);
    return weft_fold_launch(NULL, &task, task.nelems, r->f.on->stream);
}

/* Folds the parts of this member's rows into slot n + me of all members, between two meetings. */
static int fold_to_all(const struct reduction *r) {
    int n = members(r);
    struct weft_array slots = r->f.half.all;
    slots.first += (size_t)(n + me(r)) * r->step;
    struct weft_fold_task task = fold_of(r, slots, n);
    return weft_stream_fold_between(r->f.on, &task,
                                    r->bytes / weft_element_bytes(r->call->c->dtype));
}

/* Copies rows without gaps to c, from its row `first` on. */
static int copy_to_c(const struct reduction *r, char *rows, size_t first, size_t nrows) {
    const weft_matrix *c = r->call->c;
    size_t element = weft_element_bytes(c->dtype), bytes = c->cols * element;
    weft_matrix to = weft_matrix_rows(c, first, nrows);
    return weft_fused_copy_rows((struct weft_fused_rows){to.data, c->ld * element},
                                (struct weft_fused_rows){rows, bytes}, bytes, nrows,
                                r->f.on->stream);
}

/* Copies the sum from the slots n and more to c. */
static int copy_slots_to_c(const struct reduction *r) {
    int n = members(r), error = 0;
    if (r->step == r->bytes)
        return copy_to_c(r, own_slot(r, n), 0, r->call->c->rows);
    for (int member = 0; member < n && error == 0; member++) {
        size_t first = first_row(r, member), nrows = first_row(r, member + 1) - first;
        error = copy_to_c(r, own_slot(r, n + member), first, nrows);
    }
    return error;
}

static int fold_to_c(const struct reduction *r) {
    const weft_matrix *c = r->call->c;
    if (weft_matrix_is_dense(c))
        return fold_parts(r, c->data);
    int error = fold_parts(r, r->f.own);
    return error ? error : copy_to_c(r, r->f.own, 0, c->rows);
}

/* --- After the whole product ------------------------------------------------------------------ */

static struct weft_stream_folding folding_of(const struct reduction *r) {
    const weft_matrix *c = r->call->c;
    return (struct weft_stream_folding){
        .reduction = weft_element_reduction(c->dtype, r->call->op),
        .nelems = c->rows * c->cols,
        .scatter = r->scatters,
        .any = true,
    };
}

/* Returns whether weft_on_stream_fold takes the product as it lies in this member's memory. */
static bool is_whole(const struct reduction *r) {
    struct weft_stream_folding folding = folding_of(r);
    return weft_on_stream_folds_any(r->f.on, &folding);
}

/* A dest in host memory, or with gaps, is copied from this member's own memory. */
static int reduce_whole(const struct reduction *r) {
    const weft_matrix *c = r->call->c;
    bool direct = weft_matrix_is_dense(c) && weft_gpu_memory_kind(c->data) == WEFT_MEMORY_DEVICE;
    struct weft_stream_folding folding = folding_of(r);
    char *sum = direct ? c->data : r->f.own + (size_t)members(r) * r->bytes;
    int error = multiply(r, 0, members(r), r->f.own);
    error = error ? error : weft_on_stream_fold(r->f.on, sum, r->f.own, &folding);
    return error || direct ? error : copy_to_c(r, sum, 0, c->rows);
}

/* --- In one kernel ---------------------------------------------------------------------------- */

static weft_matrix product_of(const struct reduction *r) {
    size_t rows = r->call->a->rows, cols = r->call->b->cols;
    return (weft_matrix){r->f.own, rows, cols, cols, r->call->c->dtype, false};
}

/* Returns whether the kernel multiplies this member's factors. */
static bool fits_kernel(const struct reduction *r) {
    weft_matrix product = product_of(r);
    return weft_plan_fits(weft_device.gpu->capability, r->call->a, r->call->b, &product);
}

/* Returns c, or memory for its elements if the kernel cannot store to c. */
static weft_matrix sum_of(const struct reduction *r) {
    const weft_matrix *c = r->call->c;
    bool direct =
        weft_matrix_alignment(c) >= 16 && weft_gpu_memory_kind(c->data) == WEFT_MEMORY_DEVICE;
    return direct ? *c : weft_matrix_dense(c, r->f.own + (size_t)members(r) * r->bytes);
}

static int enqueue_kernel(const struct reduction *r, const weft_matrix *sum) {
    const struct weft_fused_reduction *call = r->call;
    weft_cu_stream stream = r->f.on->stream;
    struct weft_hopper_team team = {me(r), members(r), &r->f.half};
    weft_matrix product = product_of(r);
    bool fits = fits_kernel(r);
    unsigned width = /* the same on all members, because parts are counted by tiles */
        weft_plan_width(product.rows, product.cols, call->b->transposed, r->f.half.sms);
    int error = fits ? 0 : multiply(r, 0, members(r), r->f.own);
    return error ? error
                 : weft_hopper_enqueue_reduced(&team, fits ? call->a : NULL, call->b, sum, &product,
                                               !r->scatters, width, stream);
}

static int reduce_by_kernel(struct reduction *r) {
    weft_matrix sum = sum_of(r);
    int error = weft_fused_begin_writes(&r->f);
    error = error ? error : enqueue_kernel(r, &sum);
    return error || sum.data == r->call->c->data ? error : copy_to_c(r, sum.data, 0, sum.rows);
}

/* --- Calls ------------------------------------------------------------------------------------ */

/* A half has a set of slots, one for each member, and a second set for all sums; a sum that is
 * computed after the whole product needs no half. This member's own memory takes all parts, and a
 * sum that cannot be computed in c. A member alone multiplies straight into c. */
static int reduction_open(struct reduction *r, bool by_kernel) {
    const struct weft_fused_reduction *call = r->call;
    size_t n = (size_t)members(r), rows = call->a->rows, cols = call->b->cols;
    r->rows = weft_steps_up(rows, n);
    r->bytes = r->rows * cols * weft_element_bytes(call->c->dtype);
    r->step = weft_round_up(r->bytes, 16);
    struct weft_scaling scaling;
    weft_matrix c = {NULL, rows, cols, cols, call->c->dtype, false};
    struct weft_product whole = {*call->a, *call->b, n > 1 ? c : *call->c, NULL};
    if (call->scales) {
        scaling = weft_scaling_of(call->scales, 0, &(struct weft_piece){0, rows, 0, cols});
        whole.scaling = &scaling;
    }
    size_t parts = r->whole || by_kernel ? 2 : 1, sets = r->scatters ? 1 : 2;
    struct weft_fused_sizes sizes = {.half = n > 1 && !r->whole ? sets * n * r->step : 0,
                                     .room = weft_product_room(&whole),
                                     .own = n > 1 ? parts * n * r->bytes : 0};
    return weft_fused_open(&r->f, r->f.on, &sizes);
}

static int reduce_by_engines(struct reduction *r) {
    int error = collect_parts(r, r->scatters);
    if (r->scatters)
        return error ? error : fold_to_c(r);
    error = error ? error : fold_to_all(r);
    return error ? error : copy_slots_to_c(r);
}

/* Does the whole call; `reduction` has what is known before memory is prepared. */
static int reduce_in(const void *reduction, int way, weft_cu_stream stream) {
    struct reduction r = *(const struct reduction *)reduction;
    bool alone = members(&r) == 1, by_kernel = way == WEFT_BY_KERNEL;
    int error = reduction_open(&r, by_kernel);
    (void)stream;
    if (error || alone)
        return error ? error : multiply_rows(&r, 0, r.call->c);
    if (r.whole)
        return reduce_whole(&r);
    return by_kernel ? reduce_by_kernel(&r) : reduce_by_engines(&r);
}

/* Returns whether the kernel adds products like this product: the same on all members. */
static bool suits_kernel(const struct reduction *r) {
    const struct weft_fused_reduction *call = r->call;
    return !r->whole && !call->scales && call->op == WEFT_SUM &&
           weft_plan_reduces(call->a->rows, call->b->cols, call->c->dtype, members(r));
}

static int choose(enum weft_fused_way *way, const struct reduction *r) {
    const struct weft_fused_reduction *call = r->call;
    return weft_fused_choose(
        way, &(struct weft_fused_choice){.on = r->f.on,
                                         .operation = r->scatters ? "reduce-scatter" : "all-reduce",
                                         .rows = call->a->rows,
                                         .cols = call->b->cols,
                                         .dtype = call->c->dtype,
                                         .transposed = call->b->transposed,
                                         .fits = fits_kernel(r),
                                         .rule = WEFT_BY_KERNEL,
                                         .enqueue = reduce_in,
                                         .context = r});
}

static int reduce(const struct weft_on_stream *on, const struct weft_fused_reduction *call,
                  bool scatters) {
    struct reduction r = {.call = call, .f.on = on, .scatters = scatters};
    enum weft_fused_way way = WEFT_BY_ENGINES;
    if (call->a->rows == 0 || call->b->cols == 0)
        return 0;
    r.whole = members(&r) > 1 && is_whole(&r);
    int error = suits_kernel(&r) ? choose(&way, &r) : 0;
    return error ? error : reduce_in(&r, way, on->stream);
}

int weft_fused_reduce_scatter(const struct weft_on_stream *on,
                              const struct weft_fused_reduction *call) {
    return reduce(on, call, true);
}

int weft_fused_all_reduce(const struct weft_on_stream *on,
                          const struct weft_fused_reduction *call) {
    return reduce(on, call, false);
}
