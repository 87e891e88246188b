/* SPDX-License-Identifier: BSD-3-Clause */
/* Each of the two queues is a block of memory with its contents from `begin` to `end`. The contents
 * are moved to the start of the block when there is no room after them. */
#include "boot/frames.h"
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "base/clock.h"
#include "boot/tls.h"

enum {
    FRAME_ALIGNMENT = 8,
    READ_BYTES = 64 * 1024,
    KEPT_BYTES = 256 * 1024, /* an empty queue frees a block larger than this */
};

static const char no_memory[] = "there is no memory for its frames";

struct frame_queue {
    unsigned char *block;
    size_t begin, end, bytes; /* bytes: size of the block */
};

struct weft_frames {
    struct weft_tls *tls;
    struct frame_queue in, out;
    size_t given; /* bytes of `in` that the owner uses until it takes the next frame */
    bool blocked; /* the socket accepts no more bytes for now */
    uint64_t heard_ns;
    uint64_t alive_ns;                    /* heard_ns at the last call of weft_frames_is_alive */
    uint64_t acked_bytes, received_bytes; /* the kernel's counts at that time */
    const char *why;                      /* NULL: weft_tls_why has the reason */
};

/* --- Queues ----------------------------------------------------------------------------------- */

static size_t queue_length(const struct frame_queue *queue) {
    return queue->end - queue->begin;
}

/* Makes room for `more` bytes after the contents. */
static int queue_extend(struct frame_queue *queue, size_t more) {
    size_t length = queue_length(queue);
    if (queue->bytes - queue->end >= more)
        return 0;
    if (queue->bytes < 2 * length + more) { /* so that the contents are moved rarely */
        size_t bytes = 2 * length + more;
        unsigned char *block = malloc(bytes);
        if (!block)
            return -ENOMEM;
        if (length)
            memcpy(block, queue->block + queue->begin, length);
        free(queue->block);
        queue->block = block;
        queue->bytes = bytes;
    } else {
        memmove(queue->block, queue->block + queue->begin, length);
    }
    queue->begin = 0;
    queue->end = length;
    return 0;
}

static void queue_append(struct frame_queue *queue, const void *from, size_t bytes) {
    if (bytes)
        memcpy(queue->block + queue->end, from, bytes);
    queue->end += bytes;
}

static void queue_take(struct frame_queue *queue, size_t bytes) {
    queue->begin += bytes;
    if (queue->begin < queue->end)
        return;
    queue->begin = queue->end = 0;
    if (queue->bytes <= KEPT_BYTES)
        return;
    free(queue->block);
    queue->block = NULL;
    queue->bytes = 0;
}

/* --- The connection --------------------------------------------------------------------------- */

int weft_frames_open(struct weft_frames **opened, struct weft_tls *tls) {
    struct weft_frames *frames = calloc(1, sizeof *frames);
    if (!frames) {
        weft_tls_close(tls);
        return -ENOMEM;
    }
    frames->tls = tls;
    frames->heard_ns = frames->alive_ns = weft_clock_ns();
    *opened = frames;
    return 0;
}

void weft_frames_close(struct weft_frames *frames) {
    if (!frames)
        return;
    weft_tls_close(frames->tls);
    free(frames->in.block);
    free(frames->out.block);
    free(frames);
}

void weft_frames_keep(struct weft_frames *frames) {
    weft_tls_keep(frames->tls);
}

int weft_frames_socket(const struct weft_frames *frames) {
    return weft_tls_socket(frames->tls);
}

short weft_frames_events(const struct weft_frames *frames) {
    short events = weft_tls_events(frames->tls);
    return queue_length(&frames->out) ? events | POLLOUT : events;
}

uint64_t weft_frames_heard_ns(const struct weft_frames *frames) {
    return frames->heard_ns;
}

/* A process that was stopped for long has a full receive buffer: heartbeats then stay in this
 * host's buffer, and the other kernel answers window probes. */
