/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection between processes of one job on two hosts: frames (boot/frames.h) over TLS, and
 * beats both ways. It links a daemon or a relay with what is above it, the front or a relay with
 * what is below, and the first PEs of two hosts where oshrun has not started the job.
 *
 * The other side is lost when its process has ended, when it sends what makes no sense, or when it
 * was silent for longer than it may be. A patient link counts as a sign of life what the kernel of
 * the other host acknowledges: a process that is stopped, or gets no processor, is not lost then.
 */
#ifndef WEFT_BOOT_HOST_LINK_H
#define WEFT_BOOT_HOST_LINK_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include "boot/frames.h"
#include "boot/tls.h"

enum weft_host_link_end {
    WEFT_HOST_LINK_LIVES,
    WEFT_HOST_LINK_CLOSED, /* the other process has ended, or has closed the connection */
    WEFT_HOST_LINK_SILENT, /* nothing has come for too long */
    WEFT_HOST_LINK_WRONG,  /* what it says makes no sense, or it takes nothing of what it is told */
};

struct weft_host_link {
    struct weft_frames *frames; /* NULL: there is no connection */
    enum weft_host_link_end end;
    const char *why; /* the reason of that end, in words */
    bool patient;
    uint64_t silence_ns, silence_ns_max;
    uint64_t beat_ns, heard_ns; /* the last beat; when the last sign of life was noticed */
};

/* --- Calling ---------------------------------------------------------------------------------- */

struct weft_host_call {
    const char *address; /* numeric */
    uint16_t port;
    int connect_ms; /* how long to wait for the port */
    int number;     /* the identity of this side, */
    const unsigned char *key;
    int ends; /* a descriptor: once it is readable, the handshake is given up; -1: there is none */
    /* The outcome. */
    bool taken; /* the port has taken the call */
    char why[256];
};

/* Calls a listener of another host (boot/tls_listener.h) and proves the key. 0; -EPIPE: closed in
 * the handshake, as happens where the listener makes room: call again; -ECANCELED: by `ends`; or
 * another -errno. The reason is in call->why, which is empty if it was logged already: then calling
 * again is of no use. */
int weft_host_link_call(struct weft_tls **tls, struct weft_host_call *call);

/* --- A link ----------------------------------------------------------------------------------- */

/* Takes over a connection whose handshake is done, also on failure. 0, or -ENOMEM, not logged. */
int weft_host_link_open(struct weft_host_link *link, struct weft_tls *tls, double silence_s,
                        bool patient);
void weft_host_link_close(struct weft_host_link *link);

/* Sends nothing where the other side has closed. A side that is lost for another reason may still
 * read it. A failure is found by weft_host_link_next, after what the other side has said before. */
void weft_host_link_send(struct weft_host_link *link, const struct weft_frame *frame,
                         const void *payload);

/* What to poll for, and after that poll: sends what can go, and a beat when it is time. Take a turn
 * every WEFT_TREE_BEAT_MS at least. */
struct pollfd weft_host_link_poll(const struct weft_host_link *link);
void weft_host_link_turn(struct weft_host_link *link, short revents);

/* Returns the next frame that is no beat, or false if there is none. *payload lives until the next
 * call. Take all frames in each turn. */
bool weft_host_link_next(struct weft_host_link *link, struct weft_frame *frame,
                         const void **payload);

/* Gives the other side up for what it has sent. */
void weft_host_link_refuse(struct weft_host_link *link, const char *why);

/* True if nothing waits to be sent. */
bool weft_host_link_is_flushed(const struct weft_host_link *link);

#endif
