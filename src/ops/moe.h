/* SPDX-License-Identifier: BSD-3-Clause */
/* Mixtures of experts, on processors. In a call each member shows data in its workspace, and the
 * others read it, a band of tokens after another:
 *
 *   dispatch  | list | lists of all members, if some are far | a band of tokens, unless symmetric |
 *   combine   | records for each member | records of far members |
 *
 * A record is the sum of a token's rows on one member, and the weights of its slots there. */
#ifndef WEFT_OPS_MOE_H
#define WEFT_OPS_MOE_H

#include "coll/meeting.h"
#include "fused/experts.h"
#include "ops/moe_route.h"

struct weft_moe_handle {
    shmem_team_t team;
    uint64_t number; /* of the handle, the same on all members */
    struct weft_moe_route route;
};

/* Facts of the offers. Members compare the first two; the next two describe scales and
 * weights. */
enum { WEFT_MOE_NUMBER, WEFT_MOE_DTYPE, WEFT_MOE_SCALES, WEFT_MOE_WEIGHTS, WEFT_MOE_TOKENS };

/* Describes an optional array: whether this member passes it, must therefore be given it by the
 * others as well, and has room for what they pass. */
enum { WEFT_MOE_PASSED = 1, WEFT_MOE_MISSED = 2, WEFT_MOE_NO_ROOM = 4 };

/* Finds out whether any member passes the optional array of a fact. Returns 0, or -EINVAL with
 * text, the same on all members, if another member misses it or has no room. */
int weft_moe_agree_optional(const struct weft_meeting *meeting, int fact, const char *name,
                            bool *passed);

/* Checks the type and the number of tokens of a call. Returns 0 or -EINVAL with text. */
int weft_moe_check_sizes(const struct weft_moe_handle *moe, weft_dtype dtype, size_t ntokens);

/* Opens the meeting of a call with a handle, and checks what all calls have in common. Returns 0 or
 * -errno with text, for weft_meeting_post. */
struct weft_moe_call {
    struct weft_meeting meeting;
    struct weft_moe_handle *moe;
    weft_dtype dtype;
    size_t ntokens, row_bytes;
};
int weft_moe_call_open(struct weft_moe_call *call, enum weft_call which, weft_stream stream);

/* Checks that the arrays of rows that every call needs are present. Returns 0 or -EINVAL with text.
 */
int weft_moe_check_rows(const weft_moe_rows *rows);

/* Return the bytes of a member's list, of all lists in a workspace, and of a record; and where a
 * record's weights begin. */
size_t weft_moe_list_bytes(const weft_moe_shape *shape);
size_t weft_moe_lists_bytes(const weft_moe_shape *shape, const struct weft_team *team);
size_t weft_moe_record_bytes(const weft_moe_shape *shape, weft_dtype dtype);
size_t weft_moe_record_weights(const weft_moe_shape *shape, weft_dtype dtype);

/* Returns the number of tokens in a band, the same on all members; 0 if a workspace is too small.
 */
size_t weft_moe_dispatch_width(const weft_moe_shape *shape, weft_dtype dtype,
                               const struct weft_team *team);
size_t weft_moe_combine_width(const weft_moe_shape *shape, weft_dtype dtype,
                              const struct weft_team *team);

#endif
