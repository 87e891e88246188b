/* SPDX-License-Identifier: BSD-3-Clause */
/* All about a part is in its entries, of which members read each other's: so a member that expects
 * another number than it is sent is found by all alike, without a further message. */
#include "coll/alltoallv.h"
#include <errno.h>
#include <string.h>
#include "base/size.h"
#include "coll/band.h"
#include "coll/elements.h"

enum { DTYPE, NPARTS, ROW }; /* facts of an offer */

/* What a member says of a part to another member, and of the part that comes back. In elements. */
struct entry {
    uint64_t sent, from; /* of the source, from here on */
    uint64_t shown_at;   /* where others read it: in the source, or in the row of a private one */
    uint64_t expected, to;
};

static struct entry *entry_of(const struct weft_meeting *meeting, const struct weft_alltoallv *p,
                              int member, int other, size_t part) {
    struct entry *list = weft_team_workspace_of(meeting->team, member);
    return &list[(size_t)other * p->nparts + part];
}

/* Where the row is in a workspace, and how much of it in one band: the same on all members. */
static size_t row_at(const struct weft_meeting *meeting, const struct weft_alltoallv *p) {
    size_t list = (size_t)meeting->team->npes * p->nparts * sizeof(struct entry);
    return weft_page_up(list);
}

size_t weft_alltoallv_parts_max(const struct weft_meeting *meeting) {
    size_t half = weft_team_workspace_capacity() / 2;
    return weft_page_down(half) / sizeof(struct entry) / (size_t)meeting->team->npes;
}

static size_t band_nelems(const struct weft_meeting *meeting, const struct weft_alltoallv *p) {
    size_t room = weft_team_workspace_capacity() - row_at(meeting, p);
    return weft_band_width(room, weft_element_bytes(p->dtype));
}

/* The elements of a part that are read in a band, counted from its first one. What is read where it
 * lies is read in the first band. */
struct range {
    size_t first, nelems;
};

static struct range range_of(const struct entry *entry, bool in_row, size_t band, size_t width) {
    if (!in_row)
        return (struct range){0, band == 0 ? entry->sent : 0};
    size_t begin = entry->shown_at, end = begin + entry->sent;
    size_t low = band * width, high = low + width;
    low = low > begin ? low : begin;
    high = high < end ? high : end;
    return (struct range){low - begin, low < high ? high - low : 0};
}

/* --- What a member shows --------------------------------------------------------------------- */

static void write_list(const struct weft_meeting *meeting, const struct weft_alltoallv *p) {
    size_t from = 0, to = 0, n = (size_t)meeting->team->npes * p->nparts;
    struct entry *list = entry_of(meeting, p, meeting->team->my_pe, 0, 0);
    for (size_t i = 0; i < n; i++) {
        list[i] = (struct entry){.sent = p->source_nelems[i], .expected = p->dest_nelems[i]};
        list[i].from = list[i].shown_at = p->source_offsets ? p->source_offsets[i] : from;
        list[i].to = p->dest_offsets ? p->dest_offsets[i] : to;
        from += list[i].sent;
        to += list[i].expected;
    }
}

/* Gives the parts to others their places in the row; returns its length. */
static size_t place_parts(const struct weft_meeting *meeting, const struct weft_alltoallv *p) {
    size_t end = 0;
    for (int distance = 1; distance < meeting->team->npes; distance++)
        for (size_t part = 0; part < p->nparts; part++) {
            int member = weft_meeting_member(meeting, distance);
            struct entry *entry = entry_of(meeting, p, meeting->team->my_pe, member, part);
            entry->shown_at = end;
            end += entry->sent;
        }
    return end;
}

static void stage_row(const struct weft_meeting *meeting, const struct weft_alltoallv *p,
                      size_t band) {
    size_t element = weft_element_bytes(p->dtype), width = band_nelems(meeting, p);
    int me = meeting->team->my_pe;
    if (meeting->mine.input.space != WEFT_SPACE_WORKSPACE)
        return;
    char *row = weft_place_at(meeting->mine.input, meeting->team, me);
    for (int distance = 1; distance < meeting->team->npes; distance++)
        for (size_t part = 0; part < p->nparts; part++) {
            int member = weft_meeting_member(meeting, distance);
            const struct entry *entry = entry_of(meeting, p, me, member, part);
            struct range range = range_of(entry, true, band, width);
            const char *from = (const char *)p->source + (entry->from + range.first) * element;
            if (range.nelems > 0)
                memcpy(row + (entry->shown_at + range.first - band * width) * element, from,
                       range.nelems * element);
        }
}

static void offer_row(struct weft_meeting *meeting, const struct weft_alltoallv *p) {
    size_t row = place_parts(meeting, p), width = band_nelems(meeting, p),
           first = row_at(meeting, p);
    meeting->mine.input = (struct weft_place){WEFT_SPACE_WORKSPACE, first};
    meeting->mine.facts[ROW] = row;
    weft_meeting_commit(meeting,
                        first + (row < width ? row : width) * weft_element_bytes(p->dtype));
    if (!weft_meeting_refused(meeting))
        stage_row(meeting, p, 0);
}

