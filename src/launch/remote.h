/* SPDX-License-Identifier: BSD-3-Clause */
/* The process by which a daemon is started on a host, ssh or another, as the front sees it: it is
 * fed the start text, and what it says is passed on with the host's name. Its standard input stays
 * open as long as the front lives, for its end is the daemon's end. */
#ifndef WEFT_LAUNCH_REMOTE_H
#define WEFT_LAUNCH_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "launch/signals.h"

struct weft_remote {
    const char *name; /* of the host, as ssh takes it */
    bool here;        /* this host: no ssh is needed */
    pid_t process;    /* 0: it has not been started, or is over, */
    int wait;         /* with this status of waitpid */
    int input, says;  /* our ends of its streams; -1: closed */
    char *text;       /* what it is fed */
    size_t bytes, fed;
    bool through; /* oshrun has started over there, and said so */
    bool hinted;  /* that ssh takes long to come through */
    uint64_t begin_ns;
    size_t used;
    char line[1024]; /* what has come of the current one */
};

/* Starts it; `text` becomes its own. The signals in `signals` are the standard's again in a daemon
 * on this host; ssh takes none from the terminal, whose signals are for the front. 0 or -errno,
 * said. */
int weft_remote_start(struct weft_remote *remote, const struct weft_signals *signals, char *text,
                      size_t bytes);

/* If ssh takes long to come through, says so once. `patience_ms`: the time in which the daemon has
 * to call back. */
void weft_remote_hint(struct weft_remote *remote, int64_t patience_ms);

/* Feeds what can go now; for as long as remote->fed < remote->bytes, poll `input` for POLLOUT. */
void weft_remote_feed(struct weft_remote *remote);

/* Passes on what it says, after a poll of `says`. */
void weft_remote_hear(struct weft_remote *remote);

/* Closes its input, which ends it soon. */
void weft_remote_leave(struct weft_remote *remote);

/* Looks if it is over; whether it is. */
bool weft_remote_reap(struct weft_remote *remote);

/* Kills it, if it is not over, and waits for that. */
void weft_remote_kill(struct weft_remote *remote);

/* The path of this oshrun, where it is looked for on all hosts. */
const char *weft_remote_program(void);

#endif
