/* SPDX-License-Identifier: BSD-3-Clause */
/* Two entries describe a part, the sender's and the receiver's, and all members read all entries.
 * So every member finds a count that differs from the expected one, without a further message. */
#include "coll/alltoallv.h"
#include <errno.h>
#include <string.h>
#include "base/size.h"
#include "coll/band.h"
#include "coll/remote_matrix.h"

enum { DTYPE, NPARTS, ROW }; /* indices of the facts of an offer */

/* A member's description of a part for another member, and of the corresponding part from that
 * member. In elements. */
struct entry {
    uint64_t sent, from; /* of the source, beginning at `from` */
    uint64_t shown_at; /* offset at which others read it: in the source, or in the row of a private
                          source */
    uint64_t expected, to;
};

/* A call, for the functions that stage and take its bands. */
struct exchange_call {
    struct weft_meeting *meeting;
    const struct weft_alltoallv *p;
    size_t elem_bytes;
    size_t list_step;   /* bytes between the lists of members in a workspace; see list_at */
    size_t row_at;      /* the row's offset in a workspace */
    size_t band_nelems; /* the row's elements in one band; the same on all members */
};

/* Returns the number of lists in a workspace: this member's, or all members' if some are far. */
static size_t list_count(const struct weft_team *team) {
    return team->far ? (size_t)team->npes : 1;
}

static size_t list_bytes(const struct exchange_call *c) {
    return (size_t)c->meeting->team->npes * c->p->nparts * sizeof(struct entry);
}

static struct exchange_call exchange_call_of(struct weft_meeting *meeting,
                                             const struct weft_alltoallv *p) {
    struct exchange_call c = {
        .meeting = meeting, .p = p, .elem_bytes = weft_element_bytes(p->dtype)};
    size_t count = list_count(meeting->team);
    c.list_step = count > 1 ? list_bytes(&c) : 0;
    c.row_at = weft_page_up(count * list_bytes(&c));
    c.band_nelems = weft_band_width(weft_team_workspace_capacity() - c.row_at, c.elem_bytes);
    return c;
}

/* Returns the place of a member's list: in that member's workspace and, if some members are far,
 * also in this member's workspace, as a copy that is read. */
static struct weft_place list_at(const struct exchange_call *c, int member) {
    return (struct weft_place){WEFT_SPACE_WORKSPACE, (size_t)member * c->list_step};
}

/* Returns the nparts entries in which `member` describes its parts to and from `other`. */
static struct entry *entries_of(const struct exchange_call *c, int member, int other) {
    const struct weft_team *team = c->meeting->team;
    struct entry *list = weft_place_at(list_at(c, member), team, team->far ? team->my_pe : member);
    return &list[(size_t)other * c->p->nparts];
}

size_t weft_alltoallv_parts_max(const struct weft_meeting *meeting) {
    size_t half = weft_team_workspace_capacity() / 2, entries = list_count(meeting->team);
    return weft_page_down(half) / sizeof(struct entry) / (size_t)meeting->team->npes / entries;
}

/* The elements of a part that are read in a band, counted from the part's first element. A part
 * that is read in place is read in the first band. */
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

/* --- This member's list and row --------------------------------------------------------------- */

static void write_list(const struct exchange_call *c) {
    const struct weft_alltoallv *p = c->p;
    size_t from = 0, to = 0, n = (size_t)c->meeting->team->npes * p->nparts;
    struct entry *list = entries_of(c, c->meeting->team->my_pe, 0);
    for (size_t i = 0; i < n; i++) {
        list[i] = (struct entry){.sent = p->source_nelems[i], .expected = p->dest_nelems[i]};
        list[i].from = list[i].shown_at = p->source_offsets ? p->source_offsets[i] : from;
        list[i].to = p->dest_offsets ? p->dest_offsets[i] : to;
        from += list[i].sent;
        to += list[i].expected;
    }
}

/* Assigns an offset in the row to each part for another member. Returns the row's length. */
static size_t place_parts(const struct exchange_call *c) {
    size_t end = 0;
    for (int distance = 1; distance < c->meeting->team->npes; distance++)
        for (size_t part = 0; part < c->p->nparts; part++) {
            int member = weft_team_member_after(c->meeting->team, distance);
            struct entry *entry = &entries_of(c, c->meeting->team->my_pe, member)[part];
            entry->shown_at = end;
            end += entry->sent;
        }
    return end;
}

static void stage_row(const void *call, size_t band) {
    const struct exchange_call *c = call;
    const struct weft_meeting *meeting = c->meeting;
    size_t element = c->elem_bytes, width = c->band_nelems;
    int me = meeting->team->my_pe;
    if (meeting->mine.input.space != WEFT_SPACE_WORKSPACE)
        return;
    char *row = weft_place_at(meeting->mine.input, meeting->team, me);
    for (int distance = 1; distance < meeting->team->npes; distance++)
        for (size_t part = 0; part < c->p->nparts; part++) {
            int member = weft_team_member_after(meeting->team, distance);
            const struct entry *entry = &entries_of(c, me, member)[part];
            struct range range = range_of(entry, true, band, width);
            const char *from = (const char *)c->p->source + (entry->from + range.first) * element;
            if (range.nelems > 0)
                memcpy(row + (entry->shown_at + range.first - band * width) * element, from,
                       range.nelems * element);
        }
}

static int offer_row(const struct exchange_call *c) {
    struct weft_meeting *meeting = c->meeting;
    size_t row = place_parts(c), shown = row < c->band_nelems ? row : c->band_nelems;
    meeting->mine.input = (struct weft_place){WEFT_SPACE_WORKSPACE, c->row_at};
    meeting->mine.facts[ROW] = row;
    int error = weft_team_workspace_commit(meeting->team, c->row_at + shown * c->elem_bytes);
    if (!error)
        stage_row(c, 0);
    return error;
}

