/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of mixtures of experts: sizes, checked once, and the arrays of routes. */
#include "ops/moe.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/size.h"
#include "coll/band.h"
#include "ops/check.h"

enum { ALIGNMENT = 64 };

/* --- Sizes ----------------------------------------------------------------------------------- */

size_t weft_moe_list_bytes(const weft_moe_shape *shape) {
    size_t of_token = shape->top_k * (sizeof(int32_t) + sizeof(float));
    of_token += shape->scale_cols * sizeof(float);
    return weft_round_up(shape->tokens_max * of_token, ALIGNMENT);
}

size_t weft_moe_lists_bytes(const weft_moe_shape *shape, const struct weft_team *team) {
    return (team->far ? (size_t)team->npes : 1) * weft_moe_list_bytes(shape);
}

size_t weft_moe_record_weights(const weft_moe_shape *shape, weft_dtype dtype) {
    return weft_round_up(shape->cols * weft_element_bytes(dtype), sizeof(float));
}

size_t weft_moe_record_bytes(const weft_moe_shape *shape, weft_dtype dtype) {
    return weft_round_up(weft_moe_record_weights(shape, dtype) + shape->top_k * sizeof(float),
                         ALIGNMENT);
}

size_t weft_moe_dispatch_width(const weft_moe_shape *shape, weft_dtype dtype,
                               const struct weft_team *team) {
    size_t room = weft_team_workspace_capacity(), lists = weft_moe_lists_bytes(shape, team);
    return lists < room ? weft_band_width(room - lists, shape->cols * weft_element_bytes(dtype))
                        : 0;
}

size_t weft_moe_combine_width(const weft_moe_shape *shape, weft_dtype dtype,
                              const struct weft_team *team) {
    size_t record_bytes = weft_moe_record_bytes(shape, dtype);
    size_t token = record_bytes * (size_t)team->npes * (team->far ? 2 : 1);
    size_t width = weft_band_width(weft_team_workspace_capacity(), token);
    if (width == 0) /* a token in a band, in a large team */
        width = weft_team_workspace_capacity() / token > 0;
    return width < shape->tokens_max || width == 0 ? width : shape->tokens_max;
}

/* --- Shapes ---------------------------------------------------------------------------------- */

static int check_numbers(const weft_moe_shape *shape, const struct weft_team *team) {
    size_t npes = (size_t)team->npes, limit = (size_t)PTRDIFF_MAX / 64;
    if (shape->experts == 0 || shape->experts % npes != 0 || shape->experts > INT32_MAX)
        return weft_fail_bare(-EINVAL,
                              "shape->experts is %zu: pass a multiple of the team's %zu members, "
                              "below 2^31",
                              shape->experts, npes);
    if (shape->cols == 0 || shape->tokens_max == 0)
        return weft_fail_bare(-EINVAL, "shape->%s is 0", shape->cols == 0 ? "cols" : "tokens_max");
    if (shape->top_k < 1 || shape->top_k > WEFT_EXPERTS_TOP_K_MAX)
        return weft_fail_bare(-EINVAL, "shape->top_k is %zu, not 1 to %d", shape->top_k,
                              WEFT_EXPERTS_TOP_K_MAX);
    if (shape->tokens_max > INT32_MAX / shape->top_k / npes)
        return weft_fail_bare(-EINVAL,
                              "shape->tokens_max is %zu, but n_pes * tokens_max * top_k must be "
                              "less than 2^31",
                              shape->tokens_max);
    if (shape->cols > limit / (shape->tokens_max + 1) || shape->cols > UINT32_MAX ||
        shape->scale_cols > limit / (shape->tokens_max + 1) || shape->scale_cols > INT32_MAX)
        return weft_fail_bare(-EINVAL,
                              "shape->cols is %zu and scale_cols %zu, more than memory has",
                              shape->cols, shape->scale_cols);
    return weft_check_type(shape->dtype, NULL);
}

/* Checks that the workspace has room for a band. */
static int check_room(const weft_moe_shape *shape, const struct weft_team *team) {
    if (weft_moe_dispatch_width(shape, shape->dtype, team) > 0 &&
        weft_moe_combine_width(shape, shape->dtype, team) > 0)
        return 0;
    return weft_fail_bare(
        -ENOMEM,
        "lists of %zu tokens and rows of %zu elements do not fit into a workspace "
        "of %zu bytes",
        shape->tokens_max, shape->cols, weft_team_workspace_capacity());
}

/* --- Handles --------------------------------------------------------------------------------- */

/* What members show each other when they make a handle. */
struct creation {
    weft_moe_shape shape;
    uint64_t number; /* member 0's is used */
};
_Static_assert(sizeof(struct creation) <= WEFT_OFFER_BYTES, "an offer has room for it");

/* The numbers of a shape, in the order of its fields. */
enum { NUMBERS = 7 };
struct numbers {
    size_t of[NUMBERS];
};

static struct numbers numbers_of(const struct weft_meeting *meeting, int member) {
    struct creation theirs;
    memcpy(&theirs, weft_meeting_offer(meeting, member)->data, sizeof theirs);
    const weft_moe_shape *s = &theirs.shape;
    return (struct numbers){{s->experts, s->top_k, s->cols, s->scale_cols, s->tokens_max,
                             s->rows_max, (size_t)s->dtype}};
}

static int compare_shapes(const struct weft_meeting *meeting) {
    static const char *const names[NUMBERS] = {"experts",    "top_k",    "cols", "scale_cols",
                                               "tokens_max", "rows_max", "dtype"};
    struct numbers first = numbers_of(meeting, 0);
    for (int member = 1; member < meeting->team->npes; member++) {
        struct numbers theirs = numbers_of(meeting, member);
        for (int i = 0; i < NUMBERS; i++)
            if (theirs.of[i] != first.of[i])
                return weft_fail(-EINVAL, "shape->%s is %zu on PE %d, but %zu on PE %d", names[i],
                                 first.of[i], weft_team_world_pe(meeting->team, 0), theirs.of[i],
                                 weft_team_world_pe(meeting->team, member));
    }
    return 0;
}

