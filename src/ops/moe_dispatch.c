/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_moe_dispatch on processors. The members show their lists, and their tokens in place or in
 * bands; each then knows all routes, and copies the rows for its experts. A row crosses to another
 * host once for each token, and is copied here for the token's other experts. */
#include <errno.h>
#include <string.h>
#include "coll/band.h"
#include "coll/remote_matrix.h"
#include "ops/check.h"
#include "ops/moe_on_stream.h"

struct dispatch {
    struct weft_moe_call call;
    const void *tokens;
    const weft_moe_rows *rows;
    struct weft_moe_list list; /* this member's */
    size_t width;              /* tokens in a band */
    bool scales, weights;      /* whether they are sent; known after the agreement */
};

static const weft_moe_shape *shape_of(const struct dispatch *d) {
    return &d->call.moe->route.shape;
}

/* --- The offer ------------------------------------------------------------------------------- */

/* Returns the offset of a member's list: in its own workspace and, if some members are far, also in
 * this member's, as a copy. */
static size_t list_at(const struct dispatch *d, int member) {
    return d->call.meeting.team->far ? (size_t)member * weft_moe_list_bytes(shape_of(d)) : 0;
}

/* The arrays of a list that is stored at `at`, with room for tokens_max tokens. */
struct stored_list {
    int32_t *experts;
    float *weights, *scales;
};

static struct stored_list list_in(const struct dispatch *d, void *at) {
    size_t slots = shape_of(d)->tokens_max * shape_of(d)->top_k;
    int32_t *experts = at;
    float *weights = (float *)(experts + slots);
    return (struct stored_list){experts, weights, weights + slots};
}

static void write_array(void *to, const void *from, size_t bytes) {
    if (from && bytes > 0)
        memcpy(to, from, bytes);
}

static void write_list(const struct dispatch *d) {
    const struct weft_team *team = d->call.meeting.team;
    char *workspace = weft_team_workspace_of(team, team->my_pe);
    size_t ntokens = d->list.ntokens, slots = ntokens * shape_of(d)->top_k;
    struct stored_list to = list_in(d, workspace + list_at(d, team->my_pe));
    write_array(to.experts, d->list.experts, slots * sizeof *to.experts);
    write_array(to.weights, d->list.weights, slots * sizeof *to.weights);
    write_array(to.scales, d->list.scales, ntokens * shape_of(d)->scale_cols * sizeof *to.scales);
}

static void stage_tokens(const void *call, size_t number) {
    const struct dispatch *d = call;
    const struct weft_team *team = d->call.meeting.team;
    struct weft_band band = weft_band_of(d->list.ntokens, d->width, number);
    size_t row = d->call.row_bytes;
    if (d->call.meeting.mine.input.space != WEFT_SPACE_WORKSPACE || band.nelems == 0)
        return;
    memcpy(weft_place_at(d->call.meeting.mine.input, team, team->my_pe),
           (const char *)d->tokens + band.first * row, band.nelems * row);
}

/* Shows the list, and the tokens in place if they are symmetric, otherwise a copy of the first
 * band. A member alone reads its tokens itself. */
static int offer_tokens(struct dispatch *d) {
    struct weft_meeting *meeting = &d->call.meeting;
    struct weft_place *place = &meeting->mine.input;
    size_t row = d->call.row_bytes, bytes = weft_moe_lists_bytes(shape_of(d), meeting->team);
    d->width = weft_moe_dispatch_width(shape_of(d), d->call.dtype, meeting->team);
    *place = weft_place_of(d->tokens, d->list.ntokens * row);
    if (place->space == WEFT_SPACE_PRIVATE && meeting->team->npes > 1) {
        *place = (struct weft_place){WEFT_SPACE_WORKSPACE, bytes};
        bytes += weft_band_of(d->list.ntokens, d->width, 0).nelems * row;
    }
    int error = weft_team_workspace_commit(meeting->team, bytes);
    if (error)
        return error;
    write_list(d);
    stage_tokens(d, 0);
    return 0;
}