void weft_alltoallv_offer(struct weft_meeting *meeting, const struct weft_alltoallv *p) {
    meeting->mine.facts[DTYPE] = (uint64_t)p->dtype;
    meeting->mine.facts[NPARTS] = p->nparts;
    weft_meeting_commit(meeting, row_at(meeting, p));
    if (weft_meeting_refused(meeting))
        return;
    write_list(meeting, p);
    meeting->mine.input = weft_place_of(p->source, p->source_bytes);
    if (meeting->mine.input.space == WEFT_SPACE_PRIVATE && meeting->team->npes > 1)
        offer_row(meeting, p);
}

/* --- What the others find -------------------------------------------------------------------- */

/* What `sender` sends to `receiver`, who may expect something else. */
static int compare_pair(const struct weft_meeting *meeting, const struct weft_alltoallv *p,
                        int sender, int receiver) {
    for (size_t part = 0; part < p->nparts; part++) {
        size_t sent = entry_of(meeting, p, sender, receiver, part)->sent;
        size_t expected = entry_of(meeting, p, receiver, sender, part)->expected;
        if (sent != expected)
            return weft_fail(
                -EINVAL, "source_nelems[%zu] is %zu on PE %d, but dest_nelems[%zu] is %zu on PE %d",
                (size_t)receiver * p->nparts + part, sent,
                weft_team_world_pe(meeting->team, sender), (size_t)sender * p->nparts + part,
                expected, weft_team_world_pe(meeting->team, receiver));
    }
    return 0;
}

int weft_alltoallv_compare(struct weft_meeting *meeting, const struct weft_alltoallv *p) {
    int npes = meeting->team->npes, error = 0;
    for (int sender = 0; sender < npes && !error; sender++)
        for (int receiver = 0; receiver < npes && !error; receiver++)
            error = compare_pair(meeting, p, sender, receiver);
    if (error) /* nobody writes its list again while another reads it */
        weft_sync_barrier(meeting->team);
    return error;
}

static bool shows_row(const struct weft_meeting *meeting, int member) {
    return weft_meeting_offer(meeting, member)->input.space == WEFT_SPACE_WORKSPACE;
}

/* How many bands it takes to show all rows: the same on all members. */
static size_t count_row_bands(const struct weft_meeting *meeting, const struct weft_alltoallv *p) {
    size_t most = 0;
    for (int member = 0; member < meeting->team->npes; member++) {
        size_t row = weft_meeting_offer(meeting, member)->facts[ROW];
        most = row > most ? row : most;
    }
    return weft_band_count(most, band_nelems(meeting, p));
}

/* Where a member's `from` is read here: its first element, or that of the band. */
static const char *shown_by(const struct weft_meeting *meeting, const struct weft_alltoallv *p,
                            int member) {
    if (member == meeting->team->my_pe)
        return p->source;
    struct weft_place place = weft_meeting_offer(meeting, member)->input;
    return place.space == WEFT_SPACE_PRIVATE ? NULL : weft_place_at(place, meeting->team, member);
}

/* What comes from a member in a band. */
static void take_parts(const struct weft_meeting *meeting, const struct weft_alltoallv *p,
                       int member, size_t band) {
    int me = meeting->team->my_pe;
    bool in_row = member != me && shows_row(meeting, member);
    size_t element = weft_element_bytes(p->dtype), width = band_nelems(meeting, p);
    const char *shown = shown_by(meeting, p, member);
    for (size_t part = 0; part < p->nparts; part++) {
        const struct entry *theirs = entry_of(meeting, p, member, me, part);
        struct range range = range_of(theirs, in_row, band, width);
        size_t at = theirs->shown_at + range.first - (in_row ? band * width : 0);
        size_t to = entry_of(meeting, p, me, member, part)->to + range.first;
        if (range.nelems > 0)
            memcpy((char *)p->dest + to * element, shown + at * element, range.nelems * element);
    }
}

/* A call, as its bands see it. */
struct moved {
    const struct weft_meeting *meeting;
    const struct weft_alltoallv *exchange;
};

static void stage_row_band(const void *call, size_t band) {
    const struct moved *moved = call;
    stage_row(moved->meeting, moved->exchange, band);
}

static int take_row_band(const void *call, size_t band) {
    const struct moved *moved = call;
    for (int distance = 1; distance <= moved->meeting->team->npes; distance++)
        take_parts(moved->meeting, moved->exchange, weft_meeting_member(moved->meeting, distance),
                   band);
    return 0;
}

void weft_alltoallv_move(struct weft_meeting *meeting, const struct weft_alltoallv *p) {
    struct moved moved = {meeting, p};
    struct weft_bands bands = {.meeting = meeting,
                               .count = count_row_bands(meeting, p),
                               .stage = stage_row_band,
                               .take = take_row_band};
    weft_bands_run(&bands, &moved);
    weft_sync_barrier(meeting->team);
}
