/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection between two processes of a job on different hosts: frames (boot/frames.h) over TLS,
 * and heartbeats in both directions. It connects a node of the tree of hosts with its parent and
 * its children (launch/branch.h) or, in jobs that oshrun has not started, the agents of two hosts
 * (boot/agent.h).
 *
 * The other side is lost when its process has ended, when it sends an invalid frame, or when it is
 * silent for too long. For a patient link, acknowledgments by the other host's kernel are signs of
 * life, too: a process that is stopped or gets no processor is then not lost. */
#ifndef WEFT_BOOT_HOST_LINK_H
#define WEFT_BOOT_HOST_LINK_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include "boot/frames.h"
#include "boot/tls.h"

enum weft_host_link_end {
    WEFT_HOST_LINK_LIVES,
    WEFT_HOST_LINK_CLOSED, /* the other process has ended or has closed the connection */
    WEFT_HOST_LINK_SILENT, /* silent for too long */
    WEFT_HOST_LINK_WRONG,  /* it has sent an invalid frame, or does not read */
};

struct weft_host_link {
    struct weft_frames *frames; /* NULL: no connection */
    enum weft_host_link_end end;
    const char *why; /* reason of that end */
    bool patient;
    uint64_t silence_ns, silence_ns_max;
    uint64_t beat_ns, heard_ns; /* times of the last heartbeat, of the last sign of life */
};

/* --- Connecting ------------------------------------------------------------------------------- */

struct weft_host_call {
    const char *address; /* numeric */
    uint16_t port;
    int connect_ms; /* time limit for connecting */
    int number;     /* identity of this side */
    const unsigned char *key;
    int ends; /* a descriptor that aborts the handshake when it becomes readable; -1: none */
    /* Results. */
    bool taken; /* the port has accepted the connection */
    char why[256];
};

/* Connects to a listener on another host (boot/tls_listener.h) and proves the key. Returns 0;
 * -EPIPE if the listener has closed the connection in the handshake, which it does to make room, so
 * try again; -ECANCELED because of `ends`; or another -errno. The reason is in call->why; it is
 * empty if it was logged, and then there is no point in trying again. */
int weft_host_link_call(struct weft_tls **tls, struct weft_host_call *call);

/* --- A link ----------------------------------------------------------------------------------- */

/* Takes ownership of a connection after its handshake, also on failure. Returns 0 or -ENOMEM,
 * without logging. */
int weft_host_link_open(struct weft_host_link *link, struct weft_tls *tls, double silence_s,
                        bool patient);
void weft_host_link_close(struct weft_host_link *link);

/* Sends a frame, unless the other side has closed; a side that is lost for another reason may still
 * read. weft_host_link_next reports failures, after the frames that the other side has sent before.
 */
void weft_host_link_send(struct weft_host_link *link, const struct weft_frame *frame,
                         const void *payload);

/* weft_host_link_poll returns the entry for poll; weft_host_link_turn sends what is queued, and a
 * heartbeat when it is due. Call it at least every WEFT_TREE_BEAT_MS. */
struct pollfd weft_host_link_poll(const struct weft_host_link *link);
void weft_host_link_turn(struct weft_host_link *link, short revents);

/* Returns the next frame that is not a heartbeat, or false if there is none. *payload is valid
 * until the next call. Take all frames in each turn. */
bool weft_host_link_next(struct weft_host_link *link, struct weft_frame *frame,
                         const void **payload);

/* Gives the other side up because of what it has sent. */
void weft_host_link_refuse(struct weft_host_link *link, const char *why);

/* Returns whether the send queue is empty. */
bool weft_host_link_is_flushed(const struct weft_host_link *link);

#endif
