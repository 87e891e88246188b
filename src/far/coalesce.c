/* SPDX-License-Identifier: BSD-3-Clause */
/* A bundle gets its number when it is opened, so that later messages are applied after it in any
 * case. Until it is sent it is the last message of the channel's queue. */
#include "far/coalesce.h"
#include "base/clock.h"
#include "far/bundle.h"

enum {
    PAYLOAD_MAX = 512, /* the largest payload that is put in a bundle */
    BURST_NS = 2000,   /* a message that follows later than this is sent at once */
};

_Atomic uint32_t weft_coalesce_burst;

/* Returns whether the message, which may wait, is part of a burst. If no message is under way, a
 * quiet may have passed, which leaves no other trace. */
static bool channel_gathers(struct weft_channel *channel, uint64_t now_ns) {
    uint32_t burst = atomic_load_explicit(&weft_coalesce_burst, memory_order_relaxed);
    bool soon = channel->unfinished && burst == channel->small_burst &&
                now_ns - channel->small_ns < BURST_NS;
    channel->small_burst = burst;
    channel->small_ns = now_ns;
    return channel->bundle || soon;
}

/* Adds the message to a bundle; returns false if it has to be sent by itself. */
static bool channel_gather(struct weft_channel *channel, const struct weft_message *message) {
    uint64_t now_ns = message->may_wait ? weft_clock_ns() : 0;
    bool gathers = message->may_wait && channel_gathers(channel, now_ns);
    if (!weft_channel_add(channel, message) &&
        (!gathers || !weft_channel_open_bundle(channel, now_ns) ||
         !weft_channel_add(channel, message)))
        return false;
    if (!gathers)
        weft_channel_send_kept(channel);
    return true;
}

static bool is_small(const struct weft_message *message) {
    return weft_payload_bytes(message->payload, message->nparts) <= PAYLOAD_MAX &&
           !message->request;
}

/* A send may take longer than the interval that ends a burst, so the time counts from its end. */
bool weft_coalesce_try_send(struct weft_channel *channel, const struct weft_message *message) {
    if ((channel->bundle || message->may_wait) && is_small(message) &&
        channel_gather(channel, message))
        return true;
    bool sent = weft_channel_try_send(channel, message);
    if (sent && message->may_wait)
        channel->small_ns = weft_clock_ns();
    return sent;
}
