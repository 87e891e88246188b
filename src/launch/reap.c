/* SPDX-License-Identifier: BSD-3-Clause */
/* These ends of a PE are deaths: between shmem_init and shmem_finalize; before shmem_init by a
 * signal or with a status other than 0; any end before shmem_init if others have called it, since
 * they wait for this PE; and after shmem_finalize if an exchange of all PEs waits for it. The first
 * sign is the alive mutex, otherwise the socket, otherwise waitpid. Messages that a PE sent before
 * it died are read first, because one of them may report shmem_global_exit. */
#include "launch/reap.h"
#include <errno.h>
#include <sys/wait.h>
#include "boot/alive.h"
#include "boot/hub.h"
#include "launch/descendants.h"
#include "launch/end.h"

enum { LOST_GRACE_MS = 1000, LOST_LOOK_MS = 50 };

static void messages_drain(struct weft_run *run, int pe) {
    while (weft_reap_serve(run, pe))
        ;
}

/* Returns why the job ends, given that `own` was seen. A PE can know the cause before the launcher,
 * and has then written it to the control page: PEs detect deaths faster than a launcher that has no
 * processor (boot/guard.h), and a program may have closed its PE's socket to the launcher. The PE
 * that was seen to end then ended because of it. */
static struct weft_cause cause_find(struct weft_run *run, struct weft_cause own) {
    struct weft_cause written = weft_control_cause(run->control, run->npes);
    bool death = own.kind == WEFT_ABORT_DIED || own.kind == WEFT_ABORT_EXITED;
    if (written.pe < 0)
        return own;
    switch (written.kind) {
    case WEFT_ABORT_ERROR:
    case WEFT_ABORT_GLOBAL_EXIT:
    case WEFT_ABORT_LEFT:
        return written;
    case WEFT_ABORT_DIED:
        if (!death || written.pe == own.pe)
            return own;
        messages_drain(run, written.pe);
        return (struct weft_cause){.kind = WEFT_ABORT_DIED, .pe = written.pe};
    default: /* none, or a PE has overwritten the page */
        return own;
    }
}

static void job_end_by(struct weft_run *run, int pe, enum weft_end_kind kind, int detail) {
    if (run->phase >= WEFT_GRACE)
        return;
    struct weft_cause cause =
        cause_find(run, (struct weft_cause){.kind = kind, .pe = pe, .detail = detail});
    cause.pid = weft_run_pid(run, cause.pe);
    cause.state = weft_run_state(run, cause.pe);
    weft_end_begin(run, cause);
}

/* Ends the job because a child has died; its status is known. */
static void job_end_by_child(struct weft_run *run, int pe) {
    int wait = run->pe[pe].wait;
    if (WIFSIGNALED(wait))
        job_end_by(run, pe, WEFT_ABORT_DIED, WTERMSIG(wait));
    else
        job_end_by(run, pe, WEFT_ABORT_EXITED, WEXITSTATUS(wait));
}

/* SIGPIPE after shmem_finalize is not reported: it ends a program whose reader has closed the pipe,
 * as in `oshrun ./prog | head`. */
static void child_judge_left(struct weft_run *run, int pe) {
    int wait = run->pe[pe].wait;
    if (run->hub && weft_hub_awaits(run->hub, pe))
        job_end_by_child(run, pe);
    else if (!WIFSIGNALED(wait))
        run->failures += WEXITSTATUS(wait) != 0;
    else if (WTERMSIG(wait) != SIGPIPE)
        weft_run_say(run, false, "PE %d (pid %d%s) was killed by signal %d after shmem_finalize",
                     pe, run->pe[pe].child, weft_boot_on(pe).text, WTERMSIG(wait));
}

/* Decides what follows from the end of a PE's child. */
static void child_judge(struct weft_run *run, int pe) {
    const struct weft_run_pe *it = &run->pe[pe];
    messages_drain(run, pe);
    bool absent = !it->self, is_child = it->self == it->child;
    if (weft_run_state(run, pe) == WEFT_PE_LEFT)
        child_judge_left(run, pe);
    else if (absent ? it->wait != 0 || weft_run_anyone_joined(run) : is_child || !it->watch.running)
        job_end_by_child(
            run,
            pe); /* otherwise the PE is a descendant of the child, and its mutex reports its end */
}

