/* SPDX-License-Identifier: BSD-3-Clause */
/* The products of weft.h on a stream: the arguments are checked here, and fused enqueues the work.
 *
 * As for the other calls on streams (ops/vector.c), the members do not compare their arguments. */
#include "ops/matmul_on_stream.h"
#include <errno.h>
#include "coll/on_stream.h"
#include "fused/product.h"
#include "ops/check.h"

/* Checks that the GPU reaches a matrix. */
static int check_reached(const char *name, int index, const weft_matrix *m) {
    struct weft_matrix_argument argument = {.name = name, .index = index, .matrix = m};
    return weft_fused_reaches(m) ? 0
                                 : weft_check_fail(&argument, -ENOTSUP,
                                                   "data is in host memory that this PE's GPU does "
                                                   "not reach: use GPU memory");
}

/* Checks that the GPU reaches the scale and the bias of b[j]. */
static int check_scales(const struct weft_scales *scales, int j) {
    int error = check_reached("b_scale", j, &scales->b[j < 0 ? 0 : j]);
    return error || !scales->bias ? error : check_reached("bias", j, &scales->bias[j < 0 ? 0 : j]);
}

/* --- All-gather + product --------------------------------------------------------------------- */

static int check_pair(const struct weft_fused_gather *g, int j, size_t rows) {
    const weft_matrix *b = &g->b[j], *c = &g->c[j];
    struct weft_matrix_argument of_b = {.name = "b", .index = j, .matrix = b, .gpu = true};
    struct weft_matrix_argument of_c = {.name = "c", .index = j, .matrix = c, .gpu = true};
    int error = weft_check_right(g->shard->dtype, g->scales, &of_b, &of_c);
    error =
        error ? error : weft_check_equal(&of_b, "rows", b->rows, "a_shard->cols", g->shard->cols);
    error =
        error ? error
              : weft_check_equal(&of_c, "cols", c->cols, "the number of columns of its b", b->cols);
    error = error ? error
                  : weft_check_equal(&of_c, "rows", c->rows,
                                     "the number of members times a_shard->rows", rows);
    error = error ? error : check_reached("b", j, b);
    error = error ? error : check_reached("c", j, c);
    return error || !g->scales ? error : check_scales(g->scales, j);
}

static int check_full(const struct weft_fused_gather *g, size_t rows) {
    const weft_matrix *full = g->full, *shard = g->shard;
    struct weft_matrix_argument argument = {
        .name = "a_full", .index = -1, .matrix = full, .gpu = true};
    int error = weft_check_matrix(&argument);
    error = error ? error : weft_check_dtype(&argument, shard->dtype);
    error = error ? error
                  : weft_check_equal(&argument, "cols", full->cols, "a_shard->cols", shard->cols);
    error = error ? error
                  : weft_check_equal(&argument, "rows", full->rows,
                                     "the number of members times a_shard->rows", rows);
    if (!error && shard->transposed)
        return weft_fail_bare(-ENOTSUP, "a_shard is transposed and a_full is not NULL: on a "
                                        "stream A is gathered from row-major shards only");
    return error ? error : check_reached("a_full", -1, full);
}

static int check_gather(const struct weft_fused_gather *g, int npes) {
    struct weft_matrix_argument shard = {
        .name = "a_shard", .index = -1, .matrix = g->shard, .gpu = true};
    int error = weft_check_left(&shard, g->scales);
    if (error)
        return error;
    size_t rows = (size_t)npes * g->shard->rows;
    const char *missing = !g->b ? "b" : !g->c ? "c" : g->scales && !g->scales->b ? "b_scale" : NULL;
    if (g->nb > 0 && missing)
        return weft_fail_bare(-EINVAL, "%s is NULL", missing);
    error = weft_check_multiplied(g->shard->dtype, g->scales != NULL);
    error = error || !g->full ? error : check_full(g, rows);
    for (size_t j = 0; j < g->nb && !error; j++)
        error = check_pair(g, (int)j, rows);
    return error;
}

static int enqueue_gather(const struct weft_on_stream *on, const struct weft_fused_gather *g) {
    int error = check_gather(g, on->team->npes);
    error = error ? error : weft_product_begin();
    return error ? weft_check_fail_named(error) : weft_fused_all_gather(on, g);
}

int weft_all_gather_matmul_on_stream(shmem_team_t team, const struct weft_fused_gather *g,
                                     weft_stream stream) {
    struct weft_on_stream on = {.stream = (weft_cu_stream)stream};
    int error = weft_on_stream_enter(&on, team);
    return error ? error : weft_on_stream_end(&on, enqueue_gather(&on, g));
}

/* --- Product + reduction ---------------------------------------------------------------------- */

static int check_reduction(const struct weft_fused_reduction *r,
                           const struct weft_matrix_argument *c, size_t rows) {
    struct weft_matrix_argument a = {.name = "a", .index = -1, .matrix = r->a, .gpu = true};
    struct weft_matrix_argument b = {.name = "b", .index = -1, .matrix = r->b, .gpu = true};
    int error = weft_check_left(&a, r->scales);
    error = error ? error : weft_check_right(r->a->dtype, r->scales, &b, c);
    error = error ? error : weft_check_equal(&b, "rows", r->b->rows, "a->cols", r->a->cols);
    error = error ? error : weft_check_equal(c, "cols", r->c->cols, "b->cols", r->b->cols);
    error = error
                ? error
                : weft_check_equal(&a, "rows", r->a->rows,
                                   rows == r->c->rows ? "c->rows"
                                                      : "the number of members times c_shard->rows",
                                   rows);
    error = error ? error : weft_check_sum(r->op);
    error = error ? error : weft_check_multiplied(r->a->dtype, r->scales != NULL);
    error = error ? error : check_reached("a", -1, r->a);
    error = error ? error : check_reached("b", -1, r->b);
    error = error ? error : check_reached(c->name, -1, r->c);
    if (error || !r->scales)
        return error;
    error = check_reached("a_scale", -1, r->scales->a);
    return error ? error : check_scales(r->scales, -1);
}

static int enqueue_reduction(const struct weft_on_stream *on, const struct weft_fused_reduction *r,
                             bool scatters) {
    struct weft_matrix_argument c = {
        .name = scatters ? "c_shard" : "c", .index = -1, .matrix = r->c, .gpu = true};
    size_t rows = !r->c ? 0 : scatters ? (size_t)on->team->npes * r->c->rows : r->c->rows;
    int error = check_reduction(r, &c, rows);
    error = error ? error : weft_product_begin();
    if (error)
        return weft_check_fail_named(error);
    return scatters ? weft_fused_reduce_scatter(on, r) : weft_fused_all_reduce(on, r);
}

static int reduce_on_stream(shmem_team_t team, const struct weft_fused_reduction *r, bool scatters,
                            weft_stream stream) {
    struct weft_on_stream on = {.stream = (weft_cu_stream)stream};
    int error = weft_on_stream_enter(&on, team);
    return error ? error : weft_on_stream_end(&on, enqueue_reduction(&on, r, scatters));
}

int weft_matmul_reduce_scatter_on_stream(shmem_team_t team, const struct weft_fused_reduction *r,
                                         weft_stream stream) {
    return reduce_on_stream(team, r, true, stream);
}

int weft_matmul_all_reduce_on_stream(shmem_team_t team, const struct weft_fused_reduction *r,
                                     weft_stream stream) {
    return reduce_on_stream(team, r, false, stream);
}
