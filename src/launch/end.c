/* SPDX-License-Identifier: BSD-3-Clause */
/* The abort word is written at the first sign of a death, so that no PE waits in vain. The signal
 * or status is known only when the kernel has removed the process; the error line is therefore
 * written later. */
#include "launch/end.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "boot/hub.h"
#include "launch/descendants.h"
#include "launch/spawn.h"

enum {
    SIGNALED_MS = 1000, /* time for the PEs' own handlers of a deadly signal */
    GRACE_MS = 500,
    TERMINATING_MS = 400,
    KILLING_MS = 1000,
    KILL_AGAIN_MS = 20,   /* interval, for processes that were created meanwhile */
    STATUS_TIMEOUT = 124, /* same as timeout(1) */
    STATUS_NO_BETTER =
        WEFT_STATUS_ABORTED, /* the culprit exited with 0, or its status is unknown */
};

static void phase_enter(struct weft_run *run, enum weft_phase phase, int lasts_ms) {
    run->phase = phase;
    run->phase_ends_ms = lasts_ms ? weft_clock_ms() + lasts_ms : 0;
}

/* Returns true if an error line of the launcher would only repeat what the user knows. */
static bool end_is_known(const struct weft_run *run) {
    const struct weft_cause *cause = &run->cause;
    bool plain_program =
        run->npes == 1 && cause->kind == WEFT_ABORT_EXITED && cause->state == WEFT_PE_ABSENT;
    bool on_purpose = cause->kind == WEFT_ABORT_GLOBAL_EXIT && !run->options->verbose;
    return cause->kind == WEFT_ABORT_ERROR || on_purpose || plain_program;
}

/* Explains a SIGKILL that the kernel sent because memory ran out. */
static void oom_tell(struct weft_run *run) {
    const struct weft_cause *cause = &run->cause;
    char what[WEFT_OOM_TEXT_MAX];
    bool killed = cause->kind == WEFT_ABORT_DIED && weft_run_has(run, cause->pe) &&
                  (!cause->detail || cause->detail == SIGKILL);
    const struct weft_run_pe *culprit = killed ? &run->pe[cause->pe] : NULL;
    if (killed &&
        weft_oom_text(culprit->self ? &culprit->before : &run->before, what, sizeof what) > 0)
        weft_run_say(run, true, "the kernel killed PE %d because memory ran out: %s", cause->pe,
                     what);
}

static void end_announce(struct weft_run *run) {
    char text[WEFT_CAUSE_TEXT_BYTES];
    struct weft_spawn_failure failure;
    bool failed = weft_spawn_failure(run, &failure);
    if (run->announced)
        return;
    run->announced = true;
    weft_cause_text(&run->cause, text, sizeof text);
    if (failed)
        weft_run_say(run, true, "cannot %s '%s'%s: %s%s%s%s", failure.action, failure.object,
                     weft_boot_on(run->cause.pe).text, strerror(failure.error),
                     failure.beside ? "; did you mean ./" : "",
                     failure.beside ? failure.object : "", failure.beside ? "?" : "");
    else if (!end_is_known(run))
        weft_run_say(run, true, "%s; ending the job", text);
    oom_tell(run);
}

/* Blames the signal, not the PE, if the PE died right after all PEs got a deadly signal. */
static void signal_blame(const struct weft_run *run, struct weft_cause *cause) {
    if (run->phase == WEFT_SIGNALED &&
        (cause->kind == WEFT_ABORT_DIED || cause->kind == WEFT_ABORT_EXITED))
        *cause =
            (struct weft_cause){.kind = WEFT_ABORT_LAUNCHER, .pe = -1, .detail = run->end_signal};
}

void weft_end_begin(struct weft_run *run, struct weft_cause cause) {
    if (run->phase >= WEFT_GRACE)
        return;
    signal_blame(run, &cause);
    weft_control_abort(run->control, &cause);
    weft_hub_close(run->hub); /* wakes PEs that wait in an exchange */
    run->hub = NULL;
    run->cause = cause;
    phase_enter(run, WEFT_GRACE, GRACE_MS);
    if (run->above)
        run->above->ending(run);
    if (cause.kind != WEFT_ABORT_DIED || cause.detail)
        end_announce(run);
    else if (run->pe[cause.pe].reaped)
        weft_end_learn(run);
}

/* Returns the signal that killed the PE, or 0. A wrapper such as a shell reports it as 128 +
 * signal. */
static int pe_fatal_signal(const struct weft_run_pe *pe) {
    if (WIFSIGNALED(pe->wait))
        return WTERMSIG(pe->wait);
    bool below_wrapper = pe->self && pe->self != pe->child;
    return below_wrapper && WEXITSTATUS(pe->wait) > 128 ? WEXITSTATUS(pe->wait) - 128 : 0;
}

void weft_end_learn(struct weft_run *run) {
    struct weft_cause *cause = &run->cause;
    if (run->announced || cause->kind != WEFT_ABORT_DIED || cause->detail)
        return;
    const struct weft_run_pe *culprit = &run->pe[cause->pe];
    cause->detail = pe_fatal_signal(culprit);
    if (cause->detail) {
        atomic_store(&run->control->abort_detail, cause->detail);
    } else if (culprit->self == culprit->child) {
        cause->kind = WEFT_ABORT_EXITED;
        cause->detail = WEXITSTATUS(culprit->wait);
    }
    if (run->above)
        run->above->ending(run);
    end_announce(run);
}

/* After the grace period the culprit's process still exists: it may have become another program by
 * exec. If it is being torn down, which takes long on a busy machine, the line is written once its
 * status is known. */
