/* SPDX-License-Identifier: BSD-3-Clause */
/* On one host every member reads from every other. Copies begin with the next one, or with its own
 * block, so that the members do not all read the same memory at once. Every element is reduced by
 * one loop over the members in team order, so it has the same bits on every member. */
#include "coll/vector.h"
#include <string.h>
#include "coll/band.h"
#include "coll/elements.h"
#include "coll/hosts_vector.h"
#include "coll/split.h"

/* A call. A source has `parts` blocks, which are staged side by side. */
struct vector_call {
    struct weft_meeting *meeting;
    const struct weft_vector *vector;
    size_t elem_bytes, parts, width; /* width of a band, in elements of a block */
};

static struct vector_call vector_call_of(struct weft_meeting *meeting,
                                         const struct weft_vector *vector) {
    enum { GRAIN = 64 };
    size_t parts = vector->plan.source_block ? (size_t)meeting->team->npes : 1;
    size_t elem = weft_element_bytes(vector->dtype);
    size_t width = weft_band_width(weft_team_workspace_capacity() / 2, elem * parts);
    width -= width % GRAIN;
    return (struct vector_call){meeting, vector, elem, parts, width > 0 ? width : 1};
}

/* Returns whether the inputs are inside the offers: the same on all members. */
static bool is_inside(const struct vector_call *c) {
    return c->vector->nelems <= WEFT_OFFER_BYTES / (c->elem_bytes * c->parts);
}

/* Returns whether the vector crosses by hosts: the same on all members. */
static bool crosses_hosts(const struct vector_call *c) {
    return c->meeting->team->far && !is_inside(c);
}

/* Returns whether the call is an all-reduce. */
static bool folds_for_all(const struct vector_call *c) {
    return c->vector->op && c->parts == 1;
}

/* Returns whether every member reduces the whole vector itself: reading a small one costs less than
 * another synchronisation. */
static bool folds_whole(const struct vector_call *c) {
    enum { WHOLE_BYTES_MAX = 8 << 10 };
    return c->vector->nelems * c->elem_bytes <= WHOLE_BYTES_MAX;
}

static struct weft_band band_of(const struct vector_call *c, size_t band) {
    return weft_band_of(c->vector->nelems, c->width, band);
}

/* --- The offer ------------------------------------------------------------------------------- */

/* Copies the band to the workspace if the peers read this member's input there. */
static void stage_vector(const void *call, size_t number) {
    const struct vector_call *c = call;
    const struct weft_vector *vector = c->vector;
    struct weft_team *team = c->meeting->team;
    if (c->meeting->mine.input.space != WEFT_SPACE_WORKSPACE)
        return;
    struct weft_band band = band_of(c, number);
    size_t bytes = band.nelems * c->elem_bytes;
    char *to = weft_place_at(c->meeting->mine.input, team, team->my_pe);
    for (size_t part = 0; part < c->parts; part++) {
        size_t from = part * vector->nelems + band.first;
        memcpy(to + part * bytes, (const char *)vector->source + from * c->elem_bytes, bytes);
    }
}

/* Offers the place of this member's reduced chunks: its dest if that is symmetric, otherwise the
 * workspace after the input's band. */
static int offer_output(const struct vector_call *c) {
    struct weft_place *place = &c->meeting->mine.output;
    size_t band_bytes = band_of(c, 0).nelems * c->elem_bytes;
    *place = weft_place_of(c->vector->dest, c->vector->nelems * c->elem_bytes);
    if (place->space != WEFT_SPACE_PRIVATE)
        return 0;
    *place = (struct weft_place){WEFT_SPACE_WORKSPACE, band_bytes};
    return weft_team_workspace_commit(c->meeting->team, 2 * band_bytes);
}

/* Offers the input in place if it is symmetric, otherwise, or if `copy`, a copy of the first band.
 */
static int offer_input(const struct vector_call *c, bool copy) {
    struct weft_place *place = &c->meeting->mine.input;
    *place = weft_place_of(c->vector->source, c->vector->nelems * c->parts * c->elem_bytes);
    if (!copy && place->space != WEFT_SPACE_PRIVATE)
        return 0;
    *place = (struct weft_place){WEFT_SPACE_WORKSPACE, 0};
    int error = weft_team_workspace_commit(c->meeting->team,
                                           band_of(c, 0).nelems * c->parts * c->elem_bytes);
    if (!error)
        stage_vector(c, 0);
    return error;
}

/* --- Over hosts ------------------------------------------------------------------------------ */

static void copy_bytes(void *to, const void *from, size_t bytes) {
    if (to != from)
        memcpy(to, from, bytes);
}

