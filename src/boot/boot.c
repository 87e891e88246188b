/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining and leaving: once attached to its job, a process may do so as often as it likes. */
#include "boot/boot.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "boot/alive.h"
#include "boot/attach.h"
#include "boot/attachment.h"

struct weft_boot weft_boot;

bool weft_boot_expected(void) {
    return weft_attach_expected();
}

bool weft_boot_attached(int *pe, int *npes) {
    *pe = weft_attachment.pe;
    *npes = weft_attachment.npes;
    return weft_attachment.valid;
}

static int launcher_greet(void) {
    if (!weft_attachment.launched)
        return 0;
    struct weft_wire_header hello = {.kind = WEFT_WIRE_JOIN};
    int error = weft_wire_send(weft_attachment.hub, &hello, NULL, 0);
    if (error == -EPIPE)
        weft_boot_lost();
    if (error)
        weft_log("cannot reach the launcher: %s", strerror(-error));
    return error;
}

static int job_enter(void) {
    struct weft_control_pe *me = &weft_attachment.control->pe[weft_attachment.pe];
    int error = weft_alive_hold(&me->alive);
    if (error) {
        weft_log("cannot become PE %d, which process %d is: %s", weft_attachment.pe,
                 atomic_load(&me->pid), strerror(-error));
        return error;
    }
    atomic_store(&me->pid, (int32_t)getpid());
    atomic_store(&me->state, WEFT_PE_JOINED);
    return launcher_greet();
}

int weft_boot_join(void) {
    int error = weft_attach();
    if (error == 0)
        error = job_enter();
    if (error == 0)
        weft_boot =
            (struct weft_boot){weft_attachment.pe, weft_attachment.npes, weft_attachment.control};
    return error;
}

/* The state before the release: the launcher judges the release by it. */
void weft_boot_leave(void) {
    if (!weft_attachment.valid)
        return; /* a forked child on its way out */
    struct weft_control_pe *me = &weft_attachment.control->pe[weft_attachment.pe];
    atomic_store(&me->state, WEFT_PE_LEFT);
    weft_alive_release(&me->alive);
}
