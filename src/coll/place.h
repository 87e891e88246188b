/* SPDX-License-Identifier: BSD-3-Clause */
/* The place of an object, for every member of a team: a space and an offset. The same object may
 * have different offsets on different PEs, so each PE posts the place of its own. */
#ifndef WEFT_COLL_PLACE_H
#define WEFT_COLL_PLACE_H

#include <assert.h>
#include <stdint.h>
#include "job/space.h"
#include "core/team.h"

enum weft_space {
    WEFT_SPACE_PRIVATE, /* no peer can access it */
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

/* Returns the place of [p, p + bytes) here; private if it is not symmetric over its whole length. A
 * window without slots begins at NULL; an empty range at NULL is not in it. */
static inline struct weft_place weft_place_of(const void *p, size_t bytes) {
    for (enum weft_space space = WEFT_SPACE_HEAP; space <= WEFT_SPACE_DEVICE; space++) {
        const struct weft_window *w = weft_place_window(space);
        if (w && w->count > 0 && weft_window_holds(w, p, bytes))
            return (struct weft_place){space, (uintptr_t)p - w->local};
    }
    return (struct weft_place){WEFT_SPACE_PRIVATE, 0};
}

/* Returns the address here of a symmetric object with this place; NULL for any other place. */
static inline void *weft_place_here(struct weft_place place) {
    const struct weft_window *w = weft_place_window(place.space);
    return w ? (void *)(w->local + place.offset) : NULL;
}

/* As weft_place_here, also for places in a workspace: this PE's own. Such an address names a far
 * member's object. */
static inline void *weft_place_own(struct weft_place place, const struct weft_team *team) {
    if (place.space == WEFT_SPACE_WORKSPACE)
        return (char *)weft_team_workspace_of(team, team->my_pe) + place.offset;
    return weft_place_here(place);
}

/* Returns the mapped address of `place` of a near `member` of the team. The place must be in memory
 * of the host, and not private. */
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
