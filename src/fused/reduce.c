/* SPDX-License-Identifier: BSD-3-Clause */
/* Product + reduce-scatter, and product + all-reduce. Each member owns some rows of the sum. It
 * multiplies the rows of the others first, and pushes each part to its owner while it multiplies
 * the next one; its own rows come last. Then it folds the parts in its slots, of which slot i
 * receives the part of member i, in their order.
 *
 * In an all-reduce, each member then pushes its rows of the sum to all, into n further slots. */
#include "coll/elements.h"
#include "coll/on_stream_fold.h"
#include "fused/exchange.h"
#include "fused/fused.h"
#include "fused/product.h"

struct reduction {
    const struct weft_fused_reduction *call;
    struct weft_fused f;
    size_t rows; /* of a member's part; the last ones may be shorter */
};

static int members(const struct reduction *r) {
    return r->f.on->team->npes;
}

static int me(const struct reduction *r) {
    return r->f.on->team->my_pe;
}

/* Returns the first row of a member's part; that of member n is the number of rows. */
static size_t first_row(const struct reduction *r, int member) {
    size_t row = (size_t)member * r->rows, all = r->call->a->rows;
    return row < all ? row : all;
}

static size_t part_bytes(const struct reduction *r, int member) {
    size_t rows = first_row(r, member + 1) - first_row(r, member);
    return rows * r->call->b->cols * weft_element_bytes(r->call->c->dtype);
}

/* --- Products --------------------------------------------------------------------------------- */

/* Multiplies the rows of members [from, to) into a matrix without gaps. */
static int multiply(const struct reduction *r, int from, int to, char *dest) {
    size_t first = first_row(r, from), rows = first_row(r, to) - first, cols = r->call->b->cols;
    weft_matrix a = weft_matrix_rows(r->call->a, first, rows);
    weft_matrix c = {
        .data = dest, .rows = rows, .cols = cols, .ld = cols, .dtype = r->call->c->dtype};
    return weft_product_enqueue(&a, r->call->b, &c, r->f.room, r->f.on->stream);
}

/* Multiplies the rows of members [from, to) and pushes them to these. */
static int multiply_and_push(struct reduction *r, int from, int to) {
    if (from == to)
        return 0;
    char *parts = weft_fused_own(&r->f);
    int error = multiply(r, from, to, parts + (size_t)from * r->f.slot_bytes);
    if (error)
        return error;
    error = weft_fused_fork(&r->f);
    for (int member = from; member < to && error == 0; member++)
        error = weft_fused_push(&r->f, member, (size_t)me(r),
                                parts + (size_t)member * r->f.slot_bytes, part_bytes(r, member));
    return error;
}

/* After this all parts of the own rows are in the slots. */
static int collect_parts(struct reduction *r) {
    int error = multiply_and_push(r, me(r) + 1, members(r));
    error = error ? error : multiply_and_push(r, 0, me(r));
    error = error ? error : weft_fused_meet(&r->f);
    error =
        error ? error : multiply(r, me(r), me(r) + 1, weft_fused_slot(&r->f, me(r), (size_t)me(r)));
    return weft_fused_join(&r->f, error);
}

/* --- The sum ---------------------------------------------------------------------------------- */

/* Folds the parts of the own rows into memory without gaps. */
static int fold_parts(const struct reduction *r, char *dest) {
    struct weft_reduction reduction = weft_element_reduction(r->call->c->dtype, r->call->op);
    int n = members(r);
    size_t nelems = part_bytes(r, me(r)) / weft_element_bytes(r->call->c->dtype);
    struct weft_fold_task task = {
        .sources = {weft_fused_slot(&r->f, me(r), 0), (ptrdiff_t)r->f.slot_bytes, NULL},
        .dests = {.first = dest},
        .nelems = nelems,
        .nsources = n,
        .ndests = 1,
        .op = reduction.op,
        .number = reduction.number,
        .divisor = reduction.average ? n : 0};
    return weft_fold_launch(NULL, &task, nelems, r->f.on->stream);
}

/* Copies rows without gaps to c. */
static int copy_to_c(const struct reduction *r, char *rows) {
    const weft_matrix *c = r->call->c;
    size_t element = weft_element_bytes(c->dtype), bytes = c->cols * element;
    return weft_fused_copy_rows((struct weft_fused_rows){c->data, c->ld * element},
                                (struct weft_fused_rows){rows, bytes}, bytes, c->rows,
                                r->f.on->stream);
}

static int fold_to_c(const struct reduction *r) {
    bool whole = r->call->c->rows == 1 || r->call->c->ld == r->call->c->cols;
    if (whole)
        return fold_parts(r, r->call->c->data);
    char *sum = weft_fused_own(&r->f);
    int error = fold_parts(r, sum);
    return error ? error : copy_to_c(r, sum);
}

/* Pushes the own rows of the sum, which are in their slot, to all. */
static int gather_sum(struct reduction *r) {
    size_t slot = (size_t)(members(r) + me(r));
    char *own = weft_fused_slot(&r->f, me(r), slot);
    int error = weft_fused_fork(&r->f);
    for (int distance = 1; distance < members(r) && error == 0; distance++)
        error = weft_fused_push(&r->f, weft_fused_member(&r->f, distance), slot, own,
                                part_bytes(r, me(r)));
    error = error ? error : weft_fused_meet(&r->f);
    return weft_fused_join(&r->f, error);
}

/* --- Calls ------------------------------------------------------------------------------------ */

/* `sets` of slots, one for each member; this member's own memory takes all parts. A member alone
 * multiplies straight into c. */
static int reduction_open(struct reduction *r, const struct weft_on_stream *on, size_t sets) {
    const weft_matrix *a = r->call->a, *b = r->call->b;
    size_t n = (size_t)on->team->npes;
    r->rows = (a->rows + n - 1) / n;
    size_t bytes = r->rows * b->cols * weft_element_bytes(r->call->c->dtype);
    return weft_fused_open(&r->f, on, n > 1 ? sets * n : 0, bytes, n > 1 ? n * bytes : 0);
}

static int multiply_alone(const struct reduction *r) {
    return weft_product_enqueue(r->call->a, r->call->b, r->call->c, r->f.room, r->f.on->stream);
}

int weft_fused_reduce_scatter(const struct weft_on_stream *on,
                              const struct weft_fused_reduction *call) {
    struct reduction r = {.call = call};
    if (call->a->rows == 0 || call->b->cols == 0)
        return 0;
    int error = reduction_open(&r, on, 1);
    if (error || members(&r) == 1)
        return error ? error : multiply_alone(&r);
    error = collect_parts(&r);
    return error ? error : fold_to_c(&r);
}

int weft_fused_all_reduce(const struct weft_on_stream *on,
                          const struct weft_fused_reduction *call) {
    struct reduction r = {.call = call};
    if (call->a->rows == 0 || call->b->cols == 0)
        return 0;
    int error = reduction_open(&r, on, 2);
    if (error || members(&r) == 1)
        return error ? error : multiply_alone(&r);
    size_t sums = (size_t)members(&r);
    error = collect_parts(&r);
    error = error ? error : fold_parts(&r, weft_fused_slot(&r.f, me(&r), sums + (size_t)me(&r)));
    error = error ? error : gather_sum(&r);
    return error ? error : copy_to_c(&r, weft_fused_slot(&r.f, me(&r), sums));
}
