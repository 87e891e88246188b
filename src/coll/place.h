/* SPDX-License-Identifier: BSD-3-Clause */
/* Where an object lies, in words that every member of a team can follow: a space and an offset.
 * The same object may have another offset on each PE, so each says where its own is. */
#ifndef WEFT_COLL_PLACE_H
#define WEFT_COLL_PLACE_H

#include <stdint.h>
#include "core/team.h"
#include "core/window.h"

enum weft_space {
    WEFT_SPACE_PRIVATE, /* no peer can reach it */
    WEFT_SPACE_HEAP,
    WEFT_SPACE_STATICS,
    WEFT_SPACE_WORKSPACE, /* of the team; the offset is from the start of the workspace */
};

struct weft_place {
    uint64_t space : 2, offset : 62;
};

/* The place of [p, p + bytes) here; private when it is not symmetric over its whole length. */
static inline struct weft_place weft_place_of(const void *p, size_t bytes) {
    const struct weft_window *heap = &weft_windows.heap.window;
    const struct weft_window *statics = &weft_windows.statics.window;
    if (weft_window_holds(heap, p, bytes))
        return (struct weft_place){WEFT_SPACE_HEAP, (uintptr_t)p - heap->local};
    if (weft_window_holds(statics, p, bytes))
        return (struct weft_place){WEFT_SPACE_STATICS, (uintptr_t)p - statics->local};
    return (struct weft_place){WEFT_SPACE_PRIVATE, 0};
}

/* What `member` of the team named by `place`, mapped here. Never for a private place. */
static inline void *weft_place_at(struct weft_place place, const struct weft_team *team,
                                  int member) {
    if (place.space == WEFT_SPACE_WORKSPACE)
        return (char *)weft_team_workspace_of(team, member) + place.offset;
    const struct weft_window *w =
        place.space == WEFT_SPACE_HEAP ? &weft_windows.heap.window : &weft_windows.statics.window;
    uint32_t slot = weft_window_slot(w, weft_team_world_pe(team, member));
    return weft_window_at(w, (const void *)(w->local + place.offset), slot);
}

#endif
