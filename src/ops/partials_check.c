/* SPDX-License-Identifier: BSD-3-Clause */
/* The offers of the members of a sum of products, and the agreement on them. */
#include <errno.h>
#include <string.h>
#include "base/env.h"
#include "ops/matmul.h"
#include "ops/partials.h"

/* The data of an offer: this member's K, whether sums of a host are sent to far members, and
 * rows_least of this member's library. */
struct offer_data {
    uint64_t depth, any_bits, rows_least;
};

static struct offer_data data_of(const struct weft_meeting *meeting, int member) {
    struct offer_data data;
    memcpy(&data, weft_meeting_offer(meeting, member)->data, sizeof data);
    return data;
}

static size_t largest_of(const struct weft_meeting *meeting, size_t offset) {
    return weft_meeting_largest(meeting, offsetof(struct weft_offer, data) + offset);
}

static int write_data(struct weft_partials *p) {
    struct weft_meeting *meeting = p->meeting;
    p->rows_least = weft_matmul_rows_least(p->a->dtype, p->scales != NULL,
                                           p->a->transposed || p->b->transposed);
    struct offer_data data = {p->a->cols, strcmp(weft_env.bits, "any") == 0, p->rows_least};
    if (!data.any_bits && strcmp(weft_env.bits, "same") != 0)
        return weft_fail_bare(-EINVAL, "WEFT_BITS is '%s': set it to same or any", weft_env.bits);
    memcpy(meeting->mine.data, &data, sizeof data);
    meeting->data_bytes = sizeof data;
    return 0;
}

static int check_product(const struct weft_partials *p, const struct weft_matrix_argument *c) {
    struct weft_matrix_argument a = {"a", -1, p->a, false}, b = {"b", -1, p->b, false};
    int error = weft_check_left(&a, p->scales);
    error = error ? error : weft_check_right(p->a->dtype, p->scales, &b, c);
    error = error ? error : weft_check_equal(&b, "rows", p->b->rows, "a->cols", p->a->cols);
    error = error ? error : weft_check_equal(c, "cols", c->matrix->cols, "b->cols", p->b->cols);
    error = error ? error : weft_check_sum(p->op);
    return error ? error : weft_check_matmul(p->a->dtype, p->scales);
}

int weft_partials_offer(struct weft_partials *p, const struct weft_matrix_argument *c) {
    uint64_t *facts = p->meeting->mine.facts;
    int error = check_product(p, c);
    if (error)
        return error;
    facts[WEFT_FACT_DTYPE] = (uint64_t)c->matrix->dtype;
    facts[WEFT_FACT_OP] = (uint64_t)p->op;
    facts[WEFT_FACT_ROWS] = p->a->rows;
    facts[WEFT_FACT_COLS] = p->b->cols;
    return write_data(p);
}

int weft_partials_agree(struct weft_partials *p) {
    struct weft_meeting *meeting = p->meeting;
    int error = weft_meeting_agree(meeting);
    for (int member = 1; !error && member < meeting->team->npes; member++)
        if (data_of(meeting, member).any_bits != data_of(meeting, 0).any_bits)
            error = weft_fail(-EINVAL, "WEFT_BITS differs between PE %d and PE %d",
                              weft_team_world_pe(meeting->team, 0),
                              weft_team_world_pe(meeting->team, member));
    if (!error)
        p->rows_least = largest_of(meeting, offsetof(struct offer_data, rows_least));
    return error;
}

enum weft_product weft_partials_agreed(const struct weft_partials *p, enum weft_product how,
                                       bool at_once) {
    for (int member = 0; member < p->meeting->team->npes; member++)
        if (data_of(p->meeting, member).rows_least != data_of(p->meeting, 0).rows_least)
            return at_once ? WEFT_PRODUCT_AT_ONCE : WEFT_PRODUCT_IN_PIECES;
    return how;
}

size_t weft_partials_deepest(const struct weft_meeting *meeting) {
    return largest_of(meeting, offsetof(struct offer_data, depth));
}

bool weft_partials_any_bits(const struct weft_meeting *meeting) {
    return data_of(meeting, 0).any_bits;
}
