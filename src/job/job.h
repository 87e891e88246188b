/* SPDX-License-Identifier: BSD-3-Clause */
/* The job as this process sees it: its number, how many there are, and whether it is over. Whoever
 * knows the job reports with the log, too, which comes with this header. */
#ifndef WEFT_JOB_JOB_H
#define WEFT_JOB_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/log.h"
#include "boot/control.h"

enum weft_job_phase {
    WEFT_JOB_BEFORE, /* shmem_init has not been called */
    WEFT_JOB_RUNNING,
    WEFT_JOB_AFTER,  /* finalized */
    WEFT_JOB_FORKED, /* a child of a PE: not a PE itself */
};

struct weft_job {
    int pe, npes; /* npes is 0 unless the job is running */
    _Atomic enum weft_job_phase phase;
    bool oversubscribed; /* more PEs than processors: waiting must never spin */
    bool checked;        /* SHMEM_DEBUG: calls look for all misuse that can be seen */
    bool devices;        /* there is memory of GPUs: pointers may be theirs */
    bool far;            /* some PE is far: messages go to it (far/far.h) */
    bool threads; /* some PE has SHMEM_THREAD_MULTIPLE: its threads may be in calls at once */
    struct weft_control *control;

    /* Derived of these in one place: what calls test at their entry. */
    bool plain;         /* running, and not checked: a call need not ask who makes it */
    bool dispatch;      /* devices or far PEs: an access may need an operation table */
    uint8_t order_slow; /* not 0: to order is more than an instruction, for these reasons */
    bool slow;          /* checked, or devices: calls leave the short way */
    bool fetch_slow;    /* or oversubscribed: those that end with a copy of what they fetch do */
};

extern struct weft_job weft_job;

/* What decides which way calls take; it sets weft_job.checked, .devices, .far or .threads.
 * The job runs, as far as calls are concerned, once it has been said whether it is checked. */
enum weft_job_mode { WEFT_JOB_CHECKED, WEFT_JOB_DEVICES, WEFT_JOB_FAR, WEFT_JOB_THREADS };
void weft_job_set_mode(enum weft_job_mode mode, bool on);

/* Messages of this PE are under way that a quiet waits for, or none is any more: near calls are
 * ordered as in a job of one host then. */
void weft_job_set_unfinished(bool unfinished);

/* Becomes part of the job, and leaves it; a crash says where from then on. 0 or -errno, logged. */
int weft_job_join(void);
void weft_job_leave(void);

/* In a child of a PE, which is no PE: it shares the parent's number and must not speak for it. */
void weft_job_leave_forked(void);

/* The same within exit(), while other threads may be in calls: what they look at stays, and those
 * that would end the process from here on stop for good. */
void weft_job_leave_at_exit(void);

/* From now on this PE comes to no barrier but the last: who waits for it elsewhere hears of it. */
void weft_job_depart(void);

/* Whether the job is over. */
static inline bool weft_job_aborted(void) {
    return weft_control_aborted(weft_job.control);
}

/* Asks for the end of the whole job with `status`; the caller then calls exit(). Other threads of
 * this PE that come here, or find the job aborted, stop for good: one alone ends the process. */
void weft_job_end(int status);

/* Whether the job is over, asked by an exit that would end it: where kernels of GPUs can, one may
 * have a moment ago, and its host has not noticed yet. Waits for that, 100 ms at most. */
bool weft_job_ended_before(void);

/* Ends the whole job because this PE exits with `status`, not 0, and without shmem_finalize. The
 * caller is an exit handler and goes on to the end of the process. */
void weft_job_end_by_exit(int status);

/* Whether this thread is the one that ends the process: what an exit handler still calls has no
 * peers any more to wait for. */
bool weft_job_ending(void);

/* This PE found the job aborted while it was in a call: one line that names the culprit, then an
 * end with WEFT_STATUS_ABORTED, at once. After shmem_global_exit there is no line, and the end is
 * an exit() with its status. */
_Noreturn void weft_job_die_aborted(void);

/* The end of the job is under way: dies of it as soon as this PE sees it, within 2 s. Returns only
 * where nobody is left who could write it. */
void weft_job_die_soon(void);

/* PE `pe` has departed, by exit with this status, while this PE waits for it: the job
 * ends with that status, and this PE as weft_job_die_aborted has it. */
_Noreturn void weft_job_die_left(int pe, int status);

/* Ends the whole job from here with one line, "CALL: text" of the call that this thread is in:
 * misuse or a failure that has no other way out. The second writes the text as it stands. */
_Noreturn void weft_job_panic(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void weft_job_panic_bare(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