static void end_announce_unknown(struct weft_run *run) {
    if (run->announced || !weft_run_has(run, run->cause.pe))
        return;
    const struct weft_run_pe *culprit = &run->pe[run->cause.pe];
    if (weft_descendants_runs(weft_run_pid(run, run->cause.pe)))
        run->cause.kind = WEFT_ABORT_EXECED;
    else if (culprit->self == culprit->child)
        return;
    end_announce(run);
}

static void run_finish(struct weft_run *run) {
    end_announce(run);
    run->phase = WEFT_OVER;
}

static void pes_kill(struct weft_run *run) {
    for (int pe = 0; pe < run->npes; pe++) {
        if (!weft_run_has(run, pe))
            continue;
        if (!run->pe[pe].reaped)
            kill(run->pe[pe].child, SIGKILL);
        if (run->pe[pe].life >= 0)
            close(run->pe[pe].life);
        run->pe[pe].life = -1;
    }
    weft_descendants_signal(SIGKILL);
}

void weft_end_signaled(struct weft_run *run, int signal, bool from_terminal) {
    if (run->phase == WEFT_RUNNING) {
        run->end_signal = signal;
        run->end_by_terminal = from_terminal;
        phase_enter(run, WEFT_SIGNALED, from_terminal ? 2 * SIGNALED_MS : SIGNALED_MS);
        return;
    }
    weft_end_begin(run,
                   (struct weft_cause){.kind = WEFT_ABORT_LAUNCHER, .pe = -1, .detail = signal});
    if (run->phase < WEFT_KILLING)
        phase_enter(run, WEFT_KILLING, KILLING_MS);
    pes_kill(run);
}

/* Interactive programs handle Ctrl-C and go on; only a second Ctrl-C within the time ends the job.
 */
static void signal_was_in_vain(struct weft_run *run) {
    if (run->end_by_terminal)
        phase_enter(run, WEFT_RUNNING, 0);
    else
        weft_end_signaled(run, run->end_signal, false);
}

void weft_end_advance(struct weft_run *run) {
    if (run->phase >= WEFT_GRACE && run->childless)
        run_finish(run);
    if (run->phase == WEFT_KILLING)
        pes_kill(run);
    if (run->time_is_up_ms && weft_clock_ms() >= run->time_is_up_ms)
        weft_end_begin(run, (struct weft_cause){.kind = WEFT_ABORT_TIMEOUT,
                                                .pe = -1,
                                                .detail = run->options->timeout_s});
    if (!run->phase_ends_ms || weft_clock_ms() < run->phase_ends_ms)
        return;
    switch (run->phase) {
    case WEFT_SIGNALED:
        signal_was_in_vain(run);
        break;
    case WEFT_GRACE:
        end_announce_unknown(run);
        weft_descendants_signal(SIGTERM);
        phase_enter(run, WEFT_TERMINATING, TERMINATING_MS);
        break;
    case WEFT_TERMINATING:
        phase_enter(run, WEFT_KILLING, KILLING_MS);
        pes_kill(run);
        break;
    default:
        run_finish(run);
    }
}

int weft_end_patience(const struct weft_run *run) {
    if (run->hub && weft_hub_crowded(run->hub))
        return 1;
    if (run->phase == WEFT_KILLING)
        return KILL_AGAIN_MS;
    int64_t next = run->phase_ends_ms;
    if (run->time_is_up_ms && run->phase < WEFT_GRACE && (!next || run->time_is_up_ms < next))
        next = run->time_is_up_ms;
    int64_t left = next - weft_clock_ms();
    return !next ? -1 : left > 0 ? (int)left : 0;
}

static int culprit_status(const struct weft_run *run) {
    const struct weft_run_pe *culprit = &run->pe[run->cause.pe];
    int status = culprit->reaped && !culprit->killed ? weft_run_status(culprit->wait) : 0;
    if (run->cause.kind == WEFT_ABORT_DIED && run->cause.detail)
        status = 128 + run->cause.detail;
    if (run->cause.kind == WEFT_ABORT_LEFT)
        status = run->cause.detail & 0xff;
    return status ? status : STATUS_NO_BETTER;
}

void weft_end_tell_status(const struct weft_run *run) {
    bool in_order = run->cause.kind == WEFT_ABORT_NONE && run->failures > 0;
    if (!in_order || run->npes == 1 || WIFSIGNALED(run->pe[run->first_pe].wait))
        return;
    char others[64] = "";
    if (run->failures > 1)
        snprintf(others, sizeof others, "; %d more did not exit with 0", run->failures - 1);
    fprintf(stderr, "oshrun: PE %d (pid %d) exited with status %d%s\n", run->first_pe,
            weft_run_pid(run, run->first_pe), run->first_status, others);
}

int weft_end_status(const struct weft_run *run) {
    switch (run->cause.kind) {
    case WEFT_ABORT_NONE:
        return run->first_status;
    case WEFT_ABORT_GLOBAL_EXIT:
        return run->cause.detail & 0xff;
    case WEFT_ABORT_ERROR:
        return run->cause.detail & 0xff ? run->cause.detail & 0xff : STATUS_NO_BETTER;
    case WEFT_ABORT_LAUNCHER:
        return 128 + run->cause.detail;
    case WEFT_ABORT_TIMEOUT:
        return STATUS_TIMEOUT;
    case WEFT_ABORT_HOST:
    case WEFT_ABORT_FRONT:
    case WEFT_ABORT_CUT:
        return STATUS_NO_BETTER;
    default:
        return culprit_status(run);
    }
}