static struct weft_hosts_vector hosts_vector_of(const struct vector_call *c,
                                                struct weft_reduction *reduction) {
    const struct weft_vector *vector = c->vector;
    if (vector->op)
        *reduction = weft_element_reduction(vector->dtype, *vector->op);
    return (struct weft_hosts_vector){.team = c->meeting->team,
                                      .plan = vector->plan,
                                      .dest = vector->dest,
                                      .source = vector->source,
                                      .nelems = vector->nelems,
                                      .elem_bytes = c->elem_bytes,
                                      .reduction = vector->op ? reduction : NULL,
                                      .entered = true,
                                      .copy = copy_bytes};
}

static int offer_to_hosts(const struct vector_call *c) {
    const struct weft_vector *vector = c->vector;
    struct weft_reduction reduction;
    struct weft_hosts_vector over = hosts_vector_of(c, &reduction);
    size_t block = vector->nelems * c->elem_bytes;
    size_t blocks = vector->plan.dest_block ? (size_t)c->meeting->team->npes : 1;
    c->meeting->mine.output = weft_place_of(vector->dest, block * blocks);
    if (weft_plan_sends(&vector->plan, c->meeting->team->my_pe))
        c->meeting->mine.input = weft_place_of(vector->source, block * c->parts);
    return weft_team_workspace_commit(c->meeting->team, weft_hosts_vector_workspace(&over));
}

static bool is_place(struct weft_place place, enum weft_space space, size_t offset) {
    return place.space == space && place.offset == offset &&
           (space == WEFT_SPACE_HEAP || space == WEFT_SPACE_STATICS);
}

/* Finds out from the offers whether dest is the same symmetric object on all members, and whether
 * source is, or whether the sources are the members' own blocks of dest. */
static void find_symmetric(const struct vector_call *c, struct weft_hosts_vector *over) {
    const struct weft_plan *plan = &c->vector->plan;
    const struct weft_offer *first =
        weft_meeting_offer(c->meeting, plan->sender < 0 ? 0 : plan->sender);
    struct weft_place to = first->output, from = first->input;
    bool alike = true, in_place = plan->dest_block != 0;
    over->dest_symmetric = true;
    for (int member = 0; member < c->meeting->team->npes; member++) {
        const struct weft_offer *offer = weft_meeting_offer(c->meeting, member);
        size_t block = to.offset + (size_t)member * (size_t)plan->dest_block;
        over->dest_symmetric &= is_place(offer->output, to.space, to.offset);
        if (weft_plan_sends(plan, member)) {
            alike &= is_place(offer->input, from.space, from.offset);
            in_place &= is_place(offer->input, to.space, block);
        }
    }
    over->source_symmetric = alike || (in_place && over->dest_symmetric);
    if (alike && plan->sender >= 0)
        over->source = weft_place_here(from);
}

static void move_over_hosts(const struct vector_call *c) {
    struct weft_reduction reduction;
    struct weft_hosts_vector over = hosts_vector_of(c, &reduction);
    find_symmetric(c, &over);
    weft_hosts_vector_move(&over);
}

int weft_vector_offer(struct weft_meeting *meeting, const struct weft_vector *vector) {
    struct vector_call c = vector_call_of(meeting, vector);
    if (meeting->team->npes == 1)
        return 0;
    if (crosses_hosts(&c))
        return offer_to_hosts(&c);
    if (!weft_plan_sends(&vector->plan, meeting->team->my_pe))
        return 0;
    if (is_inside(&c)) {
        meeting->data_bytes = vector->nelems * c.parts * c.elem_bytes;
        if (meeting->data_bytes > 0)
            memcpy(meeting->mine.data, vector->source, meeting->data_bytes);
        return 0;
    }
    /* An all-reduce in place copies its input first: a fast member would overwrite the input while
     * a slower one still has to read it. */
    if (!folds_for_all(&c) || folds_whole(&c))
        return offer_input(&c, folds_for_all(&c) && vector->dest == vector->source);
    int error = offer_output(&c);
    return error ? error : offer_input(&c, false);
}

/* --- The work -------------------------------------------------------------------------------- */

/* Returns the place of a member's block for this member, from element `first` of the band on. If
 * inputs are inside offers, only the offset is valid. */
static struct weft_place block_from(const struct vector_call *c, struct weft_band band,
                                    size_t first, int member) {
    struct weft_place place = weft_meeting_offer(c->meeting, member)->input;
    size_t part = c->parts > 1 ? (size_t)c->meeting->team->my_pe : 0;
    size_t before = place.space == WEFT_SPACE_WORKSPACE ? part * band.nelems
                                                        : part * c->vector->nelems + band.first;
    place.offset += (before + first) * c->elem_bytes;
    return place;
}

static const char *block_inside(const struct vector_call *c, struct weft_place place, int member) {
    return (const char *)weft_meeting_offer(c->meeting, member)->data + place.offset;
}

/* Copies one band of the members' blocks to dest. This PE's block is copied from the source itself,
 * and may be in place already. */
