/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages over a TLS connection: a frame is a header, `bytes` of payload, and zeroes up to a
 * multiple of 8. Both directions have a queue, and no function blocks:
 *
 *   weft_frames_send -> queue -> weft_frames_serve -> TLS ... TLS -> weft_frames_next -> one frame
 *
 * Queues are bounded. Memory for an incoming frame is allocated as its bytes arrive, not as its
 * header announces. The owner checks the kinds of frames and their fields. */
#ifndef WEFT_BOOT_FRAMES_H
#define WEFT_BOOT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "boot/wire.h"

/* Numbers are in the host's byte order: Weft runs on little-endian hosts only. */
struct weft_frame {
    uint32_t kind, bytes; /* size of the payload */
    int32_t pe, value;
    int32_t host, unused; /* host: sender or receiver (boot/tree.h); unused: 0 */
};

enum {
    /* The contributions of all PEs to one exchange, and a header. */
    WEFT_FRAME_BYTES_MAX = WEFT_WIRE_PES_MAX * WEFT_BOOT_BLOB_MAX + 4096,
    WEFT_FRAMES_QUEUED_MAX = 4 * WEFT_FRAME_BYTES_MAX,
};

struct weft_frames;
struct weft_tls;

/* Takes ownership of a connection after its handshake, also on failure. Returns 0 or -ENOMEM,
 * without logging. */
int weft_frames_open(struct weft_frames **frames, struct weft_tls *tls);

/* Closes the connection; queued frames are lost. NULL is allowed. As with weft_tls_close, a side
 * that has sent its last frame must read until -EPIPE first: the front closes, and a daemon waits
 * for that. */
void weft_frames_close(struct weft_frames *frames);

/* Queues a frame and sends as much as possible now. Copies the frame->bytes of `payload`. Returns
 * 0. If the frame is not queued, returns -ENOBUFS (more than WEFT_FRAMES_QUEUED_MAX are queued
 * because the other side does not read), -EMSGSIZE (more than WEFT_FRAME_BYTES_MAX) or -ENOMEM.
 * Another -errno: the other side no longer reads, but frames that it has sent can still be
 * received. Does not log. */
int weft_frames_send(struct weft_frames *frames, const struct weft_frame *frame,
                     const void *payload);

/* Sends as much as possible of the queue. Call it after poll has returned an event of
 * weft_frames_events, then take all frames. Returns as weft_frames_send. */
int weft_frames_serve(struct weft_frames *frames, short revents);

/* Returns 1 and the next frame, whose *payload is aligned to 8 bytes and valid until the next call;
 * 0 if there is none yet; -EPIPE if the other side has closed, even within a frame; -EBADMSG if
 * data was altered in transit; -EPROTO if the length is invalid; or -ENOMEM. Frames that arrived
 * before a failure are returned first. Does not log.
 *
 * Poll only after 0, because frames may already be in the queue. Take frames even if sending is
 * blocked: a heartbeat or the cause of an end may follow. Therefore a sender of much data, such as
 * output, limits its unacknowledged data. */
int weft_frames_next(struct weft_frames *frames, struct weft_frame *frame, const void **payload);

/* Keeps the socket as weft_tls_keep does. */
void weft_frames_keep(struct weft_frames *frames);

/* Return the socket, and the events to poll it for. */
int weft_frames_socket(const struct weft_frames *frames);
short weft_frames_events(const struct weft_frames *frames);

/* Returns the time (weft_clock_ns) at which the other side last sent anything, initially that of
 * opening. Only weft_frames_next receives. */
uint64_t weft_frames_heard_ns(const struct weft_frames *frames);

/* Returns whether the other side has given a new sign of life since the last call: new bytes from
 * it or, with `kernel`, also new acknowledgments by the kernel of its host. The latter rely on
 * heartbeats: a host that is sent nothing has nothing to acknowledge. A repeated acknowledgment
 * proves nothing: a host that no longer receives our acknowledgments repeats its data together with
 * an old one. */
bool weft_frames_is_alive(struct weft_frames *frames, bool kernel);

/* Returns the number of bytes that wait to be sent. */
size_t weft_frames_queued(const struct weft_frames *frames);

/* Returns the reason of a failure, such as "it has closed the connection". */
const char *weft_frames_why(const struct weft_frames *frames);

#endif
