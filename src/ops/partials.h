/* SPDX-License-Identifier: BSD-3-Clause */
/* The sum of the members' products a x b, of which every member receives one piece.
 *
 * Each member keeps its product in its workspace, M x cols in the type of the accumulation. It
 * computes the peers' pieces first: the next member's, then that of the member after it, ..., its
 * own last; if b stays in the cache, in turns of some rows of each piece (docs/adr/0012). The owner
 * of a piece reduces it over the members in team order, in place, or from copies of far members'
 * pieces. A product that does not fit into a workspace is made in bands of columns, which pack a
 * again but never b.
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
    size_t free_at;    /* end of a band's product in the workspace */
    size_t rows_least; /* of a product that is made separately to save time; after the
                        * agreement the same on all members */
};

/* Facts of an offer; the operator's own comes last. */
enum { WEFT_FACT_DTYPE, WEFT_FACT_OP, WEFT_FACT_ROWS, WEFT_FACT_COLS, WEFT_FACT_OWN };

/* Checks a, b, op and c (which receives the sum), but not c's rows, offers the facts, and sets
 * rows_least. Returns 0 or -errno with text, for weft_meeting_post. */
int weft_partials_offer(struct weft_partials *partials, const struct weft_matrix_argument *c);

/* Agrees in the meeting, also on WEFT_BITS and rows_least. After the agreement the other two return
 * the largest K of all members, and whether sums of a host are sent to far members. */
int weft_partials_agree(struct weft_partials *partials);
size_t weft_partials_deepest(const struct weft_meeting *meeting);
bool weft_partials_any_bits(const struct weft_meeting *meeting);

/* Decides on the bands, before the post: the result depends only on facts that must be the same on
 * all members. Returns 0, or -ENOMEM with text if not even a column fits, or without workspace for
 * the product and `more` bytes for each of its elements at most. */
int weft_partials_plan(struct weft_partials *partials, size_t more);

/* How the product of a band is made: piece by piece; in one product, if pieces are so small that
 * packing the factors for each costs more than overlap saves; or it has been made before the post.
 */
enum weft_product { WEFT_PRODUCT_IN_PIECES, WEFT_PRODUCT_AT_ONCE, WEFT_PRODUCT_MADE };

/* Computes the product before the post if it is one band and is computed in one piece: that hides
 * the wait for late members, and the post then announces the product, too. The product is written
 * to the workspace, not to an output. Returns 0 or -errno with text, and stores in *how how this
 * member computes bands. Members whose libraries differ may differ in it: see weft_partials_agreed.
 */
int weft_partials_begin(const struct weft_partials *partials, bool at_once, enum weft_product *how);

/* Returns how bands are made, after the agreement: `how` of weft_partials_begin, unless rows_least
 * differs between members, which may then have begun in different ways. In that case all begin
 * again, in one piece if at_once. */
enum weft_product weft_partials_agreed(const struct weft_partials *partials, enum weft_product how,
                                       bool at_once);

/* Computes the band of columns [col, col + cols) of the sum. pieces has the part of the band that
 * each member receives, with columns counted from the start of the band; dest, of the size of
 * pieces[me], receives this member's. On return peers may still read the workspace. */
int weft_partials_band(const struct weft_partials *partials, size_t col, size_t cols,
                       const struct weft_piece *pieces, enum weft_product how,
                       const weft_matrix *dest);

/* Returns whether pieces are rows, made separately, because far members wait for their pieces while
 * others are made. The result is the same on all members. */
bool weft_partials_by_rows(const struct weft_partials *partials);

/* Returns, in the other case, whether one product is better than `npieces` pieces that cut a side
 * of `split` elements, where the other side has `other`. */
bool weft_partials_at_once(size_t npieces, size_t split, size_t other);

#endif
