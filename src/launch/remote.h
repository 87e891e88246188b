/* SPDX-License-Identifier: BSD-3-Clause */
/* The process that starts a daemon on a host: ssh, or oshrun itself on this host. It is fed the
 * start text, and its output is printed with the host's name. Its standard input stays open as long
 * as the front or relay that started it lives; when the input ends, the daemon ends. */
#ifndef WEFT_LAUNCH_REMOTE_H
#define WEFT_LAUNCH_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "launch/signals.h"

struct weft_remote {
    const char *name; /* name of the host, as given to ssh */
    bool here;        /* this host, without ssh */
    pid_t process;    /* 0: not started or ended */
    int wait;         /* its status from waitpid, once it has ended */
    int input, says;  /* this side's ends of its streams; -1: closed */
    char *text;       /* start text to feed */
    size_t bytes, fed;
    bool through; /* oshrun has started on the host and has reported it */
    bool hinted;  /* the line about a slow ssh has been printed */
    uint64_t begin_ns;
    size_t used;
    char line[1024]; /* the incomplete current line */
};

/* Starts the process and takes ownership of `text`. A daemon on this host starts with the signal
 * handling that `signals` has saved. ssh ignores the terminal's signals, which are for the front.
 * Returns 0, or -errno after logging the reason. */
int weft_remote_start(struct weft_remote *remote, const struct weft_signals *signals, char *text,
                      size_t bytes);

/* Prints one line if ssh takes long to start oshrun. `patience_ms` is the time in which the daemon
 * has to connect. */
void weft_remote_hint(struct weft_remote *remote, int64_t patience_ms);

/* Writes what the pipe accepts. While remote->fed < remote->bytes, poll `input` for POLLOUT. */
void weft_remote_feed(struct weft_remote *remote);

/* Prints what the process has written, after a poll of `says`. */
void weft_remote_hear(struct weft_remote *remote);

/* Closes its input, which makes the daemon end. */
void weft_remote_leave(struct weft_remote *remote);

/* Returns whether the process has ended, without waiting. */
bool weft_remote_reap(struct weft_remote *remote);

/* Kills the process if it has not ended, and waits for it. */
void weft_remote_kill(struct weft_remote *remote);

/* Returns the path of this oshrun, which is expected at the same place on all hosts. */
const char *weft_remote_program(void);

#endif
