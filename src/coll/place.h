/* SPDX-License-Identifier: BSD-3-Clause */
/* Where an object lies, in words that every member of a team can follow: a space and an offset.
 * The same object may have another offset on each PE, so each says where its own is. */
#ifndef WEFT_COLL_PLACE_H
#define WEFT_COLL_PLACE_H

#include <assert.h>
#include <stdint.h>
#include "job/space.h"
#include "core/team.h"

enum weft_space {
    WEFT_SPACE_PRIVATE, /* no peer can reach it */
    WEFT_SPACE_HEAP,
    WEFT_SPACE_STATICS,
    WEFT_SPACE_DEVICE,    /* the heap of the GPUs */
    WEFT_SPACE_WORKSPACE, /* of the team; the offset is from the start of the workspace */
};

struct weft_place {
    uint64_t space : 3, offset : 61;
};

static inline const struct weft_window *weft_place_window(enum weft_space space) {
    return space == WEFT_SPACE_HEAP                          ? &weft_windows.heap.window
           : space == WEFT_SPACE_STATICS                     ? &weft_windows.statics.window
           : space == WEFT_SPACE_DEVICE && weft_space_device ? weft_space_device->heap.window
                                                             : NULL;
}

/* The place of [p, p + bytes) here; private when it is not symmetric over its whole length. A space
 * of no PE begins at NULL, where nothing of no bytes lies. */
static inline struct weft_place weft_place_of(const void *p, size_t bytes) {
    for (enum weft_space space = WEFT_SPACE_HEAP; space <= WEFT_SPACE_DEVICE; space++) {
        const struct weft_window *w = weft_place_window(space);
        if (w && w->count > 0 && weft_window_holds(w, p, bytes))
            return (struct weft_place){space, (uintptr_t)p - w->local};
    }
    return (struct weft_place){WEFT_SPACE_PRIVATE, 0};
}

/* The address that a symmetric object with this place has here; NULL for any other place. */
static inline void *weft_place_here(struct weft_place place) {
    const struct weft_window *w = weft_place_window(place.space);
    return w ? (void *)(w->local + place.offset) : NULL;
}

/* The same of a workspace, too: this PE's own. By such an address a far member's is named. */
static inline void *weft_place_own(struct weft_place place, const struct weft_team *team) {
    if (place.space == WEFT_SPACE_WORKSPACE)
        return (char *)weft_team_workspace_of(team, team->my_pe) + place.offset;
    return weft_place_here(place);
}

/* What a near `member` of the team named by `place`, mapped here: memory of the host, and not
 * private. */
static inline void *weft_place_at(struct weft_place place, const struct weft_team *team,
                                  int member) {
    if (place.space == WEFT_SPACE_WORKSPACE)
        return (char *)weft_team_workspace_of(team, member) + place.offset;
    const struct weft_window *w = weft_place_window(place.space);
    uint32_t slot = weft_window_slot(w, weft_team_world_pe(team, member));
    assert(slot < w->count);
    return weft_window_at(w, weft_place_here(place), slot);
}

#endif
