/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes of tokens to experts: arithmetic on the members' lists of experts. All members have the
 * same lists, so each finds out itself where every row belongs. */
#ifndef WEFT_OPS_MOE_ROUTE_H
#define WEFT_OPS_MOE_ROUTE_H

#include <weft.h>
#include "core/team.h"

struct weft_moe_route {
    weft_moe_shape shape;
    int npes, me;
    size_t experts_each; /* of a member */
    size_t *counts;      /* rows of each expert of the team */
    int32_t *row_of;     /* of [member][token][slot]: the row here, or -1 */
};

/* A member's tokens: top_k experts each, -1 where a slot is unused. */
struct weft_moe_list {
    const int32_t *experts;
    const float *weights, *scales; /* NULL: there are none */
    size_t ntokens;
};

/* Returns the member that owns an expert. */
static inline int weft_moe_owner(const struct weft_moe_route *route, int32_t expert) {
    return (int)((size_t)expert / route->experts_each);
}

/* Returns the index of a slot in row_of, which is also its number in weft_moe_rows.sources. */
static inline size_t weft_moe_slot(const struct weft_moe_route *route, int member, size_t token,
                                   size_t slot) {
    return ((size_t)member * route->shape.tokens_max + token) * route->shape.top_k + slot;
}

/* Allocates the arrays for a shape that has been checked, and sets its rows_max if that is 0 or
 * more than may come. Returns 0 or -ENOMEM with text. */
int weft_moe_route_open(struct weft_moe_route *route, const weft_moe_shape *shape,
                        const struct weft_team *team);
void weft_moe_route_close(struct weft_moe_route *route);

/* Checks this member's list. Returns 0 or -EINVAL with text. */
int weft_moe_route_check(const struct weft_moe_route *route, const struct weft_moe_list *list);

/* Assigns a row to each slot with an expert of this member: expert by expert, the rows of one in
 * the order of members, tokens and slots. Writes all arrays of `rows` except data. Returns 0, or
 * -ENOSPC with text, the same on all members, if a member would get more rows than rows_max; then
 * nothing is written. */
int weft_moe_route_place(struct weft_moe_route *route, const struct weft_team *team,
                         const struct weft_moe_list *lists, const weft_moe_rows *rows);

/* Restores row_of from the rows of an earlier dispatch. Returns 0 or -EINVAL with text. */
int weft_moe_route_restore(struct weft_moe_route *route, const weft_moe_rows *rows);

/* Returns whether a member owns an expert of the token with these slots. */
bool weft_moe_route_visits(const struct weft_moe_route *route, const int32_t *experts, int member);

#endif
