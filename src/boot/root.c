/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE whose socket closes is dead, unless it has left in order and nobody waits for it. The guards
 * would find a death too, but not before the PE has joined. */
#include "boot/root.h"
#include <poll.h>
#include <stdbool.h>
#include "boot/attachment.h"
#include "boot/hub.h"

enum { LOOK_AT_ABORT_MS = 20 };

static void pe_check_lost(int pe) {
    struct weft_cause death = {.kind = WEFT_ABORT_DIED, .pe = pe};
    bool left = atomic_load(&weft_attachment.control->pe[pe].state) == WEFT_PE_LEFT;
    if (!left || weft_hub_awaits(weft_attachment.served, pe))
        weft_control_abort(weft_attachment.control, &death);
}

static void pe_end_for_junk(int pe, const char *why) {
    struct weft_cause error = {.kind = WEFT_ABORT_ERROR, .pe = pe};
    if (!weft_control_aborted(weft_attachment.control))
        weft_log("PE %d sent %s; ending the job", pe, why ? why : "what only goes to a launcher");
    weft_control_abort(weft_attachment.control, &error);
}

/* All that one PE has sent. */
static void root_serve_pe(int pe) {
    struct weft_hub_report report;
    for (;;)
        switch (weft_hub_serve(weft_attachment.served, pe, &report)) {
        case WEFT_HUB_NOTHING:
        case WEFT_HUB_LOST: /* weft_root_turn looks at those */
            return;
        case WEFT_HUB_GAVE:
            break;
        default:
            pe_end_for_junk(pe, report.why);
            return;
        }
}

void weft_root_turn(void) {
    int npes = weft_attachment.npes;
    struct weft_hub *hub = weft_attachment.served;
    struct pollfd polls[npes + 1];
    for (int pe = 0; pe < npes; pe++)
        polls[pe] =
            (struct pollfd){.fd = weft_hub_socket(hub, pe), .events = weft_hub_events(hub, pe)};
    polls[npes] = (struct pollfd){.fd = weft_attachment.hub, .events = POLLIN};
    int ready = poll(polls, (nfds_t)npes + 1, weft_hub_crowded(hub) ? 1 : LOOK_AT_ABORT_MS);
    for (int pe = 0; ready > 0 && pe < npes; pe++)
        if (polls[pe].revents)
            root_serve_pe(pe);
    weft_hub_retry(hub);
    for (int pe = 0; pe < npes; pe++)
        if (weft_hub_socket(hub, pe) < 0)
            pe_check_lost(pe);
}

static bool root_is_delivering(void) {
    for (int pe = 0; pe < weft_attachment.npes; pe++)
        if (weft_hub_socket(weft_attachment.served, pe) >= 0 &&
            weft_hub_events(weft_attachment.served, pe) & POLLOUT)
            return true;
    return weft_hub_crowded(weft_attachment.served);
}

void weft_root_finish(void) {
    while (root_is_delivering() && !weft_control_aborted(weft_attachment.control))
        weft_root_turn();
}
