/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over the members of their products a x b, one piece of the sum to every member.
 *
 * Each member keeps its product in its workspace, M x cols in the type of the accumulation, and
 * computes the peers' pieces first: the next member's, the one's after it, ..., its own last; where
 * b stays in the cache, in turns of some rows of each (docs/adr/0012). A piece is reduced by its
 * owner, over the members in team order, where they lie, or if far in copies. A product that
 * does not fit into a workspace is made in bands of columns, which pack a again but never b.
 *
 *                 piece of member 0 | 1 | 2        or by rows:   piece of member 0
 *      M x band:                    |   |                        ------- 1 -------
 *                                   |   |                        ------- 2 -------        */
#ifndef WEFT_OPS_PARTIALS_H
#define WEFT_OPS_PARTIALS_H

#include <weft.h>
#include "coll/meeting.h"
#include "ops/check.h"

struct weft_partials {
    struct weft_meeting *meeting;
    const weft_matrix *a, *b;
    const struct weft_scales *scales; /* NULL: the products are not scaled */
    weft_op op;
    size_t band_cols;  /* the same on all members */
    size_t free_at;    /* where the workspace is not taken by a band's product */
    size_t rows_least; /* of a product that is made for the sake of time alone; behind the
                        * agreement the same on all members */
};

/* Facts of an offer; the operator's own comes last. */
enum { WEFT_FACT_DTYPE, WEFT_FACT_OP, WEFT_FACT_ROWS, WEFT_FACT_COLS, WEFT_FACT_OWN };

/* Checks a, b, op and c, which is to receive a sum, except c's rows, and offers the facts. Returns
 * 0 or -errno with text, for weft_meeting_post. */
int weft_partials_offer(const struct weft_partials *partials, const struct weft_matrix_argument *c);

/* The agreement of the meeting, also on WEFT_BITS and rows_least. Behind it: the largest K of all
 * members, of whom each has its own, and whether far members are to be sent sums of a host. */
int weft_partials_agree(struct weft_partials *partials);
size_t weft_partials_deepest(const struct weft_meeting *meeting);
bool weft_partials_any_bits(const struct weft_meeting *meeting);

/* Decides on the bands. Local, and before the meeting: the results follow from facts that must be
 * the same on all members. Returns 0, or -ENOMEM with text if not even a column fits, or without
 * workspace for the product and `more` bytes for each of its elements at most. */
int weft_partials_plan(struct weft_partials *partials, size_t more);

/* How the product of a band is made: piece by piece; in one product, for pieces so small that
 * packing the factors for each would cost more than overlap saves; or it has been made before the
 * meeting. */
enum weft_product { WEFT_PRODUCT_IN_PIECES, WEFT_PRODUCT_AT_ONCE, WEFT_PRODUCT_MADE };

/* Before the meeting: makes a product that is to be made at once and is one band, so that it hides
 * the wait for late members and the offers announce it. It goes to the workspace, which is no
 * output. Returns 0 or -errno with text, and in *how the way in which bands are made from here on:
 * the same on all members. */
int weft_partials_begin(const struct weft_partials *partials, bool at_once, enum weft_product *how);

/* Behind the agreement: how bands are made, which weft_partials_begin said before, and whether at
 * once is best by what is known now. Members whose libraries are of two kinds may have begun in two
 * ways: then they begin anew. */
enum weft_product weft_partials_agreed(const struct weft_partials *partials, enum weft_product how,
                                       bool at_once);

/* The band of columns [col, col + cols) of the sum: dest, cut like pieces[me], receives this
 * member's piece. pieces, which has an entry for every member, says which part of the band belongs
 * to whom; columns count from the start of the band. On return peers may still read the
 * workspace. */
int weft_partials_band(const struct weft_partials *partials, size_t col, size_t cols,
                       const struct weft_piece *pieces, enum weft_product how,
                       const weft_matrix *dest);

/* Whether pieces had better be made by rows, each on its own, because far members wait for theirs
 * while the others are made; the same on all members. */
bool weft_partials_by_rows(const struct weft_partials *partials);

/* Else: whether `npieces` pieces along a side of `split` elements, the other side being `other`,
 * had better be made in one product. */
bool weft_partials_at_once(size_t npieces, size_t split, size_t other);

#endif
