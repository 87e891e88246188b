/* SPDX-License-Identifier: BSD-3-Clause */
/* What the members of a sum of products tell each other, and must agree on. */
#include <errno.h>
#include <string.h>
#include "base/env.h"
#include "ops/check.h"
#include "ops/matmul.h"
#include "ops/partials.h"

/* What else an offer says: the own K, whether far members are sent sums of a host, and what the own
 * library makes of rows_least. */
struct said {
    uint64_t depth, any_bits, rows_least;
};

static struct said said_by(const struct weft_meeting *meeting, int member) {
    struct said said;
    memcpy(&said, weft_meeting_offer(meeting, member)->data, sizeof said);
    return said;
}

static size_t largest_said(const struct weft_meeting *meeting, size_t offset) {
    return weft_meeting_largest(meeting, offsetof(struct weft_offer, data) + offset);
}

static bool check_bits(const struct weft_partials *p) {
    struct weft_meeting *meeting = p->meeting;
    struct said said = {p->a->cols, strcmp(weft_env.bits, "any") == 0,
                        weft_matmul_rows_least(p->a->dtype, p->scales != NULL)};
    if (!said.any_bits && strcmp(weft_env.bits, "same") != 0)
        return weft_meeting_refuse(meeting, -EINVAL, "WEFT_BITS is '%s': set it to same or any",
                                   weft_env.bits);
    memcpy(meeting->mine.data, &said, sizeof said);
    meeting->data_bytes = sizeof said;
    return true;
}

bool weft_partials_check(const struct weft_partials *p, const char *c_name, const weft_matrix *c) {
    struct weft_meeting *meeting = p->meeting;
    const weft_matrix *a = p->a, *b = p->b;
    struct weft_right right = {b, c, c_name, -1};
    if (!weft_check_left(meeting, "a", a, p->scales) ||
        !weft_check_right(meeting, a->dtype, p->scales, &right) ||
        !weft_check_equal(meeting, "b", -1, "rows", b->rows, "a->cols", a->cols) ||
        !weft_check_equal(meeting, c_name, -1, "cols", c->cols, "b->cols", b->cols) ||
        !weft_check_sum(meeting, p->op) || !weft_check_matmul(meeting, a->dtype, p->scales))
        return false;
    meeting->mine.facts[WEFT_FACT_DTYPE] = (uint64_t)c->dtype;
    meeting->mine.facts[WEFT_FACT_OP] = (uint64_t)p->op;
    meeting->mine.facts[WEFT_FACT_ROWS] = a->rows;
    meeting->mine.facts[WEFT_FACT_COLS] = b->cols;
    return check_bits(p);
}

int weft_partials_agree(struct weft_partials *p) {
    struct weft_meeting *meeting = p->meeting;
    int error = weft_meeting_agree(meeting);
    for (int member = 1; member < meeting->team->npes && !error; member++)
        if (said_by(meeting, member).any_bits != said_by(meeting, 0).any_bits)
            error = weft_fail(-EINVAL, "WEFT_BITS differs between PE %d and PE %d",
                              weft_team_world_pe(meeting->team, 0),
                              weft_team_world_pe(meeting->team, member));
    if (!error)
        p->rows_least = largest_said(meeting, offsetof(struct said, rows_least));
    return error;
}

enum weft_product weft_partials_agreed(const struct weft_partials *p, enum weft_product how,
                                       bool at_once) {
    for (int member = 0; member < p->meeting->team->npes; member++)
        if (said_by(p->meeting, member).rows_least != said_by(p->meeting, 0).rows_least)
            return at_once ? WEFT_PRODUCT_AT_ONCE : WEFT_PRODUCT_IN_PIECES;
    return how;
}

size_t weft_partials_deepest(const struct weft_meeting *meeting) {
    return largest_said(meeting, offsetof(struct said, depth));
}

bool weft_partials_any_bits(const struct weft_meeting *meeting) {
    return said_by(meeting, 0).any_bits;
}
