/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's record of a job: which PEs were started, have joined and have ended, and the phase
 * of the job's end. One thread reads and writes it; watchers send notices to it through a pipe. */
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
    const struct weft_program *program; /* NULL: on another host; the other fields are unused */
    pid_t child;                        /* the process that was started */
    pid_t self;  /* the process that joined, the child or its descendant; 0: none */
    int life;    /* launcher's end of the life socket; closing it kills the process that joined */
    bool reaped; /* the child has ended */
    int wait;    /* its status from waitpid */
    int64_t lost_ms; /* when its socket closed although it seems to be alive; 0: not closed */
    bool mute;       /* it is alive, but its socket is closed */
    bool killed;     /* ended after the launcher began to kill the remaining PEs */
    struct weft_watch watch;
    struct weft_oom before; /* counts before the PE joined */
};

/* A job that ends without a cause stays RUNNING. Otherwise RUNNING (-> SIGNALED) -> GRACE ->
 * TERMINATING -> KILLING -> OVER; OVER follows as soon as no child is left. SIGNALED -> RUNNING if
 * PEs survive a Ctrl-C; a second signal leads to KILLING. */
enum weft_phase {
    WEFT_RUNNING,
    WEFT_SIGNALED, /* the PEs have a deadly signal, and may still end normally */
    WEFT_GRACE,    /* the abort word is set; survivors print what they were waiting for, and exit */
    WEFT_TERMINATING, /* remaining PEs have SIGTERM */
    WEFT_KILLING,     /* remaining PEs have SIGKILL */
    WEFT_OVER,
};

/* Functions by which a daemon's run reports to the front. */
struct weft_run_above {
    void (*ending)(struct weft_run *run); /* the job ends because of run->cause; called again when
                                             the cause is completed */
    void (*cut)(struct weft_run *run, int pe, int host); /* the PE cannot reach that host */
    void (*line)(struct weft_run *run, bool of_cause, const char *line); /* prints a line */
};

struct weft_run {
    const struct weft_options *options;
    int npes;
    struct weft_run_pe *pe;
    struct weft_control *control;
    int control_fd;
    struct weft_hub *hub;       /* NULL once the job ends */
    struct weft_output *output; /* NULL: PEs write to the launcher's own streams, or to `forward` */
    struct weft_forward *forward;       /* in a daemon: pipes whose data is sent to the front */
    const struct weft_run_above *above; /* NULL: there is no front */
    int notices[2];                     /* pipe from the watchers */
    int exec_failures[2];               /* pipe from children that failed to execute the program */
    struct weft_signals signals;
    struct rlimit descriptors; /* original limit, restored for the PEs */

    enum weft_phase phase;
    int64_t phase_ends_ms; /* 0: the phase has no time limit */
    int64_t time_is_up_ms; /* for --timeout; 0: none */
    int end_signal;
    bool end_by_terminal;
    struct weft_cause cause; /* from GRACE on: why the job ends */
    struct weft_oom before;  /* counts before any PE was started */
    bool announced;          /* the line about the cause has been written */
    bool childless;
    int first_status; /* of the first PE that ended with a status other than 0 */
    int first_pe;     /* that PE */
    int failures;     /* PEs that ended normally, with a status other than 0 */
};

/* Returns the exit status that a shell derives from a status of waitpid. */
int weft_run_status(int wait);

enum weft_pe_state weft_run_state(const struct weft_run *run, int pe);

/* Returns whether the PE is on this host. */
static inline bool weft_run_has(const struct weft_run *run, int pe) {
    return run->pe[pe].program != NULL;
}

/* Stores the numbers of this host's PEs in `pes`, which has room for npes. Returns their number. */
int weft_run_pes_here(const struct weft_run *run, int *pes);

/* Writes "oshrun: " and a line to stderr, or sends it to the front. `of_cause`: the line explains
 * why the job ends. */
void weft_run_say(struct weft_run *run, bool of_cause, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns whether a PE has joined and has not left. The PE may overwrite its state word with
 * anything; only "left" means that its end is not a death. */
bool weft_run_is_in(const struct weft_run *run, int pe);

/* Returns whether a PE of any host has joined. */
bool weft_run_anyone_joined(const struct weft_run *run);

/* Returns the process number of the PE for error lines. */
pid_t weft_run_pid(const struct weft_run *run, int pe);

/* Sends a signal to the process that is this PE, if it still runs. */
void weft_run_signal(const struct weft_run *run, int pe, int signal);

/* Sends a signal to the PE's process group, as a terminal does; for PEs that have their own groups.
 */
void weft_run_signal_group(const struct weft_run *run, int pe, int signal);

#endif