static void pe_joined(struct weft_run *run, int pe, pid_t self) {
    run->pe[pe].self =
        self ? self
             : run->pe[pe]
                   .child; /* 0: the PE is in a pid namespace that is not below the launcher's */
    weft_watch_start(&run->pe[pe].watch);
    weft_oom_note_other(&run->pe[pe].before, run->pe[pe].self, &run->before);
    weft_reap_judge_absent(run);
}

void weft_reap_judge_absent(struct weft_run *run) {
    for (int other = 0; other < run->npes; other++)
        if (run->pe[other].reaped && weft_run_state(run, other) == WEFT_PE_ABSENT)
            child_judge(run, other); /* others will wait in vain */
}

static void mute_judge(struct weft_run *run, int pe) {
    if (!run->hub || !weft_hub_awaits(run->hub, pe))
        return;
    weft_run_say(
        run, false,
        "the others wait for PE %d (pid %d%s) in an exchange, and it has closed its connection "
        "to oshrun; ending the job",
        pe, weft_run_pid(run, pe), weft_boot_on(pe).text);
    job_end_by(run, pe, WEFT_ABORT_ERROR, 0);
}

/* A PE that an exchange now waits for may already have ended or may be unable to send. */
static void pe_gave(struct weft_run *run) {
    for (int pe = 0; pe < run->npes; pe++)
        if (run->pe[pe].mute)
            mute_judge(run, pe);
        else if (run->pe[pe].reaped && run->hub && weft_hub_awaits(run->hub, pe))
            child_judge(run, pe);
}

/* Returns whether the PE holds its mutex and its process runs. The mutex alone is not enough: a PE
 * that detects the death of another holds that one's mutex for a while (boot/guard.h). */
static bool pe_seems_alive(const struct weft_run *run, int pe) {
    const struct weft_run_pe *it = &run->pe[pe];
    bool over = it->reaped && it->self == it->child;
    return !over && weft_alive_is_held(&run->control->pe[pe].alive) &&
           weft_descendants_runs(weft_run_pid(run, pe));
}

/* The socket of a PE has closed: either it has died, or the program has closed descriptors that it
 * did not open. A PE that still seems alive after the grace period is alive: by then a PE that
 * holds a dead PE's mutex (boot/guard.h) has ended. Only the grace helps if the PE runs in another
 * pid namespace, where the process that is checked is not the PE. */
static void lost_judge(struct weft_run *run, int pe) {
    struct weft_run_pe *it = &run->pe[pe];
    bool alive = pe_seems_alive(run, pe);
    if (!weft_run_is_in(run, pe)) {
        it->lost_ms = 0;
        return;
    }
    if (!alive) {
        job_end_by(run, pe, WEFT_ABORT_DIED, 0);
        return;
    }
    if (!it->lost_ms)
        it->lost_ms = weft_clock_ms();
    if (weft_clock_ms() - it->lost_ms < LOST_GRACE_MS)
        return;
    weft_run_say(
        run, false,
        "PE %d (pid %d%s) has closed descriptors that it has not opened, its connection to "
        "oshrun among them; it continues without it",
        pe, weft_run_pid(run, pe), weft_boot_on(pe).text);
    it->mute = true;
    mute_judge(run, pe);
}

static bool is_undecided(const struct weft_run *run, int pe) {
    return run->hub && run->pe[pe].lost_ms && !run->pe[pe].mute;
}

void weft_reap_judge_lost(struct weft_run *run) {
    for (int pe = 0; pe < run->npes; pe++)
        if (is_undecided(run, pe))
            lost_judge(run, pe);
}

int weft_reap_patience(const struct weft_run *run) {
    for (int pe = 0; pe < run->npes; pe++)
        if (is_undecided(run, pe))
            return LOST_LOOK_MS;
    return -1;
}