static int check_shape(const weft_moe_shape *shape, const struct weft_team *team) {
    if (!shape)
        return weft_fail_bare(-EINVAL, "shape is NULL");
    int error = check_numbers(shape, team);
    return error ? error : check_room(shape, team);
}

int weft_moe_create(shmem_team_t team, const weft_moe_shape *shape, weft_moe *moe) {
    static _Atomic uint64_t handles;
    WEFT_IN_CALL(__func__);
    struct weft_meeting meeting;
    struct creation mine = {.number = ++handles}, first;
    struct weft_moe_handle *new = calloc(1, sizeof *new);
    int error = weft_meeting_open(&meeting, team, WEFT_CALL_MOE_CREATE, WEFT_STREAM_HOST);
    if (!error && !new)
        error = weft_fail_bare(-ENOMEM, "there is no memory for a handle");
    error = error ? error : check_shape(shape, meeting.team);
    error = error ? error : weft_moe_route_open(&new->route, shape, meeting.team);
    if (!error) {
        mine.shape = *shape;
        memcpy(meeting.mine.data, &mine, sizeof mine);
        meeting.data_bytes = sizeof mine;
    }
    weft_meeting_post(&meeting, error);
    error = weft_meeting_agree(&meeting);
    error = error ? error : compare_shapes(&meeting);
    if (error) {
        if (new)
            weft_moe_route_close(&new->route);
        free(new);
        return weft_meeting_close(&meeting, error);
    }
    memcpy(&first, weft_meeting_offer(&meeting, 0)->data, sizeof first);
    new->team = team;
    new->number = first.number;
    *moe = new;
    return weft_meeting_close(&meeting, 0);
}

int weft_moe_destroy(weft_moe moe) {
    WEFT_IN_CALL(__func__);
    struct weft_moe_call call = {.moe = moe};
    int error = weft_moe_call_open(&call, WEFT_CALL_MOE_DESTROY, WEFT_STREAM_HOST);
    weft_meeting_post(&call.meeting, error);
    error = weft_meeting_agree(&call.meeting);
    if (!error) {
        weft_moe_route_close(&moe->route);
        free(moe);
    }
    return weft_meeting_close(&call.meeting, error);
}

size_t weft_moe_rows_max(weft_moe moe) {
    return moe->route.shape.rows_max;
}

int weft_moe_agree_optional(const struct weft_meeting *meeting, int fact, const char *name,
                            bool *passed) {
    const struct weft_team *team = meeting->team;
    int passes = -1, lacks = -1;
    for (int member = team->npes - 1; member >= 0; member--) {
        uint64_t state = weft_meeting_offer(meeting, member)->facts[fact];
        passes = state & WEFT_MOE_PASSED ? member : passes;
        lacks = state & (WEFT_MOE_MISSED | WEFT_MOE_NO_ROOM) ? member : lacks;
    }
    *passed = passes >= 0;
    if (passes < 0 || lacks < 0)
        return 0;
    bool room = weft_meeting_offer(meeting, lacks)->facts[fact] & WEFT_MOE_NO_ROOM;
    return weft_fail(-EINVAL, "%s is passed on PE %d, but %s%s is NULL on PE %d", name,
                     weft_team_world_pe(team, passes), room ? "rows->" : "", name,
                     weft_team_world_pe(team, lacks));
}

int weft_moe_check_sizes(const struct weft_moe_handle *moe, weft_dtype dtype, size_t ntokens) {
    const weft_moe_shape *shape = &moe->route.shape;
    int error = weft_check_type(dtype, NULL);
    if (error)
        return error;
    if (ntokens > shape->tokens_max)
        return weft_fail_bare(-EINVAL, "ntokens is %zu, but the shape's tokens_max is %zu", ntokens,
                              shape->tokens_max);
    if (weft_element_bytes(dtype) > weft_element_bytes(shape->dtype))
        return weft_fail_bare(-EINVAL, "dtype is %s, wider than the shape's %s",
                              weft_element_name(dtype), weft_element_name(shape->dtype));
    return 0;
}

int weft_moe_check_rows(const weft_moe_rows *rows) {
    const char *missing = !rows            ? "rows"
                          : !rows->sources ? "rows->sources"
                          : !rows->offsets ? "rows->offsets"
                                           : NULL;
    return missing ? weft_fail_bare(-EINVAL, "%s is NULL", missing) : 0;
}

int weft_moe_call_open(struct weft_moe_call *call, enum weft_call which, weft_stream stream) {
    struct weft_moe_handle *moe = call->moe;
    int error =
        weft_meeting_open(&call->meeting, moe ? moe->team : SHMEM_TEAM_INVALID, which, stream);
    if (!moe)
        return weft_fail_bare(-EINVAL, "moe is NULL");
    if (error)
        return error;
    call->meeting.mine.facts[WEFT_MOE_NUMBER] = moe->number;
    if (which == WEFT_CALL_MOE_DESTROY)
        return 0;
    error = weft_moe_check_sizes(moe, call->dtype, call->ntokens);
    call->row_bytes = moe->route.shape.cols * weft_element_bytes(call->dtype);
    call->meeting.mine.facts[WEFT_MOE_DTYPE] = (uint64_t)call->dtype;
    call->meeting.mine.facts[WEFT_MOE_TOKENS] = call->ntokens;
    return error;
}
