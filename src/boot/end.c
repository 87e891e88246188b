/* SPDX-License-Identifier: BSD-3-Clause */
/* Under oshrun, oshrun writes the abort word. A PE writes it only if the program has closed the
 * socket to oshrun, or if oshrun does not notice a death in time (boot/guard.h). Under other
 * launchers the first PE that knows a cause writes it. */
#include "boot/end.h"
#include <unistd.h>
#include "base/clock.h"
#include "base/descriptor.h"
#include "boot/agent.h"
#include "boot/attachment.h"
#include "boot/source.h"

static _Atomic(weft_end_handler *) end_handler;

void weft_boot_set_end_handler(weft_end_handler *handler) {
    atomic_store(&end_handler, handler);
}

bool weft_boot_end_handled(void) {
    return atomic_load(&end_handler) != NULL;
}

/* The handler runs outside of any call, since it may leave by longjmp. */
void weft_boot_tell_error(const char *line) {
    weft_end_handler *handler = atomic_load(&end_handler);
    WEFT_IN_CALL(WEFT_NO_CALL);
    if (handler)
        handler(line);
}

static _Atomic bool alone;

void weft_boot_go_alone(void) {
    if (!weft_attachment.by_oshrun)
        atomic_store(&alone, true);
}

bool weft_boot_is_alone(void) {
    return atomic_load(&alone);
}

void weft_boot_tell_end(void) {
    struct weft_cause cause = weft_control_cause(weft_attachment.control, weft_attachment.npes);
    if (cause.kind != WEFT_ABORT_NONE && cause.kind != WEFT_ABORT_GLOBAL_EXIT)
        weft_boot_tell_error(weft_boot_abort_text());
}

/* Asks oshrun to end the job, by a message of this kind. Without oshrun, or if the program has
 * closed the socket to it, writes the cause to the control page. */
static void job_end(enum weft_wire_kind kind, int first, const struct weft_cause *cause) {
    struct weft_wire_header wish = {
        .kind = kind, .first = (uint32_t)first, .status = cause->detail};
    if (weft_attachment.by_oshrun && weft_descriptor_is_ours(weft_attachment.hub))
        weft_wire_send(weft_attachment.hub, &wish, NULL, 0);
    else if (weft_attachment.by_oshrun || weft_attachment.npes > 1)
        weft_control_abort(weft_attachment.control, cause);
}

void weft_boot_end_job(int status, bool error) {
    enum weft_end_kind kind = error ? WEFT_ABORT_ERROR : WEFT_ABORT_GLOBAL_EXIT;
    struct weft_cause cause = {.kind = kind, .pe = weft_attachment.pe, .detail = status};
    if (weft_attachment.valid)
        job_end(error ? WEFT_WIRE_FAIL : WEFT_WIRE_EXIT, cause.pe, &cause);
}

void weft_boot_end_for(int pe, int status) {
    struct weft_cause cause = {.kind = WEFT_ABORT_LEFT, .pe = pe, .detail = status};
    job_end(WEFT_WIRE_BLAME, pe, &cause);
}

/* The hub is served by oshrun, its daemon, or the agent of this host (boot/agent.h). */
void weft_boot_tell_cut(int host) {
    struct weft_wire_header cut = {.kind = WEFT_WIRE_CUT, .first = (uint32_t)host};
    if (weft_descriptor_is_ours(weft_attachment.hub))
        weft_wire_send(weft_attachment.hub, &cut, NULL, 0);
}

void weft_boot_close_source(void) {
    const struct weft_source *source = weft_attachment.source;
    weft_attachment.source = NULL;
    if (source && source->close)
        source->close();
}

void weft_boot_part(void) {
    weft_agent_finish();
}

static _Atomic bool leaving; /* a thread is in weft_boot_exit, and has logged the reason */

void weft_boot_exit(int status) {
    atomic_store(&leaving, true);
    weft_boot_part();
    _exit(status);
}

/* Ends this process at once, but in a way that another launcher takes for an orderly end. */
static _Noreturn void end_orderly(int status) {
    weft_boot_close_source();
    weft_boot_exit(status);
}

/* Returns whether the job was ended on purpose, or by this PE's own exit: then nothing is logged.
 */
static bool ends_in_order(const struct weft_cause *cause) {
    return cause->kind == WEFT_ABORT_GLOBAL_EXIT ||
           (cause->kind == WEFT_ABORT_LEFT && cause->pe == weft_attachment.pe);
}

void weft_boot_lost(void) {
    struct weft_cause root_died = {.kind = WEFT_ABORT_DIED, .pe = weft_attachment.root};
    if (!weft_attachment.by_oshrun)
        weft_control_abort(weft_attachment.control,
                           &root_died); /* does nothing if there is a cause */
    struct weft_cause cause = weft_control_cause(weft_attachment.control, weft_attachment.npes);
    if (ends_in_order(&cause))
        end_orderly(cause.detail & 0xff);
    weft_boot_tell_end();
    if (cause.kind == WEFT_ABORT_NONE)
        weft_log("the launcher is gone");
    else
        weft_log("%s; leaving", weft_boot_abort_text());
    weft_boot_exit(WEFT_STATUS_ABORTED);
}

void weft_boot_end_self(const char *remark) {
    while (atomic_load(&leaving))
        pause();
    struct weft_cause cause = weft_control_cause(weft_attachment.control, weft_attachment.npes);
    if (ends_in_order(&cause))
        end_orderly(cause.detail & 0xff);
    if (cause.kind != WEFT_ABORT_ERROR) /* after an error its PE has logged everything already */
        weft_log("%s; leaving%s", weft_boot_abort_text(), remark);
    weft_boot_exit(WEFT_STATUS_ABORTED);
}

/* oshrun knows that a PE has died a moment before it knows by which signal. */
static void death_await(void) {
    enum { LATER_MS = 100 };
    static _Atomic bool awaited;
    struct weft_control *control = weft_attachment.control;
    for (int ms = 0; ms < LATER_MS && !atomic_load(&awaited); ms++)
        if (atomic_load(&control->abort) != WEFT_ABORT_DIED || atomic_load(&control->abort_detail))
            break;
        else
            weft_clock_sleep_ms(1);
    atomic_store(&awaited, true);
}

const char *weft_boot_abort_text(void) {
    static _Thread_local char text[WEFT_CAUSE_TEXT_BYTES];
    struct weft_cause cause = {.kind = WEFT_ABORT_NONE};
    if (weft_attachment.control && weft_attachment.by_oshrun)
        death_await();
    if (weft_attachment.control)
        cause = weft_control_cause(weft_attachment.control, weft_attachment.npes);
    weft_cause_text(&cause, text, sizeof text);
    return text;
}
