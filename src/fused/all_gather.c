/* SPDX-License-Identifier: BSD-3-Clause */
/* All-gather + product: the own rows are multiplied while the shards are pushed, then the rows
 * before and after them. Slot i of a member receives the shard of member i, without gaps between
 * its rows; so the slots of row-major shards are one matrix. */
#include "coll/elements.h"
#include "fused/exchange.h"
#include "fused/fused.h"
#include "fused/product.h"

struct gather {
    const struct weft_fused_gather *call;
    struct weft_fused f;
    weft_matrix own; /* the shard, in memory that the GPU reaches, without gaps */
};

static int members(const struct gather *g) {
    return g->f.on->team->npes;
}

static int me(const struct gather *g) {
    return g->f.on->team->my_pe;
}

/* --- The own shard ---------------------------------------------------------------------------- */

/* Returns the rows of a matrix as they lie in memory. */
static struct weft_fused_rows rows_of(const weft_matrix *m) {
    return (struct weft_fused_rows){m->data, m->ld * weft_element_bytes(m->dtype)};
}

/* Copies a shard that has gaps, or that the GPU does not reach, to the member's own memory. */
static int take_own(struct gather *g) {
    const weft_matrix *shard = g->call->shard;
    size_t nrows = shard->transposed ? shard->cols : shard->rows;
    size_t width = shard->transposed ? shard->rows : shard->cols;
    size_t bytes = width * weft_element_bytes(shard->dtype);
    g->own = *shard;
    if ((nrows == 1 || shard->ld == width) && weft_device_reaches(shard->data))
        return 0;
    g->own.data = weft_fused_own(&g->f);
    g->own.ld = width;
    return weft_fused_copy_rows(rows_of(&g->own), rows_of(shard), bytes, nrows, g->f.on->stream);
}

static int push_own(struct gather *g) {
    int error = 0;
    for (int distance = 1; distance < members(g) && error == 0; distance++)
        error = weft_fused_push(&g->f, weft_fused_member(&g->f, distance), (size_t)me(g),
                                g->own.data, g->f.slot_bytes);
    return error ? error : weft_fused_meet(&g->f);
}

/* --- Products --------------------------------------------------------------------------------- */

/* Multiplies rows of A, from the first row of `member` on. */
static int multiply(const struct gather *g, const weft_matrix *a, int member) {
    size_t first = (size_t)member * g->call->shard->rows;
    int error = 0;
    for (size_t j = 0; j < g->call->nb && error == 0; j++) {
        weft_matrix c = weft_matrix_rows(&g->call->c[j], first, a->rows);
        error = weft_product_enqueue(a, &g->call->b[j], &c, g->f.room, g->f.on->stream);
    }
    return error;
}

/* Returns the shards of `count` members as they lie in the slots. */
static weft_matrix gathered(const struct gather *g, int member, int count) {
    weft_matrix a = g->own;
    a.data = weft_fused_slot(&g->f, me(g), (size_t)member);
    a.ld = a.transposed ? a.rows : a.cols;
    a.rows *= (size_t)count;
    return a;
}

/* Multiplies the shards of members [from, to): in one product if they are one matrix. */
static int multiply_gathered(const struct gather *g, int from, int to) {
    int step = g->own.transposed ? 1 : to - from, error = 0;
    for (int member = from; member < to && error == 0; member += step) {
        weft_matrix a = gathered(g, member, step);
        error = multiply(g, &a, member);
    }
    return error;
}

/* --- A ---------------------------------------------------------------------------------------- */

static int copy_full(const struct gather *g, const weft_matrix *a, int member) {
    weft_matrix to = weft_matrix_rows(g->call->full, (size_t)member * g->own.rows, a->rows);
    size_t bytes = a->cols * weft_element_bytes(a->dtype);
    return weft_fused_copy_rows(rows_of(&to), rows_of(a), bytes, a->rows, g->f.beside);
}

static int copy_gathered(const struct gather *g, int from, int to) {
    weft_matrix a = gathered(g, from, to - from);
    return from == to ? 0 : copy_full(g, &a, from);
}

/* --- The call --------------------------------------------------------------------------------- */

static int exchange(struct gather *g) {
    int error = weft_fused_fork(&g->f);
    error = error ? error : push_own(g);
    error = error ? error : multiply(g, &g->own, me(g));
    return weft_fused_join(&g->f, error);
}

static int multiply_others(struct gather *g) {
    bool copies = g->call->full != NULL;
    int error = copies ? weft_fused_fork(&g->f) : 0;
    if (copies && !error) {
        error = copy_gathered(g, 0, me(g));
        error = error ? error : copy_full(g, &g->own, me(g));
        error = error ? error : copy_gathered(g, me(g) + 1, members(g));
    }
    error = error ? error : multiply_gathered(g, me(g) + 1, members(g));
    error = error ? error : multiply_gathered(g, 0, me(g));
    return copies ? weft_fused_join(&g->f, error) : error;
}

int weft_fused_all_gather(const struct weft_on_stream *on, const struct weft_fused_gather *call) {
    const weft_matrix *shard = call->shard;
    struct gather g = {.call = call};
    size_t bytes = shard->rows * shard->cols * weft_element_bytes(shard->dtype);
    bool exchanges = bytes > 0 && on->team->npes > 1; /* the same on all members */
    if (shard->rows == 0)
        return 0;
    int error = weft_fused_open(&g.f, on, exchanges ? (size_t)on->team->npes : 0, bytes, bytes);
    error = error ? error : take_own(&g);
    if (!error)
        error = exchanges ? exchange(&g) : multiply(&g, &g.own, me(&g));
    return error ? error : multiply_others(&g);
}
