/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection between PEs of two hosts: frames (boot/frames.h) over TLS, and beats both ways. The
 * other side is lost when its process has ended, or when its host has sent and
 * acknowledged nothing new for WEFT_HOST_TIMEOUT: a process that is stopped, or gets no processor,
 * has a kernel that still does, and is not lost. */
#ifndef WEFT_BOOT_SPOKE_H
#define WEFT_BOOT_SPOKE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include "boot/frames.h"

struct weft_tls;

/* Of a job in whose middle a PE is, its own among them: the other PEs of a host are handed the page
 * and the connections to other hosts in one message. */
enum { WEFT_MIDDLE_HOSTS_MAX = WEFT_WIRE_FDS_MAX };

enum weft_spoke_end {
    WEFT_SPOKE_LIVES,
    WEFT_SPOKE_CLOSED, /* its process has ended, or has closed it */
    WEFT_SPOKE_SILENT, /* its host does not answer */
    WEFT_SPOKE_WRONG,  /* what it says makes no sense */
};

struct weft_spoke {
    struct weft_frames *frames; /* NULL: there is none */
    enum weft_spoke_end end;
    uint64_t beat_ns, turn_ns, silence_ns;
    uint64_t heard_ns; /* when the last sign of life was noticed */
};

/* Takes over a connection whose handshake is done, also on failure. 0, or -ENOMEM, logged. */
int weft_spoke_open(struct weft_spoke *spoke, struct weft_tls *tls);
void weft_spoke_close(struct weft_spoke *spoke);

/* Nothing where the other side has closed. One that is lost for another reason may still read it.
 */
void weft_spoke_send(struct weft_spoke *spoke, const struct weft_frame *frame, const void *payload);

/* What to poll for, and after that poll: sends what can go, and a beat when it is time. Come by
 * every WEFT_TREE_BEAT_MS at least. */
struct pollfd weft_spoke_poll(const struct weft_spoke *spoke);
void weft_spoke_turn(struct weft_spoke *spoke, short revents);

/* The next frame but beats; false: there is none. *payload lives until the next call. Take all in
 * each turn: what the other side has said before its end comes first. */
bool weft_spoke_next(struct weft_spoke *spoke, struct weft_frame *frame, const void **payload);

/* What it has sent makes no sense, and it is lost for that. */
void weft_spoke_refuse(struct weft_spoke *spoke);

/* True if nothing waits to be sent. */
bool weft_spoke_is_flushed(const struct weft_spoke *spoke);

#endif
