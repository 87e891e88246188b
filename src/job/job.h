/* SPDX-License-Identifier: BSD-3-Clause */
/* The job as this process sees it: this PE's number, the number of PEs, and whether the job is
 * over. This header includes the log because every file that knows the job also reports errors. */
#ifndef WEFT_JOB_JOB_H
#define WEFT_JOB_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/log.h"
#include "boot/control.h"

enum weft_job_phase {
    WEFT_JOB_BEFORE, /* before shmem_init */
    WEFT_JOB_RUNNING,
    WEFT_JOB_AFTER,  /* after shmem_finalize */
    WEFT_JOB_FORKED, /* a forked child of a PE, which is not a PE itself */
};

struct weft_job {
    int pe, npes; /* npes is 0 unless the job runs, or was left in exit() */
    _Atomic enum weft_job_phase phase;
    bool oversubscribed; /* more PEs than processors: waits must not spin */
    bool checked;        /* SHMEM_DEBUG: calls look for all detectable misuse */
    bool devices;        /* the job uses GPU memory: any pointer may be GPU memory */
    bool far;            /* some PE is far: it is reached by messages (far/far.h) */
    bool threads;        /* some PE has SHMEM_THREAD_MULTIPLE: several threads in calls at once */
    struct weft_control *control;

    /* The flags that calls test on entry, derived from the ones above by weft_job_set_mode. */
    bool plain;         /* running and not checked: a call need not check its caller */
    bool dispatch;      /* devices or far: an access may need an operation table */
    uint8_t order_slow; /* why fence and quiet take more than an instruction, as bits; or 0 */
    bool slow;          /* checked or devices: calls take the slow path */
    bool fetch_slow;    /* slow or oversubscribed: calls that fetch a value take the slow path */
};

extern struct weft_job weft_job;

/* The conditions that decide which path calls take. weft_job_set_mode sets weft_job.checked,
 * .devices, .far or .threads and derives the other flags. Calls may run once it has been called
 * with WEFT_JOB_CHECKED. */
enum weft_job_mode { WEFT_JOB_CHECKED, WEFT_JOB_DEVICES, WEFT_JOB_FAR, WEFT_JOB_THREADS };
void weft_job_set_mode(enum weft_job_mode mode, bool on);

/* Says whether this PE has messages under way that a quiet must wait for (far/channel.c). If it has
 * none, fence and quiet are an instruction, as in a job on one host. */
void weft_job_set_unfinished(bool unfinished);

/* Joins the job and installs the crash handler; leaves the job. weft_job_join returns 0, or -errno
 * after logging the reason. */
int weft_job_join(void);
void weft_job_leave(void);

/* Marks this process as a forked child of a PE. It is not a PE itself: it has the parent's number
 * and must not act for the parent. */
void weft_job_leave_forked(void);

/* Leaves the job within exit(), while other threads may be in calls. The memory that these threads
 * read stays mapped. A thread that would end the process from now on sleeps forever instead. */
void weft_job_leave_at_exit(void);

/* Announces that this PE takes part in no further barrier except the last. A PE that waits for it
 * elsewhere learns of the departure. In checked mode, lists what the program has not freed. */
void weft_job_depart(void);

/* Returns whether the job is over. */
static inline bool weft_job_aborted(void) {
    return weft_control_aborted(weft_job.control);
}

/* Ends the whole job with `status`; the caller then calls exit(). Only one thread ends the process:
 * any other thread that calls this function, or finds the job aborted, sleeps forever. */
void weft_job_end(int status);

/* Returns whether the job is over; an exit that would end the job calls this first. With GPUs,
 * waits up to 100 ms: a kernel may just have ended the job, and its host may not have noticed
 * yet. */
bool weft_job_ended_before(void);

/* Ends the whole job because this PE exits with the non-zero `status` without having called
 * shmem_finalize. The caller is an exit handler, which lets the process end. */
void weft_job_end_by_exit(int status);

/* Returns whether this thread is ending the process. If so, calls from exit handlers must not wait
 * for peers. */
bool weft_job_ending(void);

/* Ends this process after a call has found the job aborted: logs one line that names the cause,
 * unless a PE has logged an error, and exits at once with WEFT_STATUS_ABORTED. After
 * shmem_global_exit, and after exit() of this PE that ended the job, there is no line, and the
 * status is the one given there; after shmem_global_exit the process ends by exit(). */
_Noreturn void weft_job_die_aborted(void);

/* Ends this process as weft_job_die_aborted does as soon as the job is aborted; the caller knows
 * that this is about to happen. Blocks for 2 s at most and returns if the job is still not aborted,
 * which means that no process is left to abort it. */
void weft_job_die_soon(void);

/* Ends the job with `status` because this PE waits for PE `pe`, which has exited with that status.
 * Ends this PE as weft_job_die_aborted does. */
_Noreturn void weft_job_die_left(int pe, int status);

/* Ends the whole job because of misuse or of a failure that the caller cannot return. Logs one
 * line: weft_job_panic puts the name of this thread's public call in front of the text,
 * weft_job_panic_bare writes the text alone. */
_Noreturn void weft_job_panic(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void weft_job_panic_bare(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