static void pe_sent_junk(struct weft_run *run, int pe, const char *why) {
    weft_run_say(run, false, "PE %d (pid %d%s) sent %s; ending the job", pe, weft_run_pid(run, pe),
                 weft_boot_on(pe).text, why);
    job_end_by(run, pe, WEFT_ABORT_ERROR, 0);
}

bool weft_reap_serve(struct weft_run *run, int pe) {
    struct weft_hub_report report;
    enum weft_hub_event event = run->hub ? weft_hub_serve(run->hub, pe, &report) : WEFT_HUB_NOTHING;
    switch (event) {
    case WEFT_HUB_NOTHING:
        return false;
    case WEFT_HUB_GAVE:
        pe_gave(run);
        break;
    case WEFT_HUB_JOINED:
        pe_joined(run, pe, report.pid);
        break;
    case WEFT_HUB_EXIT:
        job_end_by(run, pe, WEFT_ABORT_GLOBAL_EXIT, report.status);
        break;
    case WEFT_HUB_FAILED:
        job_end_by(run, pe, WEFT_ABORT_ERROR, report.status);
        break;
    case WEFT_HUB_BLAMED:
        job_end_by(run, report.culprit, WEFT_ABORT_LEFT, report.status & 0xff);
        break;
    case WEFT_HUB_CUT: /* the front knows whether the other host is alive */
        if (run->above)
            run->above->cut(run, pe, report.culprit);
        break;
    case WEFT_HUB_LOST:
        lost_judge(run, pe);
        break;
    case WEFT_HUB_JUNK:
        pe_sent_junk(run, pe, report.why);
        break;
    }
    return true;
}

void weft_reap_noticed(struct weft_run *run, const struct weft_notice *notice) {
    int pe = notice->pe;
    run->pe[pe].watch.running = false;
    messages_drain(run, pe);
    if (notice->result == EOWNERDEAD && weft_run_is_in(run, pe))
        job_end_by(run, pe, WEFT_ABORT_DIED, 0);
    else if (notice->result == 0 && weft_run_state(run, pe) == WEFT_PE_JOINED)
        weft_watch_start(&run->pe[pe].watch); /* it called shmem_finalize and shmem_init again */
}

/* Returns whether the PE was dying before the launcher began to kill. */
static bool pe_died_first(const struct weft_run *run, int pe) {
    return run->cause.kind == WEFT_ABORT_DIED && run->cause.pe == pe &&
           run->pe[pe].self == run->pe[pe].child;
}

static void child_reaped(struct weft_run *run, int pe, int wait) {
    run->pe[pe].reaped = true;
    run->pe[pe].wait = wait;
    run->pe[pe].killed = run->phase >= WEFT_TERMINATING && !pe_died_first(run, pe);
    if (!run->first_status) {
        run->first_status = weft_run_status(wait);
        run->first_pe = pe;
    }
    if (run->phase < WEFT_GRACE)
        child_judge(run, pe);
    else if (run->cause.pe == pe)
        weft_end_learn(run);
}

void weft_reap_children(struct weft_run *run) {
    int wait;
    pid_t pid;
    while ((pid = waitpid(-1, &wait, WNOHANG)) > 0)
        for (int pe = 0; pe < run->npes; pe++)
            if (run->pe[pe].child == pid && !run->pe[pe].reaped)
                child_reaped(run, pe, wait);
    run->childless = pid < 0 && errno == ECHILD;
}

/* Returns whether the process that joined still runs after the child that was its wrapper has
 * ended. It has become a child of the launcher, which adopts orphans. */
static bool pe_lingers(const struct weft_run_pe *pe) {
    siginfo_t info = {0};
    return pe->self && pe->self != pe->child &&
           waitid(P_PID, (id_t)pe->self, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool weft_reap_all_over(const struct weft_run *run) {
    for (int pe = 0; pe < run->npes; pe++) {
        const struct weft_run_pe *it = &run->pe[pe];
        if (!weft_run_has(run, pe))
            continue;
        bool below = it->self && it->self != it->child;
        if (!it->reaped || (below && weft_run_is_in(run, pe)) || pe_lingers(it))
            return false;
    }
    return true;
}