static int copy_band(const void *call, size_t number) {
    const struct vector_call *c = call;
    const struct weft_vector *vector = c->vector;
    int me = c->meeting->team->my_pe;
    const char *own = weft_plan_source(&vector->plan, vector->source, me);
    struct weft_band band = band_of(c, number);
    size_t offset = band.first * c->elem_bytes, bytes = band.nelems * c->elem_bytes;
    for (int distance = 1; distance <= c->meeting->team->npes && bytes > 0; distance++) {
        int member = weft_team_member_after(c->meeting->team, distance);
        if (!weft_plan_sends(&vector->plan, member))
            continue;
        char *to = weft_plan_dest(&vector->plan, vector->dest, member) + offset;
        struct weft_place place = block_from(c, band, 0, member);
        if (member != me && is_inside(c))
            memcpy(to, block_inside(c, place, member), bytes);
        else
            copy_bytes(to,
                       member == me ? own + offset : weft_place_at(place, c->meeting->team, member),
                       bytes);
    }
    return 0;
}

static weft_matrix row_of(const struct vector_call *c, const void *at, size_t nelems) {
    return (weft_matrix){(void *)at, 1, nelems, nelems, c->vector->dtype, false};
}

/* to = op over the members' elements [first, first + nelems) of a band. */
static void fold_elements(const struct vector_call *c, struct weft_band band, size_t first,
                          size_t nelems, void *to) {
    const struct weft_team *team = c->meeting->team;
    int npes = team->npes;
    weft_matrix sources[npes], dest = row_of(c, to, nelems);
    for (int member = 0; member < npes; member++) {
        struct weft_place place = block_from(c, band, first, member);
        const void *at =
            is_inside(c) ? block_inside(c, place, member) : weft_place_at(place, team, member);
        sources[member] = row_of(c, at, nelems);
    }
    weft_elements_reduce(&dest, sources, npes, *c->vector->op);
}

static int fold_band(const void *call, size_t number) {
    const struct vector_call *c = call;
    struct weft_band band = band_of(c, number);
    fold_elements(c, band, 0, band.nelems, (char *)c->vector->dest + band.first * c->elem_bytes);
    return 0;
}

/* Returns the place of a member's reduced chunk of the band, and in *chunk its elements. */
static struct weft_place reduced_chunk(const struct vector_call *c, struct weft_band band,
                                       int member, struct weft_band *chunk) {
    int npes = c->meeting->team->npes;
    size_t grain = weft_split_grain(c->elem_bytes);
    struct weft_place place = weft_meeting_offer(c->meeting, member)->output;
    chunk->first = weft_split_begin(band.nelems, grain, member, npes);
    chunk->nelems = weft_split_begin(band.nelems, grain, member + 1, npes) - chunk->first;
    size_t before = place.space == WEFT_SPACE_WORKSPACE ? chunk->first : band.first + chunk->first;
    place.offset += before * c->elem_bytes;
    return place;
}

/* Each member reduces a chunk of the band, then all members copy all chunks. At the barrier all
 * inputs have been read; at the barrier after the next staging also these results. */
static int all_reduce_band(const void *call, size_t number) {
    const struct vector_call *c = call;
    struct weft_team *team = c->meeting->team;
    struct weft_band band = band_of(c, number), chunk;
    struct weft_place mine = reduced_chunk(c, band, team->my_pe, &chunk);
    fold_elements(c, band, chunk.first, chunk.nelems, weft_place_at(mine, team, team->my_pe));
    weft_sync_barrier(team);
    for (int distance = 0; distance < team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        struct weft_place place = reduced_chunk(c, band, member, &chunk);
        char *to = (char *)c->vector->dest + (band.first + chunk.first) * c->elem_bytes;
        if (chunk.nelems > 0)
            copy_bytes(to, weft_place_at(place, team, member), chunk.nelems * c->elem_bytes);
    }
    return 0;
}

void weft_vector_move(struct weft_meeting *meeting, const struct weft_vector *vector) {
    struct vector_call c = vector_call_of(meeting, vector);
    size_t bytes = vector->nelems * c.elem_bytes;
    if (meeting->team->npes == 1) {
        if (bytes > 0 && vector->dest != vector->source)
            memcpy(vector->dest, vector->source, bytes);
        return;
    }
    if (crosses_hosts(&c)) {
        move_over_hosts(&c);
        return;
    }
    bool in_chunks = folds_for_all(&c) && !folds_whole(&c);
    struct weft_bands bands = {.meeting = meeting,
                               .count = weft_band_count(vector->nelems, c.width),
                               .all_read = in_chunks,
                               .stage = stage_vector,
                               .take = in_chunks    ? all_reduce_band
                                       : vector->op ? fold_band
                                                    : copy_band};
    weft_bands_run(&bands, &c);
    if (!is_inside(&c))
        weft_sync_barrier(meeting->team);
}
