/* SPDX-License-Identifier: BSD-3-Clause */
/* Each side sets its flag and then reads the other's, so at least one of them sees the other. The
 * flags are words of SHMEM_TEAM_SHARED, whose members are the near PEs. */
#include "core/pin.h"
#include "core/team.h"

static const struct weft_team *near_team(void) {
    return weft_team_find(SHMEM_TEAM_SHARED);
}

void weft_pin_announce(void) {
    const struct weft_team *near = near_team();
    for (int member = 0; member < near->npes; member++)
        atomic_store(&weft_team_words_of(near, member)->pinned, 1);
    for (int member = 0; member < near->npes; member++) {
        struct weft_waiter waiter = {.pe = weft_team_world_pe(near, member)};
        while (atomic_load(&weft_team_words_of(near, member)->returning))
            weft_waiter_turn(&waiter);
        weft_waiter_end(&waiter);
    }
}

bool weft_pinned(void) {
    return atomic_load(&near_team()->words->pinned);
}

bool weft_pin_hold_off(void) {
    atomic_store(&near_team()->words->returning, 1);
    if (!weft_pinned())
        return true;
    weft_pin_end();
    return false;
}

void weft_pin_end(void) {
    atomic_store(&near_team()->words->returning, 0);
}
