/* SPDX-License-Identifier: BSD-3-Clause */
/* The children of a node in the tree of hosts. The node is the front or a relay; each child serves
 * a contiguous range of hosts. A child for a single host is its daemon; a child for several hosts
 * is a relay on the first of them (launch/relay.h).
 *
 * The branch starts the children, authenticates their connections with a key of its own, sends
 * heartbeats, and detects silent and disconnected children. The owner calls poll and handles the
 * frames of children. */
#ifndef WEFT_LAUNCH_BRANCH_H
#define WEFT_LAUNCH_BRANCH_H

#include <poll.h>
#include <stdbool.h>
#include "boot/host_link.h"
#include "boot/tls_listener.h"
#include "launch/remote.h"
#include "launch/start.h"

struct weft_branch_child {
    int first, count; /* its range of hosts */
    const char *name; /* of the first host, for error lines */
    struct weft_remote remote;
    struct weft_host_link link; /* without frames: not yet connected, or disconnected */
    bool came;
};

struct weft_branch_above {
    /* Handles a frame other than a heartbeat. Returns false if a correct child would not send the
     * frame now; the child is then lost. */
    bool (*hear)(void *owner, int child, const struct weft_frame *frame, const void *payload);
    /* Reports that a child could not be started, is silent, or has disconnected. */
    void (*lose)(void *owner, int child, const char *why);
};

struct weft_branch {
    int nchildren, nhosts;
    struct weft_branch_child *child;
    struct weft_tls_listener *listener; /* NULL: all children have connected */
    unsigned char secret[WEFT_TLS_KEY_BYTES];
    double silence_s; /* a child that is silent for this time is lost */
    const struct weft_branch_above *above;
    void *owner;
};

/* A host; `called` is its name for ssh; `here`: it is this host. */
struct weft_branch_host {
    const char *name, *called;
    bool here;
};

/* Makes children for the hosts first ... first + count - 1 of `host`: at most `fan_out`, and with
 * `own` an additional child for the first host alone. Returns 0, or -ENOMEM without logging. */
struct weft_branch_plan {
    const struct weft_branch_host *host;
    int nhosts, first, count, fan_out;
    bool own;
};
int weft_branch_open(struct weft_branch *branch, const struct weft_branch_plan *plan);

/* Opens the listener and starts all children. `start` contains the start text's values except those
 * of this branch, which the function sets. `network` is an address of this host on the job's
 * network, or NULL. Returns 0, or -errno after logging the reason. */
int weft_branch_start(struct weft_branch *branch, struct weft_start *start,
                      const struct weft_branch_plan *plan, const struct weft_signals *signals,
                      const char *network);

/* weft_branch_polls fills weft_branch_count entries for poll. Call weft_branch_serve after poll
 * with the results, and weft_branch_turn regularly. */
int weft_branch_count(const struct weft_branch *branch);
void weft_branch_polls(const struct weft_branch *branch, struct pollfd *polls);
void weft_branch_serve(struct weft_branch *branch, const struct pollfd *polls);
void weft_branch_turn(struct weft_branch *branch);

/* Collects children that have ended; call it after SIGCHLD. */
void weft_branch_reap(struct weft_branch *branch);

/* Closes the listener, once all children have connected. */
void weft_branch_shut(struct weft_branch *branch);

/* Sends a frame to the children that serve its field `host`: a host, all hosts, or all but one
 * (boot/tree.h). A child that does not read is lost later, by its silence. */
void weft_branch_route(struct weft_branch *branch, const struct weft_frame *frame,
                       const void *payload);

/* Returns the child that serves a host, or -1 if there is none. */
int weft_branch_child_of(const struct weft_branch *branch, int host);

/* Closes all connections, which makes the children end; waits for the processes that started them,
 * and kills those that remain. Children that are not lost have `patience_ms` to end. With `hear`,
 * prints what the processes still write. */
void weft_branch_close(struct weft_branch *branch, int patience_ms, bool hear);

#endif
