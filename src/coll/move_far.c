/* SPDX-License-Identifier: BSD-3-Clause */
/* The mover of groups with far members: messages read and write far members' memory, and this
 * processor copies the rest. All gets are sent before the first is waited for. Serves the plans
 * that the collectives over hosts (coll/hosts.h) execute. */
#include "coll/move.h"

static void far_complete(void) {
    weft_far_quiet();
}

/* A far member's object is given by its address on this PE, so it must be symmetric here, too. */
static void far_pull(const struct weft_group *group, void *dest, const void *source,
                     const struct weft_pieces *pieces, int member) {
    int pe = weft_group_pe(group, member);
    if (!weft_is_far(pe)) {
        weft_mover_near.pull(group, dest, source, pieces, member);
        return;
    }
    weft_group_near(group, source, weft_pieces_span(pieces), group->me);
    if (pieces->count == 1) {
        weft_far_get(dest, source, pieces->bytes, pe, true);
    } else {
        struct weft_strided shape = weft_pieces_shape(pieces);
        weft_far_get_strided(dest, source, &shape, pe, true);
    }
}

static void far_push(const struct weft_group *group, void *dest, const void *source, size_t bytes,
                     int member) {
    int pe = weft_group_pe(group, member);
    if (!weft_is_far(pe)) {
        weft_mover_near.push(group, dest, source, bytes, member);
        return;
    }
    weft_group_near(group, dest, bytes, group->me);
    weft_far_put(dest, source, bytes, pe);
}

const struct weft_mover weft_mover_far = {
    .complete = far_complete, .pull = far_pull, .push = far_push, .own_first = true};
