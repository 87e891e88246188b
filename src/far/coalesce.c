/* SPDX-License-Identifier: BSD-3-Clause */
/* A bundle has its number from its beginning on, so that whatever goes behind it is applied behind
 * it, whichever leaves first. Until it leaves it is the last message that the channel keeps. */
#include "far/coalesce.h"
#include "base/clock.h"
#include "far/bundle.h"

enum {
    TEXT_MAX = 512,  /* of a message that is gathered */
    BURST_NS = 2000, /* a message that comes later behind the one before it waits for no other */
};

_Atomic uint32_t weft_coalesce_burst;

/* Whether the message, which may wait, comes in a burst of such. Where nothing is under way any
 * more a quiet may have passed, which leaves no trace then. */
static bool channel_gathers(struct weft_channel *channel, uint64_t now_ns) {
    uint32_t burst = atomic_load_explicit(&weft_coalesce_burst, memory_order_relaxed);
    bool soon = channel->unfinished && burst == channel->small_burst &&
                now_ns - channel->small_ns < BURST_NS;
    channel->small_burst = burst;
    channel->small_ns = now_ns;
    return channel->bundle || soon;
}

/* Whether a bundle has taken it; else it goes by itself. */
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
    return weft_text_bytes(message->text, message->nparts) <= TEXT_MAX && !message->request;
}

/* A send may take longer than the pause between two, so the time counts from its end on. */
bool weft_coalesce_try_send(struct weft_channel *channel, const struct weft_message *message) {
    if ((channel->bundle || message->may_wait) && is_small(message) &&
        channel_gather(channel, message))
        return true;
    bool sent = weft_channel_try_send(channel, message);
    if (sent && message->may_wait)
        channel->small_ns = weft_clock_ns();
    return sent;
}