/* --- Rows ------------------------------------------------------------------------------------- */

/* Finds the members' lists, and copies those of far members here. */
static void find_lists(const struct dispatch *d, struct weft_moe_list *lists) {
    const struct weft_meeting *meeting = &d->call.meeting;
    const struct weft_team *team = meeting->team;
    char *workspace = weft_team_workspace_of(team, team->my_pe);
    size_t bytes = weft_moe_list_bytes(shape_of(d));
    for (int distance = 1; distance <= team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        struct weft_place place = {WEFT_SPACE_WORKSPACE, list_at(d, member)};
        const void *here = weft_remote_matrix_here(place, team, member);
        void *at = here ? (void *)here : workspace + place.offset;
        if (!here)
            weft_remote_matrix_pull(at, place, bytes, team, member);
        struct stored_list list = list_in(d, at);
        lists[member] = (struct weft_moe_list){
            list.experts, d->weights ? list.weights : NULL, d->scales ? list.scales : NULL,
            weft_meeting_offer(meeting, member)->facts[WEFT_MOE_TOKENS]};
    }
    weft_remote_matrix_complete(team);
}

/* Whether a token's first row is copied from its member, and its other rows from the first. */
enum { FROM_MEMBER = 1, FROM_FIRST = 2 };

/* Copies a token, which a member shows at `place`, to its rows. */
static void take_token(const struct dispatch *d, int member, size_t token, struct weft_place place,
                       int steps) {
    const struct weft_moe_route *route = &d->call.moe->route;
    const struct weft_team *team = d->call.meeting.team;
    const int32_t *rows = &route->row_of[weft_moe_slot(route, member, token, 0)];
    size_t bytes = d->call.row_bytes;
    char *first = NULL;
    for (size_t slot = 0; slot < route->shape.top_k; slot++) {
        if (rows[slot] < 0)
            continue;
        char *to = (char *)d->rows->data + (size_t)rows[slot] * bytes;
        if (!first) {
            first = to;
            if ((steps & FROM_MEMBER) && member == team->my_pe)
                memcpy(to, (const char *)d->tokens + token * bytes, bytes);
            else if (steps & FROM_MEMBER)
                weft_remote_matrix_take(to, place, bytes, team, member);
        } else if (steps & FROM_FIRST) {
            memcpy(to, first, bytes);
        }
    }
}

/* Returns the tokens that a member shows in a band, and in *place the first of them. A member reads
 * its own tokens, and those of a symmetric array, with the first band. */
static struct weft_band shown_by(const struct dispatch *d, int member, size_t number,
                                 struct weft_place *place) {
    const struct weft_offer *offer = weft_meeting_offer(&d->call.meeting, member);
    size_t ntokens = offer->facts[WEFT_MOE_TOKENS];
    *place = offer->input;
    if (member != d->call.meeting.team->my_pe && place->space == WEFT_SPACE_WORKSPACE)
        return weft_band_of(ntokens, d->width, number);
    return (struct weft_band){0, number == 0 ? ntokens : 0};
}

static void take_member(const struct dispatch *d, int member, size_t number, int steps) {
    struct weft_place place;
    struct weft_band band = shown_by(d, member, number, &place);
    for (size_t i = 0; i < band.nelems; i++, place.offset += d->call.row_bytes)
        take_token(d, member, band.first + i, place, steps);
}

static int take_band(const void *call, size_t number) {
    const struct dispatch *d = call;
    const struct weft_team *team = d->call.meeting.team;
    for (int distance = 1; distance <= team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        bool far = weft_team_member_is_far(team, member);
        take_member(d, member, number, far ? FROM_MEMBER : FROM_MEMBER | FROM_FIRST);
        if (far) {
            weft_remote_matrix_complete(team);
            take_member(d, member, number, FROM_FIRST);
        }
    }
    return 0;
}

