/* SPDX-License-Identifier: BSD-3-Clause */
/* Each side sets its flag and then looks at the other's, so that one of them sees the other. */
#include "core/pin.h"
#include "core/job.h"
#include "core/team.h"

static struct weft_team_words *words_of(int pe) {
    return weft_team_words_of(weft_team_find(SHMEM_TEAM_WORLD), pe);
}

void weft_pin_announce(void) {
    for (int pe = 0; pe < weft_job.npes; pe++)
        atomic_store(&words_of(pe)->pinned, 1);
    for (int pe = 0; pe < weft_job.npes; pe++) {
        struct weft_waiter waiter = {.pe = pe};
        while (atomic_load(&words_of(pe)->returning))
            weft_waiter_turn(&waiter);
        weft_waiter_end(&waiter);
    }
}

bool weft_pinned(void) {
    return atomic_load(&words_of(weft_job.pe)->pinned);
}

bool weft_pin_hold_off(void) {
    atomic_store(&words_of(weft_job.pe)->returning, 1);
    if (!weft_pinned())
        return true;
    weft_pin_end();
    return false;
}

void weft_pin_end(void) {
    atomic_store(&words_of(weft_job.pe)->returning, 0);
}
