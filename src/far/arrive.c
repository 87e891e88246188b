/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving: messages of one channel (far/channel.h) are applied in the order of their numbers.
 *
 * An operation on GPU memory may take time. Then the rest of the message is put off, later messages
 * are kept as if they had arrived early, and the next thread that polls continues: no thread blocks
 * under the lock, and a message is acknowledged only when it is complete. */
#include <stdlib.h>
#include <string.h>
#include "job/job.h"
#include "far/bundle.h"
#include "far/channel.h"

/* Returns false if the message was refused. */
static bool channel_take_acknowledgment(struct weft_channel *channel, uint32_t acknowledged) {
    uint32_t before = channel->acknowledged;
    if (!weft_epoch_reached(acknowledged, before))
        return true; /* a later message has overtaken this one */
    if (acknowledged - before > channel->sent - before)
        return weft_message_refuse(channel->pe,
                                   "it acknowledges message %u, but the last one sent was %u",
                                   acknowledged, channel->sent);
    channel->acknowledged = acknowledged;
    if (weft_epoch_reached(acknowledged, channel->quiet_until))
        channel->quiet_until = acknowledged;
    if (weft_epoch_reached(acknowledged, channel->asked))
        channel->asked = acknowledged;
    weft_channel_count(channel);
    return true;
}

static void channel_take_answer(struct weft_channel *channel, const void *payload, size_t bytes) {
    if (channel->answered == channel->requested) {
        weft_message_refuse(channel->pe, "it answers no request");
        return;
    }
    struct weft_message_request request =
        channel->requests[channel->answered % WEFT_CHANNEL_REQUESTS];
    weft_channels.user->answered(channel->pe, &request, payload, bytes);
    channel->answer_bytes -= request.block_bytes * request.nblocks;
    channel->answered++;
    weft_channel_count(channel);
    if (request.missing)
        atomic_fetch_sub_explicit(request.missing, 1, memory_order_release);
    if (request.continuation)
        request.continuation->answered(request.continuation);
}

/* Returns the number of bytes at the end that are left for later. */
static size_t channel_apply_bundle(struct weft_channel *channel, const char *payloads,
                                   size_t bytes) {
    const void *payload;
    size_t left = bytes, part;
    while (left > 0 && !weft_channels.failure[0]) {
        const char *next = payloads;
        size_t behind = left;
        if (!(payload = weft_bundle_take(&next, &behind, &part)))
            weft_message_refuse(channel->pe, "a bundle ends within a message");
        else if (!weft_channels.user->apply(channel->pe, payload, part))
            break;
        payloads = next;
        left = behind;
    }
    return left;
}

/* Returns whether the message counts as applied. If not, *left bytes at its end remain for
 * later. */
static bool channel_apply(struct weft_channel *channel, const struct head *head,
                          const void *payload, size_t bytes, size_t *left) {
    channel->applying = head->number;
    *left = 0;
    if (head->sort == ANSWER)
        channel_take_answer(channel, payload, bytes);
    else if (head->sort == BUNDLE)
        *left = channel_apply_bundle(channel, payload, bytes);
    else if (!channel->put_off || bytes > 0)
        *left = weft_channels.user->apply(channel->pe, payload, bytes) ? 0 : bytes;
    channel->unacked_bytes += (uint32_t)(bytes - *left);
    if (*left > 0 || !weft_channels.user->work_done(channel->pe))
        return false;
    channel->applied = head->number;
    channel->unacked_bytes += (uint32_t)sizeof *head;
    return true;
}

static struct weft_message_kept *message_copy(const struct weft_channel *channel,
                                              const struct head *head, const void *payload,
                                              size_t bytes) {
    struct weft_message_kept *kept = malloc(sizeof *kept + sizeof *head + bytes);
    if (!kept) {
        weft_channel_fail("no memory for a message of %zu bytes from PE %d", bytes, channel->pe);
        return NULL;
    }
    *kept = (struct weft_message_kept){.bytes = sizeof *head + bytes};
    memcpy(kept->message, head, sizeof *head);
    if (bytes > 0)
        memcpy(kept->message + sizeof *head, payload, bytes);
    return kept;
}

