/* SPDX-License-Identifier: BSD-3-Clause */
/* The other host lives while it gives new signs of life (boot/frames.h). Silence is counted in
 * turns of our own, each of which counts for two beats at most: after a stop of this process what
 * has come meanwhile is read first. */
#include "boot/spoke.h"
#include <errno.h>
#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "boot/tree.h"

#define BEAT_NS (WEFT_TREE_BEAT_MS * WEFT_NS_PER_MS)

int weft_spoke_open(struct weft_spoke *spoke, struct weft_tls *tls) {
    *spoke = (struct weft_spoke){.turn_ns = weft_clock_ns()};
    spoke->beat_ns = spoke->heard_ns = spoke->turn_ns;
    int error = weft_frames_open(&spoke->frames, tls);
    if (error)
        weft_log("there is no memory for a connection to another host");
    return error;
}

void weft_spoke_close(struct weft_spoke *spoke) {
    weft_frames_close(spoke->frames);
    *spoke = (struct weft_spoke){.end = WEFT_SPOKE_CLOSED};
}

static void spoke_lose(struct weft_spoke *spoke, enum weft_spoke_end end) {
    if (spoke->end == WEFT_SPOKE_LIVES)
        spoke->end = end;
}

/* That the other side is gone is found by reading, behind what it has said before. */
void weft_spoke_send(struct weft_spoke *spoke, const struct weft_frame *frame,
                     const void *payload) {
    if (!spoke->frames || spoke->end == WEFT_SPOKE_CLOSED)
        return;
    int error = weft_frames_send(spoke->frames, frame, payload);
    if (error == -ENOBUFS || error == -ENOMEM || error == -EMSGSIZE)
        spoke_lose(spoke, WEFT_SPOKE_WRONG);
}

struct pollfd weft_spoke_poll(const struct weft_spoke *spoke) {
    if (!spoke->frames || spoke->end)
        return (struct pollfd){.fd = -1};
    return (struct pollfd){.fd = weft_frames_socket(spoke->frames),
                           .events = weft_frames_events(spoke->frames)};
}

static void silence_judge(struct weft_spoke *spoke, uint64_t now_ns) {
    uint64_t spent_ns = now_ns - spoke->turn_ns;
    spoke->turn_ns = now_ns;
    if (weft_frames_is_alive(spoke->frames)) {
        spoke->heard_ns = now_ns;
        spoke->silence_ns = 0;
        return;
    }
    spoke->silence_ns += spent_ns < 2 * BEAT_NS ? spent_ns : 2 * BEAT_NS;
    if ((double)spoke->silence_ns > weft_env.host_timeout * 1e9)
        spoke_lose(spoke, WEFT_SPOKE_SILENT);
}

void weft_spoke_turn(struct weft_spoke *spoke, short revents) {
    uint64_t now_ns = weft_clock_ns();
    if (!spoke->frames || spoke->end)
        return;
    if (revents)
        weft_frames_serve(spoke->frames, revents); /* an error is also what reading finds */
    if (now_ns < spoke->beat_ns + BEAT_NS)
        return;
    spoke->beat_ns = now_ns;
    weft_spoke_send(spoke, &(struct weft_frame){.kind = WEFT_TREE_BEAT, .pe = -1}, NULL);
    silence_judge(spoke, now_ns);
}

bool weft_spoke_next(struct weft_spoke *spoke, struct weft_frame *frame, const void **payload) {
    int some = 0;
    while (spoke->frames && !spoke->end &&
           (some = weft_frames_next(spoke->frames, frame, payload)) == 1)
        if (frame->kind != WEFT_TREE_BEAT)
            return true;
    if (some < 0)
        spoke_lose(spoke, some == -EPIPE ? WEFT_SPOKE_CLOSED : WEFT_SPOKE_WRONG);
    return false;
}

void weft_spoke_refuse(struct weft_spoke *spoke) {
    spoke_lose(spoke, WEFT_SPOKE_WRONG);
}

bool weft_spoke_is_flushed(const struct weft_spoke *spoke) {
    return !spoke->frames || spoke->end || weft_frames_queued(spoke->frames) == 0;
}