/* Returns the number of bands that show all tokens: the same on all members. */
static size_t count_bands(const struct dispatch *d) {
    const struct weft_meeting *meeting = &d->call.meeting;
    size_t most = 0;
    for (int member = 0; member < meeting->team->npes; member++) {
        const struct weft_offer *offer = weft_meeting_offer(meeting, member);
        size_t ntokens = offer->facts[WEFT_MOE_TOKENS];
        if (offer->input.space == WEFT_SPACE_WORKSPACE && ntokens > most)
            most = ntokens;
    }
    return weft_band_count(most, d->width);
}

/* --- The call -------------------------------------------------------------------------------- */

/* Describes an optional array and the room for it. */
static uint64_t optional_of(const struct dispatch *d, const float *sent, const float *room) {
    uint64_t sends = d->list.ntokens == 0 ? 0 : sent ? WEFT_MOE_PASSED : WEFT_MOE_MISSED;
    return sends | (room ? 0 : WEFT_MOE_NO_ROOM);
}

static int check_dispatch(const struct dispatch *d) {
    size_t ntokens = d->list.ntokens;
    int error = weft_check_pointer("tokens", d->tokens, ntokens * d->call.row_bytes, "");
    error = error ? error
                  : weft_check_pointer("experts", d->list.experts,
                                       ntokens * sizeof *d->list.experts, "");
    error = error ? error : weft_moe_check_rows(d->rows);
    error = error ? error
                  : weft_check_pointer("rows->data", d->rows->data,
                                       shape_of(d)->rows_max * d->call.row_bytes, "");
    return error ? error : weft_moe_route_check(&d->call.moe->route, &d->list);
}

static int agree_optional(struct dispatch *d) {
    const struct weft_meeting *meeting = &d->call.meeting;
    int error = weft_moe_agree_optional(meeting, WEFT_MOE_SCALES, "scales", &d->scales);
    return error ? error
                 : weft_moe_agree_optional(meeting, WEFT_MOE_WEIGHTS, "weights", &d->weights);
}

static int move_rows(struct dispatch *d) {
    struct weft_meeting *meeting = &d->call.meeting;
    struct weft_moe_list lists[meeting->team->npes];
    find_lists(d, lists);
    int error = weft_moe_route_place(&d->call.moe->route, meeting->team, lists, d->rows);
    struct weft_bands bands = {
        .meeting = meeting, .count = count_bands(d), .stage = stage_tokens, .take = take_band};
    if (!error)
        weft_bands_run(&bands, d);
    weft_sync_barrier(meeting->team);
    return error;
}

int weft_moe_dispatch(weft_moe moe, weft_dtype dtype, const void *tokens, const float *scales,
                      const int32_t *experts, const float *weights, size_t ntokens,
                      const weft_moe_rows *rows, weft_stream stream) {
    WEFT_IN_CALL(__func__);
    if (stream != WEFT_STREAM_HOST) {
        struct weft_fused_experts e = {.dtype = dtype,
                                       .ntokens = ntokens,
                                       .tokens = (void *)tokens,
                                       .experts = experts,
                                       .weights = (float *)weights,
                                       .scales = scales,
                                       .rows = rows};
        return weft_moe_dispatch_on_stream(moe, &e, stream);
    }
    struct dispatch d = {.call = {.moe = moe, .dtype = dtype, .ntokens = ntokens},
                         .tokens = tokens,
                         .rows = rows,
                         .list = {experts, weights, scales, ntokens}};
    struct weft_meeting *meeting = &d.call.meeting;
    int error = weft_moe_call_open(&d.call, WEFT_CALL_MOE_DISPATCH, stream);
    error = error ? error : check_dispatch(&d);
    if (!error) {
        meeting->mine.facts[WEFT_MOE_SCALES] = optional_of(&d, scales, rows->scales);
        meeting->mine.facts[WEFT_MOE_WEIGHTS] = optional_of(&d, weights, rows->weights);
        error = offer_tokens(&d);
    }
    weft_meeting_post(meeting, error);
    error = weft_meeting_agree(meeting);
    error = error ? error : agree_optional(&d);
    if (!error)
        error = move_rows(&d);
    return weft_meeting_close(meeting, error);
}
