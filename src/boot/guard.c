/* SPDX-License-Identifier: BSD-3-Clause */
/* In a ring one thread per PE is enough: if several PEs die at once, one of them is the successor
 * of a living PE. A PE that is ended by its own guard is a death for its predecessor, so that the
 * end spreads around the ring without timeouts. Every TICK_MS each guard also checks all mutexes,
 * because the PE that should have noticed may be stopped, and the hub's socket, because a PE may
 * have overwritten the page with the mutexes. */
#include "boot/guard.h"
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include "base/deadline.h"
#include "base/descriptor.h"
#include "base/futex.h"
#include "base/machine.h"
#include "base/thread.h"
#include "boot/alive.h"
#include "boot/attachment.h"
#include "boot/end.h"
#include "boot/hangup.h"

enum { TICK_MS = 100, GRACE_MS = 500, PES_A_LOOK = 64, LAUNCHER_MS = 500 };

/* In any other state the PE counts as joined, because it may have overwritten its state. */
static bool pe_is_in(int pe) {
    uint32_t state = atomic_load(&weft_attachment.control->pe[pe].state);
    return state != WEFT_PE_ABSENT && state != WEFT_PE_LEFT;
}

static bool pe_has_left(int pe) {
    return atomic_load(&weft_attachment.control->pe[pe].state) == WEFT_PE_LEFT;
}

/* Returns the next PE of this host that has joined and not left, or -1. */
static int neighbour_find(void) {
    int npes = weft_attachment.npes;
    for (int distance = 1; distance < npes; distance++) {
        int pe = (weft_attachment.pe + distance) % npes;
        if (weft_boot_is_here(pe) && pe_is_in(pe))
            return pe;
    }
    return -1;
}

/* The end of a PE that has left is not a death. */
static void death_report(int pe) {
    struct weft_cause death = {.kind = WEFT_ABORT_DIED, .pe = pe};
    if (pe_has_left(pe))
        return;
    weft_control_abort(weft_attachment.control, &death);
    if (pe == weft_attachment.root)
        weft_hangup();
}

/* Handles the result of locking a PE's mutex: reports the death if there was one, and unlocks the
 * mutex. */
static void neighbour_judge(int pe, int result) {
    pthread_mutex_t *alive = &weft_attachment.control->pe[pe].alive;
    if (result == EOWNERDEAD)
        death_report(pe);
    weft_alive_let_go(alive, result);
}

static void neighbour_watch(int pe) {
    struct timespec until = weft_deadline_ms(TICK_MS);
    int result = weft_alive_await(&weft_attachment.control->pe[pe].alive, &until);
    neighbour_judge(pe, result);
    if (result == 0)
        weft_clock_sleep_ms(1); /* the PE is leaving or joining again */
    else if (result != EOWNERDEAD && result != ETIMEDOUT)
        weft_clock_sleep_ms(TICK_MS); /* the mutex was overwritten */
}

static void mutexes_check(void) {
    for (int pe = 0; pe < weft_attachment.npes; pe++)
        if (pe != weft_attachment.pe && weft_boot_is_here(pe) && pe_is_in(pe))
            neighbour_judge(pe, weft_alive_try(&weft_attachment.control->pe[pe].alive));
}

/* A living PE may have closed its socket. The kernel releases a dying PE's mutex before it closes
 * its sockets. So if the mutex is held, the PE is alive, or another guard holds it for a moment and
 * reports the death. The next tick checks again. */
static void line_judge(int pe) {
    if (!weft_alive_is_held(&weft_attachment.control->pe[pe].alive))
        death_report(pe);
}

/* The agent of the first PE watches the sockets of the others. */
static void hub_socket_check(void) {
    struct pollfd hub = {.fd = weft_attachment.hub, .events = POLLRDHUP};
    if (weft_attachment.pe != weft_attachment.root && weft_descriptor_is_ours(hub.fd) &&
        poll(&hub, 1, 0) > 0 && hub.revents & (POLLHUP | POLLRDHUP))
        line_judge(weft_attachment.root);
}

/* Ends this process if the program does not notice the end of the job within GRACE_MS. */
static void guard_end_self(void) {
    weft_boot_tell_end();
    weft_clock_sleep_ms(GRACE_MS);
    if (!pe_has_left(weft_attachment.pe) && !weft_boot_is_alone())
        weft_boot_end_self("");
}

static void *guard_main(void *unused) {
    (void)unused;
    for (;;) {
        int pe = neighbour_find();
        if (pe >= 0 && !weft_control_aborted(weft_attachment.control))
            neighbour_watch(pe);
        else
            weft_clock_sleep_ms(TICK_MS);
        mutexes_check();
        hub_socket_check();
        if (weft_control_aborted(weft_attachment.control) && !pe_has_left(weft_attachment.pe))
            guard_end_self();
        weft_alive_end_if_last();
    }
    return NULL;
}

int weft_guard_start(void) {
    pthread_t thread;
    int error = weft_thread_start(&thread, guard_main, NULL);
    if (error)
        weft_log("cannot start the thread that watches over the job: %s%s", strerror(-error),
                 weft_remedy(error).text);
    else
        pthread_detach(thread);
    return error;
}

/* --- Under oshrun ----------------------------------------------------------------------------- */

/* Reports a death unless the launcher does so within a moment. The dead PE's mutex stays locked by
 * this thread until the process ends, which is soon. Then the kernel marks it again, and the
 * launcher, when it continues, finds it as if no PE had locked it. */
static void death_tell(int pe) {
    struct weft_control *control = weft_attachment.control;
    struct weft_cause death = {.kind = WEFT_ABORT_DIED, .pe = pe};
    uint64_t until_ns = weft_clock_ns() + LAUNCHER_MS * WEFT_NS_PER_MS;
    while (!weft_control_aborted(control) && weft_clock_ns() < until_ns)
        weft_futex_sleep(&control->abort, WEFT_ABORT_NONE, WEFT_FUTEX_ALL, TICK_MS);
    weft_control_abort(control, &death);
}

/* Returns whether the PE has died; the end of a PE that has left is not a death. */
static bool pe_is_dead(int pe) {
    if (!pe_is_in(pe))
        return false;
    int found = weft_alive_try(&weft_attachment.control->pe[pe].alive);
    bool dead = found == EOWNERDEAD && !pe_has_left(pe);
    if (!dead)
        weft_alive_let_go(&weft_attachment.control->pe[pe].alive, found);
    return dead;
}

/* In a large job each call checks some of the PEs. PEs of other hosts are not checked: each host
 * has a launcher, whose death the front notices. */
void weft_guard_look(void) {
    static _Atomic uint64_t next_look_ns;
    static _Atomic uint32_t next_pe;
    int npes = weft_attachment.npes;
    if (!weft_attachment.by_oshrun || !weft_attachment.valid || npes == 1)
        return;
    uint64_t now_ns = weft_clock_ns(), due_ns = atomic_load(&next_look_ns);
    if (now_ns < due_ns ||
        !atomic_compare_exchange_strong(&next_look_ns, &due_ns, now_ns + TICK_MS * WEFT_NS_PER_MS))
        return;
    for (int looks = 0; looks < PES_A_LOOK && looks < npes; looks++) {
        int pe = (int)(atomic_fetch_add(&next_pe, 1) % (uint32_t)npes);
        if (pe != weft_attachment.pe && weft_boot_is_here(pe) && pe_is_dead(pe)) {
            death_tell(pe);
            return;
        }
    }
}
