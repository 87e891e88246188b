/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the members' shards from their offers. */
#include "ops/gather.h"
#include "coll/band.h"

size_t weft_gather_rows(const struct weft_gather *g, int member) {
    return weft_meeting_offer(&g->meeting, member)->facts[WEFT_GATHER_ROWS];
}

size_t weft_gather_first(const struct weft_gather *g, int member) {
    size_t first = 0;
    for (int before = 0; before < member; before++)
        first += weft_gather_rows(g, before);
    return first;
}

char *weft_gather_workspace(const struct weft_gather *g) {
    return weft_team_workspace_of(g->meeting.team, g->meeting.team->my_pe);
}

bool weft_gather_is_staged(const struct weft_gather *g, int member) {
    return weft_meeting_offer(&g->meeting, member)->input.space == WEFT_SPACE_WORKSPACE;
}

bool weft_gather_is_transposed(const struct weft_gather *g, int member) {
    struct weft_gather_data data;
    memcpy(&data, weft_meeting_offer(&g->meeting, member)->data, sizeof data);
    return data.transposed != 0;
}

/* Returns the rows of a member's shard that are read in a band. A shard that is not staged, and
 * this member's own, is read whole in band 0. */
static struct weft_band band_rows(const struct weft_gather *g, int member, size_t band) {
    bool own = member == g->meeting.team->my_pe;
    size_t width = weft_gather_is_staged(g, member) && !own ? g->band_rows : PTRDIFF_MAX;
    return weft_band_of(weft_gather_rows(g, member), width, band);
}

struct weft_remote_matrix weft_gather_band(const struct weft_gather *g, int member, size_t band) {
    struct weft_band rows = band_rows(g, member, band);
    if (member == g->meeting.team->my_pe)
        return (struct weft_remote_matrix){.at =
                                               weft_matrix_rows(g->shard, rows.first, rows.nelems)};
    const struct weft_offer *offer = weft_meeting_offer(&g->meeting, member);
    weft_matrix shape = {NULL,
                         rows.nelems,
                         g->shard->cols,
                         offer->facts[WEFT_GATHER_LD],
                         g->shard->dtype,
                         weft_gather_is_transposed(g, member)};
    if (weft_gather_is_staged(g, member))
        shape = weft_matrix_dense(&shape, NULL);
    return weft_remote_matrix_of(g->meeting.team, member, offer->input, &shape);
}

size_t weft_gather_first_of_band(const struct weft_gather *g, int member, size_t band) {
    return weft_gather_first(g, member) + band_rows(g, member, band).first;
}
