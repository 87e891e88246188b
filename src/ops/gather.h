/* SPDX-License-Identifier: BSD-3-Clause */
/* A call of weft_all_gather_matmul: its arguments and the members' offers
 * (ops/all_gather_matmul.c), the places of the members' shards (ops/gather.c), and the products
 * (ops/gather_products.c). */
#ifndef WEFT_OPS_GATHER_H
#define WEFT_OPS_GATHER_H

#include "coll/meeting.h"
#include "coll/remote_matrix.h"
#include "coll/scaling.h"

struct weft_gather {
    struct weft_meeting meeting;
    const weft_matrix *shard, *b;
    const weft_matrix *c, *full;
    size_t nb;
    const struct weft_scales *scales; /* NULL: the products are not scaled */
    weft_matrix row_scales;           /* for each row of A, or one for all rows */
    size_t band_rows;                 /* rows of a private shard that fit into a workspace */
    size_t early_at;                  /* offset of the early products in the workspace */
    size_t early_rows;    /* this member's rows that were multiplied before all peers posted */
    size_t free_at;       /* offset of the free part of the workspace */
    size_t rows_least;    /* of a part of A that is multiplied separately to save time;
                           * after the agreement the same on all members */
    bool gathers;         /* A is gathered first, then multiplied */
    bool by_shards;       /* gathered shards are multiplied separately, as in place */
    weft_matrix gathered; /* the destination of A's rows; data is NULL if there is none */
};

/* Facts of an offer. */
enum weft_gather_fact {
    WEFT_GATHER_DTYPE,
    WEFT_GATHER_COLS,
    WEFT_GATHER_ROWS,
    WEFT_GATHER_LD,
    WEFT_GATHER_CLAIM
};

/* Data of an offer. */
struct weft_gather_data {
    uint64_t rows_least; /* of this member's library */
    uint64_t transposed; /* the shard */
};

/* --- gather.c --------------------------------------------------------------------------------- */

/* Return the number of rows of a member's shard, and its first row in c. The first row of member
 * npes is the number of rows of A. */
size_t weft_gather_rows(const struct weft_gather *g, int member);
size_t weft_gather_first(const struct weft_gather *g, int member);

/* Return whether a member's shard is read in its workspace, and whether it is transposed. A copy of
 * a shard, in a workspace or of a far member, keeps its orientation, because the products of a
 * library may have other bits for the other orientation. */
bool weft_gather_is_staged(const struct weft_gather *g, int member);
bool weft_gather_is_transposed(const struct weft_gather *g, int member);

/* Return a band of a member's shard, and its first row in c. */
struct weft_remote_matrix weft_gather_band(const struct weft_gather *g, int member, size_t band);
size_t weft_gather_first_of_band(const struct weft_gather *g, int member, size_t band);

char *weft_gather_workspace(const struct weft_gather *g); /* of this member */

/* --- gather_products.c ------------------------------------------------------------------------ */

/* Multiplies rows of this member's shard while peers have not posted. Called after this member has
 * posted. */
void weft_gather_early(struct weft_gather *g);

/* Decides whether this member gathers A first. */
void weft_gather_choose(struct weft_gather *g);

/* Takes a band of all shards (coll/band.h). weft_gather_finish does the work after the last band.
 */
int weft_gather_take(const void *call, size_t band);
int weft_gather_finish(const struct weft_gather *g);

#endif
