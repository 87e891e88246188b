/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole messages over a TLS connection: a frame is a header and `bytes` of
 * payload, and zeroes up to a multiple of 8. Both directions
 * have a queue, so that nothing here ever waits:
 *
 *   weft_frames_send -> queue -> weft_frames_serve -> TLS ... TLS -> weft_frames_next -> one frame
 *
 * Queues are bounded. Memory for a frame that comes follows the bytes that have come, not the
 * length that was announced. What kinds mean, and what their fields may be, is for the owner to
 * check. */
#ifndef WEFT_BOOT_FRAMES_H
#define WEFT_BOOT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "boot/wire.h"

/* In the order of bytes of the sender, which is that of all hosts: Weft runs on little-endian ones.
 */
struct weft_frame {
    uint32_t kind, bytes; /* of the payload */
    int32_t pe, value;
    int32_t host, unused; /* whose it is, or for whom; 0 */
};

enum {
    /* The contributions of all PEs to one exchange, and room for a header. */
    WEFT_FRAME_BYTES_MAX = WEFT_WIRE_PES_MAX * WEFT_BOOT_BLOB_MAX + 4096,
    WEFT_FRAMES_QUEUED_MAX = 4 * WEFT_FRAME_BYTES_MAX,
};

struct weft_frames;
struct weft_tls;

/* Takes over a connection whose handshake is done, also on failure. 0 or -ENOMEM, not logged. */
int weft_frames_open(struct weft_frames **frames, struct weft_tls *tls);

/* Closes the connection; what is queued is lost. NULL is fine. As with weft_tls_close, who has said
 * its last word reads until -EPIPE first: the front closes, a daemon waits for that. */
void weft_frames_close(struct weft_frames *frames);

/* Puts a frame behind those that wait, and sends what can go now. `payload`: frame->bytes, copied.
 * 0; -ENOBUFS: WEFT_FRAMES_QUEUED_MAX would be exceeded, for the other side takes nothing;
 * -EMSGSIZE: more than WEFT_FRAME_BYTES_MAX; -ENOMEM; then the frame is not sent. Another -errno:
 * the other side takes no more, but what it has said before can be taken still. Not logged. */
int weft_frames_send(struct weft_frames *frames, const struct weft_frame *frame,
                     const void *payload);

/* Sends what can go now of what waits. Call it when a poll for weft_frames_events has shown
 * something; then take all frames. 0, or -errno as of weft_frames_send. */
int weft_frames_serve(struct weft_frames *frames, short revents);

/* 1: the next frame, whose payload lies at *payload, aligned to 8 bytes, until the next call of
 * this function; 0: there is none yet; -EPIPE: the other side has closed, between two frames or
 * within one; -EBADMSG: altered on its way; -EPROTO: a length that no frame of ours has; -ENOMEM.
 * Frames that came before an end are given first. Not logged.
 *
 * Poll only after a 0: what has been read from the socket lies here. And take frames whatever else
 * is stuck, for a beat or the cause of an end lies behind the others: so who sends much to a
 * receiver that may be slow, such as output, keeps a limit on what has not been asked for. */
int weft_frames_next(struct weft_frames *frames, struct weft_frame *frame, const void **payload);

/* Keeps the socket (weft_tls_keep). */
void weft_frames_keep(struct weft_frames *frames);

/* The socket, and what to poll it for. */
int weft_frames_socket(const struct weft_frames *frames);
short weft_frames_events(const struct weft_frames *frames);

/* When the other side last said anything, of weft_clock_ns; at first, when it was opened. Only
 * weft_frames_next hears. */
uint64_t weft_frames_heard_ns(const struct weft_frames *frames);

/* Returns whether the other side has given a new sign of life since the last call: new bytes from
 * it or, with `kernel`, also new acknowledgments by the kernel of its host. The latter rely on
 * beats: a host that is sent nothing has nothing to acknowledge. An acknowledgment that repeats
 * what was known proves nothing: it comes with what a host sends again and again because the
 * acknowledgments from here no longer reach it. */
bool weft_frames_is_alive(struct weft_frames *frames, bool kernel);

/* Bytes that wait to be sent. */
size_t weft_frames_queued(const struct weft_frames *frames);

/* After a failure: words for it, such as "it has closed the connection". */
const char *weft_frames_why(const struct weft_frames *frames);

#endif
