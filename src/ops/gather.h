/* SPDX-License-Identifier: BSD-3-Clause */
/* A call of weft_all_gather_matmul: its arguments, and what members show each other
 * (ops/all_gather_matmul.c), where that is found (ops/gather.c), and what is made of it
 * (ops/gather_products.c). */
#ifndef WEFT_OPS_GATHER_H
#define WEFT_OPS_GATHER_H

#include "coll/meeting.h"
#include "coll/remote_matrix.h"
#include "ops/scaling.h"

struct weft_gather {
    struct weft_meeting meeting;
    const weft_matrix *shard, *b;
    const weft_matrix *c, *full;
    size_t nb;
    const struct weft_scales *scales; /* NULL: the products are not scaled */
    weft_matrix row_scales;           /* of all rows of A, or one for all */
    size_t band_rows;                 /* of a private shard, that fit into a workspace */
    size_t early_at;                  /* where the workspace has room for early products */
    size_t early_rows;                /* of the own shard, multiplied while peers were missing */
    size_t free_at;                   /* where the workspace is not taken */
    size_t rows_least;                /* of a part that A is cut into for reasons of time; behind
                                       * the agreement the same on all members */
    bool gathers;                     /* A is gathered, and multiplied then */
    bool by_shards;                   /* each shard by itself, as where it lies */
    weft_matrix gathered;             /* where rows of A go; data is NULL: nowhere */
};

/* Facts of an offer. */
enum weft_gather_fact {
    WEFT_GATHER_DTYPE,
    WEFT_GATHER_COLS,
    WEFT_GATHER_ROWS,
    WEFT_GATHER_LD,
    WEFT_GATHER_CLAIM
};

/* --- gather.c --------------------------------------------------------------------------------- */

/* Rows of a member's shard, and where they begin in c; that of member npes is the end. */
size_t weft_gather_rows(const struct weft_gather *g, int member);
size_t weft_gather_first(const struct weft_gather *g, int member);

/* Whether a member shows its shard in its workspace. */
bool weft_gather_is_staged(const struct weft_gather *g, int member);

/* A band of a member's shard, and where its rows begin in c. */
struct weft_remote_matrix weft_gather_band(const struct weft_gather *g, int member, size_t band);
size_t weft_gather_first_of_band(const struct weft_gather *g, int member, size_t band);

char *weft_gather_workspace(const struct weft_gather *g); /* of this member */

/* --- gather_products.c ------------------------------------------------------------------------ */

/* Between post and agreement: multiplies some of the own shard while peers are missing. */
void weft_gather_early(struct weft_gather *g);

/* Decides whether A is gathered first; each member for itself. */
void weft_gather_choose(struct weft_gather *g);

/* Takes a band of all shards (coll/band.h); and what is to be done behind the last. */
int weft_gather_take(const void *call, size_t band);
int weft_gather_finish(const struct weft_gather *g);

#endif
