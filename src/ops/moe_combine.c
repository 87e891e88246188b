/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_moe_combine on processors. Each member adds its rows of each token to a record, and each
 * token's member adds the records of all members in their order.
 *
 * A band is a range of tokens of every member. A member's records for another one lie side by side,
 * those of the band's tokens without rows on that member are left out: both members know from the
 * token's experts which these are. */
#include <errno.h>
#include <string.h>
#include "coll/band.h"
#include "coll/remote_matrix.h"
#include "ops/check.h"
#include "ops/moe_on_stream.h"

struct combine {
    struct weft_moe_call call;
    const weft_moe_rows *rows;
    const float *factors;
    const int32_t *experts;
    void *tokens;
    float *weights;
    size_t width, record_bytes;
};

static const weft_moe_shape *shape_of(const struct combine *c) {
    return &c->call.moe->route.shape;
}

/* Returns the offset in a workspace of the records for `member`, and of the place for those that a
 * far member has made. */
static size_t records_for(const struct combine *c, int member) {
    return (size_t)member * c->width * c->record_bytes;
}
static size_t records_from(const struct combine *c, int member) {
    return records_for(c, c->call.meeting.team->npes + member);
}

static weft_matrix row_at(const struct combine *c, const void *at) {
    size_t cols = shape_of(c)->cols;
    return (weft_matrix){(void *)at, 1, cols, cols, c->call.dtype, false};
}

static float *weights_in(const struct combine *c, const void *record) {
    return (float *)((char *)record + weft_moe_record_weights(shape_of(c), c->call.dtype));
}

/* --- Records ---------------------------------------------------------------------------------- */

/* Writes the record of a token whose slots have these rows. Returns false if it has none. */
static bool write_record(const struct combine *c, const int32_t *rows, void *record) {
    weft_matrix sources[WEFT_EXPERTS_TOP_K_MAX], dest = row_at(c, record);
    float factors[WEFT_EXPERTS_TOP_K_MAX];
    int count = 0;
    for (size_t slot = 0; slot < shape_of(c)->top_k; slot++) {
        if (rows[slot] < 0)
            continue;
        size_t row = (size_t)rows[slot];
        sources[count] = row_at(c, (const char *)c->rows->data + row * c->call.row_bytes);
        factors[count++] = c->factors ? c->factors[row] : 1;
        if (c->rows->weights)
            weights_in(c, record)[slot] = c->rows->weights[row];
    }
    if (count > 0)
        weft_elements_sum_scaled(&dest, sources, c->factors ? factors : NULL, count);
    return count > 0;
}

static void write_records(const void *call, size_t number) {
    const struct combine *c = call;
    const struct weft_team *team = c->call.meeting.team;
    const struct weft_moe_route *route = &c->call.moe->route;
    struct weft_band band = weft_band_of(shape_of(c)->tokens_max, c->width, number);
    char *workspace = weft_team_workspace_of(team, team->my_pe);
    for (int member = 0; member < team->npes; member++) {
        char *record = workspace + records_for(c, member);
        for (size_t i = 0; i < band.nelems; i++) {
            size_t slot = weft_moe_slot(route, member, band.first + i, 0);
            if (write_record(c, &route->row_of[slot], record))
                record += c->record_bytes;
        }
    }
}

/* --- Sums ------------------------------------------------------------------------------------- */

static const int32_t *experts_of(const struct combine *c, size_t token) {
    return c->experts + token * shape_of(c)->top_k;
}

static size_t count_records(const struct combine *c, struct weft_band band, int member) {
    size_t count = 0;
    for (size_t i = 0; i < band.nelems; i++)
        count += weft_moe_route_visits(&c->call.moe->route, experts_of(c, band.first + i), member);
    return count;
}

/* Finds the first record of the band that each member has made for this one, and copies those of
 * far members here. */
static void find_records(const struct combine *c, struct weft_band band, const char **records) {
    const struct weft_team *team = c->call.meeting.team;
    char *workspace = weft_team_workspace_of(team, team->my_pe);
    for (int distance = 1; distance <= team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        struct weft_place place = {WEFT_SPACE_WORKSPACE, records_for(c, team->my_pe)};
        records[member] = weft_remote_matrix_here(place, team, member);
        if (records[member])
            continue;
        size_t bytes = count_records(c, band, member) * c->record_bytes;
        records[member] = workspace + records_from(c, member);
        if (bytes > 0)
            weft_remote_matrix_pull(workspace + records_from(c, member), place, bytes, team,
                                    member);
    }
    weft_remote_matrix_complete(team);
}

/* Copies the weights of the slots that belong to `member`. */
static void take_weights(const struct combine *c, size_t token, int member, const char *record) {
    size_t top_k = shape_of(c)->top_k;
    const int32_t *experts = experts_of(c, token);
    for (size_t slot = 0; slot < top_k; slot++)
        if (experts[slot] >= 0 && weft_moe_owner(&c->call.moe->route, experts[slot]) == member)
            c->weights[token * top_k + slot] = weights_in(c, record)[slot];
}

