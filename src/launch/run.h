/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's record of one run: who was started, who joined, who is over, and how far the end
 * of the job has come. One thread reads and writes it; watchers report to it through a pipe. */
#ifndef WEFT_LAUNCH_RUN_H
#define WEFT_LAUNCH_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include "base/clock.h"
#include "boot/control.h"
#include "launch/oom.h"
#include "launch/options.h"
#include "launch/signals.h"
#include "launch/watch.h"

struct weft_forward;
struct weft_hub;
struct weft_output;
struct weft_run;

struct weft_run_pe {
    const struct weft_program *program; /* NULL: it is on another host, and nothing else is set */
    pid_t child;                        /* the process that was started */
    pid_t self;      /* the process that joined: the child or one below it; 0: none has */
    int life;        /* our end of the life socket: closing it kills the process that joined */
    bool reaped;     /* the child is over, */
    int wait;        /* with this status of waitpid, */
    int64_t lost_ms; /* since when its line to us is closed though it seems to live; 0: it is not */
    bool mute;       /* and it does live */
    bool killed;     /* but only after we began to kill whoever was left */
    struct weft_watch watch;
    struct weft_oom before; /* it joined */
};

/* RUNNING (-> SIGNALED) -> GRACE -> TERMINATING -> KILLING -> OVER, or straight to OVER. */
enum weft_phase {
    WEFT_RUNNING,
    WEFT_SIGNALED,    /* the PEs have a deadly signal, and may still end in order */
    WEFT_GRACE,       /* the abort word is set: survivors say what they were at, and exit */
    WEFT_TERMINATING, /* whoever is left has SIGTERM */
    WEFT_KILLING,     /* whoever is left has SIGKILL */
    WEFT_OVER,
};

/* Who is told of a run where this launcher is one of several. */
struct weft_run_above {
    void (*ending)(struct weft_run *run); /* the job ends because of run->cause, or now it is known
                                             how the culprit died */
    void (*cut)(struct weft_run *run, int pe, int host); /* the PE cannot reach that host */
    void (*line)(struct weft_run *run, bool of_cause, const char *line); /* for the person */
};

struct weft_run {
    const struct weft_options *options;
    int npes;
    struct weft_run_pe *pe;
    struct weft_control *control;
    int control_fd;
    struct weft_hub *hub;               /* NULL once the job ends */
    struct weft_output *output;         /* NULL: the PEs write where we write, */
    struct weft_forward *forward;       /* or to those above: with it streams are pipes */
    const struct weft_run_above *above; /* NULL: this is the launcher of the whole job */
    int notices[2];                     /* pipe from the watchers */
    int exec_failures[2];               /* pipe from children that could not become the program */
    struct weft_signals signals;
    struct rlimit descriptors; /* their limit as the launcher found it, for the PEs */

    enum weft_phase phase;
    int64_t phase_ends_ms; /* 0: it has no end of its own */
    int64_t
        time_is_up_ms; /* when the job has had all the time that it may have; 0: it may have any */
    int end_signal;
    bool end_by_terminal;
    struct weft_cause cause; /* from GRACE on: why the job ends */
    struct weft_oom before;  /* anyone was started */
    bool announced;          /* the person knows */
    bool childless;
    int first_status; /* of the first PE that ended with another status than 0, */
    int first_pe;     /* and which it was */
    int failures;     /* how many PEs have ended in order with another status than 0 */
};

/* The exit status that a shell makes of a status of waitpid. */
int weft_run_status(int wait);

enum weft_pe_state weft_run_state(const struct weft_run *run, int pe);

/* Whether the PE is one of this host. */
static inline bool weft_run_has(const struct weft_run *run, int pe) {
    return run->pe[pe].program != NULL;
}

/* Lists those; how many they are, of npes. */
int weft_run_pes_here(const struct weft_run *run, int *pes);

/* Writes "oshrun: " and a line, or has those above write it. `of_cause`: it tells why
 * the job ends. */
void weft_run_say(struct weft_run *run, bool of_cause, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* True if a PE has joined and not left. Its state word may hold anything, as the PE can overwrite
 * it; only "left" makes its end no death. */
bool weft_run_is_in(const struct weft_run *run, int pe);

/* On any host. */
bool weft_run_anyone_joined(const struct weft_run *run);

/* The process to name in messages. */
pid_t weft_run_pid(const struct weft_run *run, int pe);

/* Sends to the process that is this PE, if it still runs. */
void weft_run_signal(const struct weft_run *run, int pe, int signal);

/* Sends to all that it has started, too, as a terminal does: where PEs have groups of their own. */
void weft_run_signal_group(const struct weft_run *run, int pe, int signal);

#endif
