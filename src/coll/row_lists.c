/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/row_lists.h"
#include <errno.h>
#include <stdlib.h>
#include "base/size.h"
#include "coll/remote_matrix.h"

static size_t list_length(const struct weft_row_lists *lists) {
    return 1 + lists->entries;
}

static struct weft_place list_place(void) {
    return (struct weft_place){WEFT_SPACE_WORKSPACE, 0};
}

int weft_row_lists_open(struct weft_row_lists *lists, struct weft_team *team,
                        const weft_row_exchange *shape) {
    size_t npes = (size_t)team->npes;
    *lists = (struct weft_row_lists){team, shape, npes * shape->nparts, NULL, NULL, NULL};
    size_t bytes = list_length(lists) * sizeof *lists->lists;
    if (bytes > weft_team_workspace_capacity())
        return weft_fail_bare(-ENOMEM,
                              "exchange->nparts is %zu, but a workspace of %zu bytes has no room "
                              "for so many numbers",
                              shape->nparts, weft_team_workspace_capacity());
    lists->lists = calloc(npes, bytes);
    lists->froms = calloc(lists->entries, sizeof *lists->froms);
    lists->places = calloc(lists->entries, sizeof *lists->places);
    if (!lists->lists || !lists->froms || !lists->places)
        return weft_fail_bare(-ENOMEM, "there is no memory for %d lists of %zu bytes", team->npes,
                              bytes);
    return weft_team_workspace_commit(team, bytes);
}

void weft_row_lists_close(struct weft_row_lists *lists) {
    free(lists->lists);
    free(lists->froms);
    free(lists->places);
}

/* --- Showing and reading ---------------------------------------------------------------------- */

/* Returns the entry of part k for, or from, a member in an array of the caller's. */
static size_t entry_of(const struct weft_row_lists *lists, bool by_part, int member, size_t k) {
    return by_part ? k * (size_t)lists->team->npes + (size_t)member
                   : (size_t)member * lists->shape->nparts + k;
}

/* Returns the entry of a list that describes entry i of a caller's array. */
static size_t listed(const struct weft_row_lists *lists, bool by_part, size_t i) {
    size_t npes = (size_t)lists->team->npes;
    return by_part ? i % npes * lists->shape->nparts + i / npes : i;
}

int weft_row_lists_show(struct weft_row_lists *lists, const int64_t *splits,
                        const int64_t *offsets) {
    const weft_row_exchange *shape = lists->shape;
    uint64_t *list = weft_place_own(list_place(), lists->team), next = 0;
    list[0] = shape->dest_rows;
    for (size_t i = 0; i < lists->entries; i++) {
        uint64_t rows = (uint64_t)splits[i], begin = offsets ? (uint64_t)offsets[i] : next;
        size_t entry = listed(lists, shape->source_by_part, i);
        if (rows > 0 && (begin > shape->source_rows || rows > shape->source_rows - begin))
            return weft_fail_bare(-EINVAL,
                                  "source_splits[%zu] is %lld from row %lld on, but source has "
                                  "%zu rows",
                                  i, (long long)rows, (long long)begin, shape->source_rows);
        list[1 + entry] = rows;
        lists->froms[entry] = begin;
        next += rows;
    }
    return 0;
}

void weft_row_lists_read(struct weft_row_lists *lists) {
    size_t length = list_length(lists);
    for (int distance = 0; distance < lists->team->npes; distance++) {
        int member = (lists->team->my_pe + distance) % lists->team->npes;
        weft_remote_matrix_take(&lists->lists[(size_t)member * length], list_place(),
                                length * sizeof *lists->lists, lists->team, member);
    }
    weft_remote_matrix_complete(lists->team);
}

size_t weft_row_lists_split(const struct weft_row_lists *lists, int sender, int receiver,
                            size_t k) {
    const uint64_t *list = &lists->lists[(size_t)sender * list_length(lists)];
    return list[1 + entry_of(lists, false, receiver, k)];
}

/* --- Places ----------------------------------------------------------------------------------- */

/* A row of a receiver's dest, up to which parts have been placed. */
struct frontier {
    int receiver;
    size_t next, used; /* used: after the last row that a part fills */
};

static void place_part(struct weft_row_lists *lists, struct frontier *at, int sender, size_t k) {
    size_t rows = weft_row_lists_split(lists, sender, at->receiver, k);
    lists->places[entry_of(lists, false, sender, k)] = at->next;
    at->next += rows;
    at->used = rows > 0 ? at->next : at->used;
}

/* Places the parts of all members with the number k, and leaves room up to the alignment. */
static void place_part_of_all(struct weft_row_lists *lists, struct frontier *at, size_t k) {
    size_t begin = at->next, align = lists->shape->align;
    for (int sender = 0; sender < lists->team->npes; sender++)
        place_part(lists, at, sender, k);
    size_t rows = align > 0 ? weft_round_up(at->next - begin, align) : at->next - begin;
    at->next = begin + (rows > 0 ? rows : align);
}

size_t weft_row_lists_place(struct weft_row_lists *lists, int receiver) {
    struct frontier at = {receiver, 0, 0};
    if (lists->shape->dest_by_part)
        for (size_t k = 0; k < lists->shape->nparts; k++)
            place_part_of_all(lists, &at, k);
    else
        for (int sender = 0; sender < lists->team->npes; sender++)
            for (size_t k = 0; k < lists->shape->nparts; k++)
                place_part(lists, &at, sender, k);
    return at.used;
}

int weft_row_lists_check(struct weft_row_lists *lists) {
    for (int member = 0; member < lists->team->npes; member++) {
        size_t needed = weft_row_lists_place(lists, member);
        size_t room = lists->lists[(size_t)member * list_length(lists)];
        if (needed > room)
            return weft_fail(-ENOSPC,
                             "PE %d receives rows up to row %zu of dest, which has %zu rows",
                             weft_team_world_pe(lists->team, member), needed, room);
    }
    return 0;
}

void weft_row_lists_receive(struct weft_row_lists *lists, int64_t *splits, int64_t *offsets) {
    int me = lists->team->my_pe;
    weft_row_lists_place(lists, me);
    for (int sender = 0; sender < lists->team->npes; sender++)
        for (size_t k = 0; k < lists->shape->nparts; k++) {
            size_t entry = entry_of(lists, lists->shape->dest_by_part, sender, k);
            splits[entry] = (int64_t)weft_row_lists_split(lists, sender, me, k);
            offsets[entry] = (int64_t)lists->places[entry_of(lists, false, sender, k)];
        }
}
