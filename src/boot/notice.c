/* SPDX-License-Identifier: BSD-3-Clause */
/* The mutex of a dead PE stays with the thread that found it until this process ends, which it does
 * soon: then the kernel hands it on, and the launcher, when it goes on, finds it as if nobody had
 * looked. In a large job a look is at some of the PEs, and the next one at others. */
#include "boot/notice.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/futex.h"
#include "boot/alive.h"
#include "boot/attachment.h"

enum { LOOK_EVERY_MS = 100, PES_A_LOOK = 64, LAUNCHER_MS = 500 };

#define NS_PER_MS UINT64_C(1000000)

static void death_tell(int pe) {
    struct weft_control *control = weft_attachment.control;
    struct weft_cause death = {.kind = WEFT_ABORT_DIED, .pe = pe};
    uint64_t until_ns = weft_clock_ns() + LAUNCHER_MS * NS_PER_MS;
    while (!weft_control_aborted(control) && weft_clock_ns() < until_ns)
        weft_futex_sleep(&control->abort, WEFT_ABORT_NONE, WEFT_FUTEX_ALL, LOOK_EVERY_MS);
    weft_control_abort(control, &death);
}

/* True if it has died as a PE; one that has left may end as it likes. */
static bool pe_is_dead(int pe) {
    struct weft_control_pe *entry = &weft_attachment.control->pe[pe];
    if (atomic_load(&entry->state) == WEFT_PE_ABSENT || atomic_load(&entry->state) == WEFT_PE_LEFT)
        return false;
    int found = weft_alive_try(&entry->alive);
    bool dead = found == EOWNERDEAD && atomic_load(&entry->state) != WEFT_PE_LEFT;
    if (!dead)
        weft_alive_let_go(&entry->alive, found);
    return dead;
}

void weft_notice_deaths(void) {
    static _Atomic uint64_t next_look_ns;
    static _Atomic uint32_t next_pe;
    int npes = weft_attachment.npes;
    if (!weft_attachment.launched || !weft_attachment.valid || npes == 1)
        return;
    uint64_t now_ns = weft_clock_ns(), due_ns = atomic_load(&next_look_ns);
    if (now_ns < due_ns ||
        !atomic_compare_exchange_strong(&next_look_ns, &due_ns, now_ns + LOOK_EVERY_MS * NS_PER_MS))
        return;
    for (int looks = 0; looks < PES_A_LOOK && looks < npes; looks++) {
        int pe = (int)(atomic_fetch_add(&next_pe, 1) % (uint32_t)npes);
        if (pe != weft_attachment.pe && pe_is_dead(pe)) {
            death_tell(pe);
            return;
        }
    }
}
