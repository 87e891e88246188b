/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix products on GPUs that hide their communication: the members' GPUs exchange parts of the
 * matrices while they multiply, by copy engines (fused/exchange.h) or in Weft's kernel
 * (fused/hopper.h), as the members choose (fused/choice.h). And exchanges of rows and blocks whose
 * places the GPUs read from memory.
 *
 * The calls enqueue work between weft_on_stream_begin and _end, and can be captured. ops has
 * checked the arguments, so sizes that must be the same on all members are taken as such. Matrices
 * lie in memory that kernels of this PE's GPU reach, unless a field says otherwise. Functions
 * return 0 or -errno with text; an error of one member leaves the others waiting. */
#ifndef WEFT_FUSED_FUSED_H
#define WEFT_FUSED_FUSED_H

#include <weft.h>
#include "coll/scaling.h"
#include "coll/stream_call.h"

/* Returns whether kernels of this PE's GPU reach a matrix. Called between weft_on_stream_begin and
 * _end. */
bool weft_fused_reaches(const weft_matrix *m);

/* c[j] = A x b[j] for j < nb; A is the members' shards, stacked by rows. All shards have the same
 * number of rows, and either all are transposed or none is. */
struct weft_fused_gather {
    const weft_matrix *shard; /* in any memory */
    const weft_matrix *b, *c;
    size_t nb;
    const weft_matrix *full; /* receives A, or NULL; if not NULL, all shards are row-major */
    /* NULL: the products are not scaled. Otherwise scales->a, in any memory, has the same shape on
     * all members, and scales->bias may be NULL. */
    const struct weft_scales *scales;
};
int weft_fused_all_gather(const struct weft_on_stream *on, const struct weft_fused_gather *g);

/* c = this member's rows of the fold of the members' a x b, or all of its rows. Each member's
 * product is rounded to c's type before it is added. */
struct weft_fused_reduction {
    const weft_matrix *a, *b, *c;
    weft_op op;                       /* WEFT_SUM or WEFT_AVG */
    const struct weft_scales *scales; /* NULL: the products are not scaled */
};
int weft_fused_reduce_scatter(const struct weft_on_stream *on,
                              const struct weft_fused_reduction *r);
int weft_fused_all_reduce(const struct weft_on_stream *on, const struct weft_fused_reduction *r);

/* A dispatch or a combine of a mixture of experts, as in weft.h. All arrays are reached by kernels.
 * Rows that do not fit end the job. */
struct weft_fused_experts {
    const weft_moe_shape *shape;
    weft_dtype dtype;
    size_t ntokens;
    bool combines;
    void *tokens;
    const int32_t *experts;
    float *weights;
    const float *scales, *factors;
    const weft_moe_rows *rows;
};
int weft_fused_dispatch(const struct weft_on_stream *on, const struct weft_fused_experts *e);
int weft_fused_combine(const struct weft_on_stream *on, const struct weft_fused_experts *e);

/* weft_kv_shuffle, as in weft.h. A number of a block or member that is wrong ends the job. */
struct weft_fused_kv {
    const weft_kv_caches *caches;
    const int32_t *peer_and_role; /* these three are read when the call runs */
    const int64_t *from, *to;
    size_t count;
};
int weft_fused_kv_shuffle(const struct weft_on_stream *on, const struct weft_fused_kv *kv);

/* weft_all_to_allv_on_device, as in weft.h. Rows that do not fit end the job. */
struct weft_fused_rows_exchange {
    const weft_row_exchange *shape;
    char *dest;
    const char *source;
    int64_t *dest_splits, *dest_offsets;
    const int64_t *source_splits, *source_offsets; /* read when the call runs */
};
int weft_fused_exchange_rows(const struct weft_on_stream *on,
                             const struct weft_fused_rows_exchange *exchange);

#endif