/* Adds the records of a token, and moves `records` to the next ones. */
static void sum_token(const struct combine *c, size_t token, const char **records) {
    int npes = c->call.meeting.team->npes, count = 0;
    char *to = (char *)c->tokens + token * c->call.row_bytes;
    weft_matrix sources[npes], dest = row_at(c, to);
    for (int member = 0; member < npes; member++) {
        if (!weft_moe_route_visits(&c->call.moe->route, experts_of(c, token), member))
            continue;
        sources[count++] = row_at(c, records[member]);
        if (c->weights)
            take_weights(c, token, member, records[member]);
        records[member] += c->record_bytes;
    }
    if (count > 0)
        weft_elements_reduce(&dest, sources, count, WEFT_SUM);
    else
        memset(to, 0, c->call.row_bytes);
}

static int sum_band(const void *call, size_t number) {
    const struct combine *c = call;
    struct weft_band band = weft_band_of(c->call.ntokens, c->width, number);
    const char *records[c->call.meeting.team->npes];
    find_records(c, band, records);
    for (size_t i = 0; i < band.nelems; i++)
        sum_token(c, band.first + i, records);
    return 0;
}

/* --- The call -------------------------------------------------------------------------------- */

static int check_rows(const struct combine *c) {
    const weft_moe_rows *rows = c->rows;
    size_t each = c->call.moe->route.experts_each;
    int error = weft_moe_check_rows(rows);
    error = error ? error
                  : weft_check_pointer("rows->offsets", rows->offsets, sizeof *rows->offsets, "");
    error = error ? error
                  : weft_check_pointer("rows->sources", rows->sources, sizeof *rows->sources, "");
    error = error ? error : weft_moe_route_restore(&c->call.moe->route, rows);
    return error ? error
                 : weft_check_pointer("rows->data", rows->data,
                                      (size_t)rows->offsets[each] * c->call.row_bytes, "");
}

static int check_combine(const struct combine *c) {
    size_t ntokens = c->call.ntokens;
    if (c->call.dtype < WEFT_F32 || c->call.dtype > WEFT_F16)
        return weft_fail_bare(-EINVAL, "dtype is %s, which this call does not add",
                              weft_element_name(c->call.dtype));
    int error = weft_check_pointer("tokens", c->tokens, ntokens * c->call.row_bytes, "");
    error =
        error ? error : weft_check_pointer("experts", c->experts, ntokens * sizeof *c->experts, "");
    error = error ? error
                  : weft_moe_route_check(&c->call.moe->route,
                                         &(struct weft_moe_list){c->experts, NULL, NULL, ntokens});
    return error ? error : check_rows(c);
}

/* Makes the records of the first band. */
static int offer_records(struct combine *c) {
    const struct weft_moe_shape *shape = shape_of(c);
    struct weft_meeting *meeting = &c->call.meeting;
    size_t each = c->call.moe->route.experts_each;
    bool lacks = !c->rows->weights && c->rows->offsets[each] > 0;
    c->record_bytes = weft_moe_record_bytes(shape, c->call.dtype);
    c->width = weft_moe_combine_width(shape, c->call.dtype, meeting->team);
    meeting->mine.facts[WEFT_MOE_WEIGHTS] =
        (c->weights ? WEFT_MOE_PASSED : 0) | (lacks ? WEFT_MOE_NO_ROOM : 0);
    int error = weft_team_workspace_commit(meeting->team, records_for(c, meeting->team->npes));
    if (!error && meeting->team->far)
        error = weft_team_workspace_commit(meeting->team, records_from(c, meeting->team->npes));
    if (!error)
        write_records(c, 0);
    return error;
}

static void add_records(struct combine *c) {
    struct weft_meeting *meeting = &c->call.meeting;
    size_t most = weft_meeting_largest(meeting, offsetof(struct weft_offer, facts) +
                                                    WEFT_MOE_TOKENS * sizeof(uint64_t));
    struct weft_bands bands = {.meeting = meeting,
                               .count = weft_band_count(most, c->width),
                               .stage = write_records,
                               .take = sum_band};
    if (c->weights)
        memset(c->weights, 0, c->call.ntokens * shape_of(c)->top_k * sizeof *c->weights);
    weft_bands_run(&bands, c);
    weft_sync_barrier(meeting->team);
}

int weft_moe_combine(weft_moe moe, weft_dtype dtype, const weft_moe_rows *rows,
                     const float *factors, const int32_t *experts, size_t ntokens, void *tokens,
                     float *weights, weft_stream stream) {
    WEFT_IN_CALL(__func__);
    if (stream != WEFT_STREAM_HOST) {
        struct weft_fused_experts e = {.dtype = dtype,
                                       .ntokens = ntokens,
                                       .combines = true,
                                       .tokens = tokens,
                                       .experts = experts,
                                       .weights = weights,
                                       .factors = factors,
                                       .rows = rows};
        return weft_moe_combine_on_stream(moe, &e, stream);
    }
    struct combine c = {.call = {.moe = moe, .dtype = dtype, .ntokens = ntokens},
                        .rows = rows,
                        .factors = factors,
                        .experts = experts,
                        .tokens = tokens,
                        .weights = weights};
    struct weft_meeting *meeting = &c.call.meeting;
    bool passed;
    int error = weft_moe_call_open(&c.call, WEFT_CALL_MOE_COMBINE, stream);
    error = error ? error : check_combine(&c);
    error = error ? error : offer_records(&c);
    weft_meeting_post(meeting, error);
    error = weft_meeting_agree(meeting);
    error = error ? error : weft_moe_agree_optional(meeting, WEFT_MOE_WEIGHTS, "weights", &passed);
    if (!error)
        add_records(&c);
    return weft_meeting_close(meeting, error);
}
