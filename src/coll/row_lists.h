/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of rows of an exchange (weft_all_to_allv_on_device), computed by processors. Each
 * member shows a list at the beginning of its workspace, and all read all lists:
 *
 *   | rows of its dest | splits |      entry r * nparts + k: the rows of part k for member r
 *
 * So each member knows where the parts of all begin in every dest, and whether they fit. */
#ifndef WEFT_COLL_ROW_LISTS_H
#define WEFT_COLL_ROW_LISTS_H

#include <weft.h>
#include "core/team.h"

struct weft_row_lists {
    struct weft_team *team;
    const weft_row_exchange *shape;
    size_t entries;  /* of a list */
    uint64_t *lists; /* of all members */
    size_t *froms;   /* entry r * nparts + k: where part k for member r begins in source */
    size_t *places;  /* entry s * nparts + k: where part k of member s begins in a dest */
};

/* Prepares the lists. The caller closes them, also after an error. Returns 0 or -ENOMEM with text.
 */
int weft_row_lists_open(struct weft_row_lists *lists, struct weft_team *team,
                        const weft_row_exchange *shape);
void weft_row_lists_close(struct weft_row_lists *lists);

/* Checks this member's splits and offsets, writes its list, and sets `froms`. Returns 0, or -EINVAL
 * with text if source does not have these rows. */
int weft_row_lists_show(struct weft_row_lists *lists, const int64_t *splits,
                        const int64_t *offsets);

/* Reads all lists, after all members have shown theirs. They may be replaced when all members have
 * read them. */
void weft_row_lists_read(struct weft_row_lists *lists);

/* Returns the rows of a part. */
size_t weft_row_lists_split(const struct weft_row_lists *lists, int sender, int receiver, size_t k);

/* Sets `places` for the dest of a member. Returns the rows that this dest must have. */
size_t weft_row_lists_place(struct weft_row_lists *lists, int receiver);

/* Checks that each member has room for its rows. Returns 0, or -ENOSPC with text, the same on all
 * members. Changes `places`. */
int weft_row_lists_check(struct weft_row_lists *lists);

/* Sets the results of the call: the rows of each part for this member, and where it begins in dest.
 * Sets `places` for this member's dest. */
void weft_row_lists_receive(struct weft_row_lists *lists, int64_t *splits, int64_t *offsets);

#endif
