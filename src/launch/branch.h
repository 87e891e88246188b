/* SPDX-License-Identifier: BSD-3-Clause */
/* What is below one node of the tree of hosts, the front or a relay: some children, each of which
 * sees to a run of hosts. One that sees to a single host is its daemon, one that sees to several is
 * a relay on the first of them (launch/relay.h).
 *
 * The branch starts them, lets them in by a key of this branch's own, beats, and notices when one
 * is silent or gone. What they say is for the owner, who polls. */
#ifndef WEFT_LAUNCH_BRANCH_H
#define WEFT_LAUNCH_BRANCH_H

#include <poll.h>
#include <stdbool.h>
#include "boot/host_link.h"
#include "boot/tls_listener.h"
#include "launch/remote.h"
#include "launch/start.h"

struct weft_branch_child {
    int first, count; /* its hosts */
    const char *name; /* of the first, for messages */
    struct weft_remote remote;
    struct weft_host_link link; /* without frames: it has not come, or has gone */
    bool came;
};

struct weft_branch_above {
    /* A frame other than a beat. False: no child of ours says that now, and it is lost. */
    bool (*hear)(void *owner, int child, const struct weft_frame *frame, const void *payload);
    /* It could not be started, is silent, or its connection has ended. */
    void (*lose)(void *owner, int child, const char *why);
};

struct weft_branch {
    int nchildren, nhosts;
    struct weft_branch_child *child;
    struct weft_tls_listener *listener; /* NULL: everybody has come */
    unsigned char secret[WEFT_TLS_KEY_BYTES];
    double silence_s; /* a child that is silent for so long is lost */
    const struct weft_branch_above *above;
    void *owner;
};

/* A host, as it is called by ssh; here: it is this one. */
struct weft_branch_host {
    const char *name, *called;
    bool here;
};

/* Makes children for hosts first ... first + count - 1 of `host`: `fan_out` at most, and with
 * `own` one more that sees to the first of them alone. 0 or -ENOMEM, not said. */
struct weft_branch_plan {
    const struct weft_branch_host *host;
    int nhosts, first, count, fan_out;
    bool own;
};
int weft_branch_open(struct weft_branch *branch, const struct weft_branch_plan *plan);

/* Opens the listener and starts them all with what `start` says, but for what it says of this
 * branch. `network` is an address of this host in the network of the job, or NULL. 0 or -errno,
 * said. */
int weft_branch_start(struct weft_branch *branch, struct weft_start *start,
                      const struct weft_branch_plan *plan, const struct weft_signals *signals,
                      const char *network);

/* What to poll for, weft_branch_count entries, and what is to be done then, or after some time. */
int weft_branch_count(const struct weft_branch *branch);
void weft_branch_polls(const struct weft_branch *branch, struct pollfd *polls);
void weft_branch_serve(struct weft_branch *branch, const struct pollfd *polls);
void weft_branch_turn(struct weft_branch *branch);

/* After SIGCHLD. */
void weft_branch_reap(struct weft_branch *branch);

/* Everybody has come: nobody is let in any more. */
void weft_branch_shut(struct weft_branch *branch);

/* Sends a frame to the children that see to its host or hosts: its field `host` (boot/tree.h). A
 * child that takes none is lost by its silence. */
void weft_branch_route(struct weft_branch *branch, const struct weft_frame *frame,
                       const void *payload);

/* The child that sees to a host; -1: none does. */
int weft_branch_child_of(const struct weft_branch *branch, int host);

/* Closes all connections, at which those below end, waits for the processes by which they were
 * started, and kills what is left. `patience_ms` is for those who have not been lost. With `hear`
 * their last words are passed on. */
void weft_branch_close(struct weft_branch *branch, int patience_ms, bool hear);

#endif