int weft_alltoallv_offer(struct weft_meeting *meeting, const struct weft_alltoallv *p) {
    struct exchange_call c = exchange_call_of(meeting, p);
    meeting->mine.facts[DTYPE] = (uint64_t)p->dtype;
    meeting->mine.facts[NPARTS] = p->nparts;
    int error = weft_team_workspace_commit(meeting->team, c.row_at);
    if (error)
        return error;
    write_list(&c);
    meeting->mine.input = weft_place_of(p->source, p->source_bytes);
    bool copied = meeting->mine.input.space == WEFT_SPACE_PRIVATE && meeting->team->npes > 1;
    return copied ? offer_row(&c) : 0;
}

/* --- The other members' lists and rows -------------------------------------------------------- */

/* Copies the members' lists to this workspace if some members are far. All members have posted, so
 * the lists are complete. */
static void fetch_lists(const struct exchange_call *c) {
    const struct weft_team *team = c->meeting->team;
    if (!team->far)
        return;
    for (int distance = 1; distance < team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        weft_remote_matrix_take(entries_of(c, member, 0), list_at(c, member), list_bytes(c), team,
                                member);
    }
    weft_remote_matrix_complete(team);
}

/* Compares the counts that `sender` sends with those that `receiver` expects. */
static int compare_pair(const struct exchange_call *c, int sender, int receiver) {
    const struct weft_team *team = c->meeting->team;
    size_t nparts = c->p->nparts;
    const struct entry *senders = entries_of(c, sender, receiver);
    const struct entry *receivers = entries_of(c, receiver, sender);
    for (size_t part = 0; part < nparts; part++) {
        size_t sent = senders[part].sent, expected = receivers[part].expected;
        if (sent != expected)
            return weft_fail(
                -EINVAL, "source_nelems[%zu] is %zu on PE %d, but dest_nelems[%zu] is %zu on PE %d",
                (size_t)receiver * nparts + part, sent, weft_team_world_pe(team, sender),
                (size_t)sender * nparts + part, expected, weft_team_world_pe(team, receiver));
    }
    return 0;
}

int weft_alltoallv_compare(struct weft_meeting *meeting, const struct weft_alltoallv *p) {
    struct exchange_call c = exchange_call_of(meeting, p);
    int npes = meeting->team->npes, error = 0;
    fetch_lists(&c);
    for (int sender = 0; sender < npes && !error; sender++)
        for (int receiver = 0; receiver < npes && !error; receiver++)
            error = compare_pair(&c, sender, receiver);
    if (error) /* a member may rewrite its list only after all have read it */
        weft_sync_barrier(meeting->team);
    return error;
}

/* Returns the number of bands that show all rows: the same on all members. */
static size_t count_row_bands(const struct exchange_call *c) {
    size_t most = 0;
    for (int member = 0; member < c->meeting->team->npes; member++) {
        size_t row = weft_meeting_offer(c->meeting, member)->facts[ROW];
        most = row > most ? row : most;
    }
    return weft_band_count(most, c->band_nelems);
}

/* Returns the address at which this member reads the source of a member, or the band of its row;
 * NULL if the member is far. */
static const char *shown_by(const struct exchange_call *c, int member) {
    if (member == c->meeting->team->my_pe)
        return c->p->source;
    struct weft_place place = weft_meeting_offer(c->meeting, member)->input;
    return place.space == WEFT_SPACE_PRIVATE
               ? NULL
               : weft_remote_matrix_here(place, c->meeting->team, member);
}

/* Copies `bytes` of a far member's source or row to dest, from `offset` on. */
static void pull_part(const struct exchange_call *c, int member, void *dest, size_t offset,
                      size_t bytes) {
    struct weft_place place = weft_meeting_offer(c->meeting, member)->input;
    place.offset += offset;
    weft_remote_matrix_pull(dest, place, bytes, c->meeting->team, member);
}

/* Copies the parts that a member sends to this one in a band. */
static void take_parts(const struct exchange_call *c, int member, size_t band) {
    int me = c->meeting->team->my_pe;
    bool in_row =
        member != me && weft_meeting_offer(c->meeting, member)->input.space == WEFT_SPACE_WORKSPACE;
    size_t element = c->elem_bytes, width = c->band_nelems;
    const char *shown = shown_by(c, member);
    const struct entry *theirs = entries_of(c, member, me), *own = entries_of(c, me, member);
    for (size_t part = 0; part < c->p->nparts; part++) {
        struct range range = range_of(&theirs[part], in_row, band, width);
        size_t at = theirs[part].shown_at + range.first - (in_row ? band * width : 0);
        char *dest = (char *)c->p->dest + (own[part].to + range.first) * element;
        if (range.nelems > 0 && shown)
            memcpy(dest, shown + at * element, range.nelems * element);
        else if (range.nelems > 0)
            pull_part(c, member, dest, at * element, range.nelems * element);
    }
}

static int take_row(const void *call, size_t band) {
    const struct exchange_call *c = call;
    for (int distance = 1; distance <= c->meeting->team->npes; distance++)
        take_parts(c, weft_team_member_after(c->meeting->team, distance), band);
    weft_remote_matrix_complete(c->meeting->team);
    return 0;
}

void weft_alltoallv_move(struct weft_meeting *meeting, const struct weft_alltoallv *p) {
    struct exchange_call c = exchange_call_of(meeting, p);
    struct weft_bands bands = {
        .meeting = meeting, .count = count_row_bands(&c), .stage = stage_row, .take = take_row};
    weft_bands_run(&bands, &c);
    weft_sync_barrier(meeting->team);
}
