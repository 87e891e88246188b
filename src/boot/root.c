/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE whose socket closes is dead, unless it has left in order or closed the socket alone, and
 * nobody waits for it. Every turn looks at it again. The guards would find a death too, but not
 * before the PE has joined. */
#include "boot/root.h"
#include "boot/alive.h"
#include "boot/attachment.h"
#include "boot/hub.h"

static void pe_check_lost(struct weft_hub *hub, int pe) {
    struct weft_cause death = {.kind = WEFT_ABORT_DIED, .pe = pe};
    struct weft_control_pe *it = &weft_attachment.control->pe[pe];
    bool left = atomic_load(&it->state) == WEFT_PE_LEFT;
    if ((!left && !weft_alive_is_held(&it->alive)) || weft_hub_awaits(hub, pe))
        weft_control_abort(weft_attachment.control, &death);
}

void weft_root_check_lost(struct weft_hub *hub) {
    for (int pe = 0; pe < weft_attachment.npes; pe++)
        if (weft_boot_is_here(pe) && weft_hub_socket(hub, pe) < 0)
            pe_check_lost(hub, pe);
}

/* Of the lost, the look at all of them tells. */
int weft_root_serve(struct weft_hub *hub, int pe) {
    struct weft_hub_report report;
    struct weft_cause junk = {.kind = WEFT_ABORT_ERROR, .pe = pe};
    enum weft_hub_news news;
    do
        news = weft_hub_serve(hub, pe, &report);
    while (news == WEFT_HUB_GAVE);
    if (news == WEFT_HUB_CUT)
        return report.culprit;
    if (news == WEFT_HUB_NOTHING || news == WEFT_HUB_LOST)
        return -1;
    if (!weft_control_aborted(weft_attachment.control))
        weft_log("PE %d sent %s; ending the job", pe,
                 report.why ? report.why : "what only goes to a launcher");
    weft_control_abort(weft_attachment.control, &junk);
    return -1;
}