bool weft_frames_is_alive(struct weft_frames *frames, bool kernel) {
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;
    if (getsockopt(weft_frames_socket(frames), IPPROTO_TCP, TCP_INFO, &info, &bytes) < 0)
        memset(&info, 0, sizeof info);
    bool spoke =
        frames->heard_ns != frames->alive_ns || info.tcpi_bytes_received > frames->received_bytes;
    bool acknowledged = info.tcpi_bytes_acked > frames->acked_bytes;
    bool probed = info.tcpi_unacked == 0 && info.tcpi_notsent_bytes > 0 && info.tcpi_probes < 2;
    frames->alive_ns = frames->heard_ns;
    frames->acked_bytes = info.tcpi_bytes_acked;
    frames->received_bytes = info.tcpi_bytes_received;
    return spoke || (kernel && (acknowledged || probed));
}

size_t weft_frames_queued(const struct weft_frames *frames) {
    return queue_length(&frames->out);
}

const char *weft_frames_why(const struct weft_frames *frames) {
    return frames->why ? frames->why : weft_tls_why(frames->tls);
}

static int frames_fail(struct weft_frames *frames, int error, const char *why) {
    frames->why = why;
    return error;
}

/* Returns the length of a frame with padding, so that the next frame is aligned. */
static size_t frame_length(const struct weft_frame *frame) {
    size_t mask = FRAME_ALIGNMENT - 1;
    return sizeof *frame + ((frame->bytes + mask) & ~mask);
}

/* --- Sending ---------------------------------------------------------------------------------- */

static int queue_flush(struct weft_frames *frames) {
    struct frame_queue *out = &frames->out;
    while (queue_length(out) && !frames->blocked) {
        ssize_t sent = weft_tls_write(frames->tls, out->block + out->begin, queue_length(out));
        if (sent < 0 && sent != -EAGAIN)
            return (int)sent;
        frames->blocked = sent < 0;
        queue_take(out, sent < 0 ? 0 : (size_t)sent);
    }
    return 0;
}

int weft_frames_send(struct weft_frames *frames, const struct weft_frame *frame,
                     const void *payload) {
    static const unsigned char zeroes[FRAME_ALIGNMENT];
    struct frame_queue *out = &frames->out;
    if (frame->bytes > WEFT_FRAME_BYTES_MAX)
        return frames_fail(frames, -EMSGSIZE, "a frame to it would be too large");
    size_t bytes = frame_length(frame);
    if (queue_length(out) + bytes > WEFT_FRAMES_QUEUED_MAX)
        return frames_fail(frames, -ENOBUFS, "it does not read what it is sent");
    if (queue_extend(out, bytes) < 0)
        return frames_fail(frames, -ENOMEM, no_memory);
    queue_append(out, frame, sizeof *frame);
    queue_append(out, payload, frame->bytes);
    queue_append(out, zeroes, bytes - sizeof *frame - frame->bytes);
    return queue_flush(frames);
}

int weft_frames_serve(struct weft_frames *frames, short revents) {
    if (revents)
        frames->blocked = false;
    return queue_flush(frames);
}

/* --- Receiving -------------------------------------------------------------------------------- */

/* Returns 1 if a whole frame has arrived, 0 if not, -EPROTO if its length is invalid. */
static int frame_parse(struct weft_frames *frames, struct weft_frame *frame, const void **payload) {
    const struct frame_queue *in = &frames->in;
    if (queue_length(in) < sizeof *frame)
        return 0;
    memcpy(frame, in->block + in->begin, sizeof *frame);
    if (frame->bytes > WEFT_FRAME_BYTES_MAX)
        return frames_fail(frames, -EPROTO, "it has announced a frame that is too large");
    if (queue_length(in) < frame_length(frame))
        return 0;
    *payload = in->block + in->begin + sizeof *frame;
    frames->given = frame_length(frame);
    return 1;
}

static ssize_t bytes_hear(struct weft_frames *frames) {
    struct frame_queue *in = &frames->in;
    if (queue_extend(in, READ_BYTES) < 0)
        return frames_fail(frames, -ENOMEM, no_memory);
    ssize_t got = weft_tls_read(frames->tls, in->block + in->end, in->bytes - in->end);
    if (got > 0) {
        in->end += (size_t)got;
        frames->heard_ns = weft_clock_ns();
    }
    return got;
}

int weft_frames_next(struct weft_frames *frames, struct weft_frame *frame, const void **payload) {
    queue_take(&frames->in, frames->given);
    frames->given = 0;
    for (;;) {
        int parsed = frame_parse(frames, frame, payload);
        if (parsed)
            return parsed;
        ssize_t got = bytes_hear(frames);
        if (got < 0)
            return got == -EAGAIN ? 0 : (int)got;
    }
}