static void channel_hold(struct weft_channel *channel, const struct head *head, const void *payload,
                         size_t bytes) {
    struct weft_message_kept **place = &channel->early[head->number % WEFT_CHANNEL_RING];
    bool ordered =
        channel->engine && weft_channels.engine->abilities(channel->engine) & WEFT_ENGINE_ORDERED;
    if (*place || (ordered && !channel->put_off)) {
        weft_message_refuse(channel->pe, "number %u arrived %s, after %u", head->number,
                            *place ? "twice" : "early from an engine that promises order",
                            channel->applied);
        return;
    }
    *place = message_copy(channel, head, payload, bytes);
}

/* Puts a channel with a put-off message, which must not be in the list, into the list. */
static void channel_list_put_off(struct weft_channel *channel) {
    if (!channel->put_off)
        return;
    channel->next_put_off = weft_channels.put_off;
    weft_channels.put_off = channel;
    atomic_fetch_add(&weft_channels_put_off, 1);
}

/* Applies the put-off message and the early messages whose turn it is. */
static void channel_apply_held(struct weft_channel *channel) {
    struct weft_message_kept **place, *kept;
    while ((kept = *(place = &channel->early[(channel->applied + 1) % WEFT_CHANNEL_RING]))) {
        struct head head;
        memcpy(&head, kept->message, sizeof head);
        unsigned char *payload = kept->message + sizeof head;
        size_t bytes = kept->bytes - sizeof head, left;
        if (!channel_apply(channel, &head, payload, bytes, &left)) {
            memmove(payload, payload + bytes - left, left);
            kept->bytes = sizeof head + left;
            channel->put_off = true;
            return;
        }
        *place = NULL;
        channel->put_off = false;
        free(kept);
    }
}

/* Applies the next message in order, if none is put off. */
static void channel_take_next(struct weft_channel *channel, const struct head *head,
                              const char *payload, size_t bytes) {
    size_t left;
    if (channel_apply(channel, head, payload, bytes, &left)) {
        channel_apply_held(channel);
    } else {
        struct weft_message_kept *rest = message_copy(channel, head, payload + bytes - left, left);
        channel->early[head->number % WEFT_CHANNEL_RING] = rest;
        channel->put_off = rest != NULL;
    }
    channel_list_put_off(channel);
}

static void channel_take(struct weft_channel *channel, const struct head *head, const char *payload,
                         size_t bytes) {
    uint32_t ahead = head->number - channel->applied;
    if (ahead == 0 || ahead >= WEFT_CHANNEL_RING) {
        weft_message_refuse(channel->pe, "it has number %u, but the last one was %u", head->number,
                            channel->applied);
    } else if (ahead > 1 || channel->put_off) {
        channel_hold(channel, head, payload, bytes);
    } else {
        channel_take_next(channel, head, payload, bytes);
    }
}

static bool channel_go_on(struct weft_channel *channel) {
    uint32_t before = channel->applied;
    channel_apply_held(channel);
    channel_list_put_off(channel);
    weft_channel_acknowledge(channel);
    return channel->applied != before;
}

bool weft_channels_go_on(void) {
    struct weft_channel *channel = weft_channels.put_off, *next;
    bool moved = false;
    weft_channels.put_off = NULL;
    for (; channel; channel = next) {
        next = channel->next_put_off;
        atomic_fetch_sub(&weft_channels_put_off, 1);
        moved |= channel_go_on(channel);
    }
    return moved;
}

void weft_channel_arrived(void *unused, const void *message, size_t bytes) {
    struct head head;
    (void)unused;
    if (weft_channels.failure[0])
        return; /* the job is ending */
    if (bytes < sizeof head) {
        weft_channel_fail(
            "a message of %zu bytes has arrived, which is shorter than a head (engine '%s')", bytes,
            weft_channels.engine->name);
        return;
    }
    memcpy(&head, message, sizeof head);
    if (head.from >= (uint32_t)weft_job.npes || head.sort > BUNDLE) {
        weft_channel_fail("a message has arrived from PE %u, of sort %u: there is no such PE or "
                          "sort (engine '%s')",
                          head.from, head.sort, weft_channels.engine->name);
        return;
    }
    struct weft_channel *channel = weft_channel_of((int)head.from);
    if (!channel || !channel_take_acknowledgment(channel, head.acknowledged))
        return;
    if (head.asks && weft_epoch_reached(head.number, channel->ack_wanted))
        channel->ack_wanted = head.number;
    if (head.sort != CONTROL)
        channel_take(channel, &head, (const char *)message + sizeof head, bytes - sizeof head);
    weft_channel_acknowledge(channel);
}
