/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending. A message that finds no room in the engine waits in the channel's queue, so that
 * messages leave in the order of their numbers. Acknowledgments are cumulative: a later one covers
 * all before. */
#include "far/channel.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/machine.h"
#include "job/job.h"
#include "far/bundle.h"

enum {
    BUNDLE_BYTES =
        WEFT_ENGINE_MESSAGE_MIN, /* with its head; every engine takes messages of this size */
    YOUNG_NS = 20000,            /* after this time a bundle is sent */
    ACK_MESSAGES = WEFT_CHANNEL_MESSAGES /
                   4, /* received messages after which an acknowledgment is sent unasked */
    ACK_BYTES = WEFT_CHANNEL_BYTES / 4,
    PATIENCE_MS = 2000, /* time for the news of a PE's death to arrive */
};

uint32_t weft_message_first = UINT32_MAX - 511;
struct weft_channels weft_channels;
_Atomic uint32_t weft_channels_unfinished;
_Atomic uint32_t weft_channels_bundles;
_Atomic uint32_t weft_channels_put_off;

void weft_channel_fail(const char *format, ...) {
    va_list arguments;
    if (weft_channels.failure[0])
        return;
    va_start(arguments, format);
    vsnprintf(weft_channels.failure, sizeof weft_channels.failure, format, arguments);
    va_end(arguments);
}

void weft_channel_fail_closed(void) {
    weft_channel_fail(
        "this program has closed descriptors of the engine that reaches far PEs: close only "
        "descriptors that it has opened (engine '%s')",
        weft_channels.engine->name);
}

bool weft_message_refuse(int from, const char *format, ...) {
    char text[sizeof weft_channels.failure - 64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    weft_channel_fail("a message from PE %d is damaged: %s (engine '%s')", from, text,
                      weft_channels.engine->name);
    return false;
}

/* --- Channels -------------------------------------------------------------------------------- */

static struct weft_channel *channel_make(int pe) {
    struct weft_channel *channel = calloc(1, sizeof *channel);
    if (!channel) {
        weft_channel_fail("no memory for messages to PE %d", pe);
        return NULL;
    }
    channel->pe = pe;
    channel->sent = channel->acknowledged = channel->quiet_until = channel->asked =
        weft_message_first - 1;
    channel->watched = channel->acknowledged;
    channel->applied = channel->ack_sent = channel->ack_wanted = weft_message_first - 1;
    channel->queue_end = &channel->queue;
    return channel;
}

struct weft_channel *weft_channel_of(int pe) {
    struct weft_channel **channel = &weft_channels.of[pe];
    if (!*channel)
        *channel = channel_make(pe);
    return *channel;
}

static void channel_make_due(struct weft_channel *channel) {
    if (channel->due)
        return;
    channel->due = true;
    channel->next_due = weft_channels.due;
    weft_channels.due = channel;
}

/* Marks the channel as dead. If its PE has died, oshrun or the agent (boot/agent.h) reports that.
 * If this process ran out of a resource, no other process would report it, so the job ends here. */
static void channel_die(struct weft_channel *channel, int error) {
    if (error == -EMFILE || error == -ENFILE)
        weft_channel_fail("cannot open a connection to PE %d on another host: %s%s, or set "
                          "WEFT_PROXIES=host",
                          channel->pe, strerror(-error), weft_remedy(error).text);
    if (error == -EAFNOSUPPORT)
        weft_channel_fail(
            "PE %d%s has an address that this host's address cannot reach (one is IPv4 "
            "and one IPv6, or only one is link-local): name all hosts by addresses "
            "of one kind in --hosts, or, without oshrun, by WEFT_INTERFACE",
            channel->pe, weft_boot_on(channel->pe).text);
    if (error == -EBADF || error == -ENOTSOCK)
        weft_channel_fail_closed();
    channel->error = error;
    channel->dead_ns = weft_clock_ns();
    weft_channels.dead = channel;
}

void weft_channels_look_at_dead(void) {
    const struct weft_channel *channel = weft_channels.dead;
    if (channel && weft_boot_nhosts() == 1 &&
        weft_clock_ns() - channel->dead_ns > PATIENCE_MS * WEFT_NS_PER_MS)
        weft_channel_fail(
            "PE %d cannot be reached, but no process has reported its death: %s (engine '%s')",
            channel->pe, strerror(-channel->error), weft_channels.engine->name);
}

static bool channel_is_connected(struct weft_channel *channel) {
    size_t bytes;
    if (channel->engine)
        return true;
    const void *address = weft_channels.user->address(channel->pe, &bytes);
    int error = weft_channels.engine->connect(weft_channels.end, address, bytes, &channel->engine);
    if (error == 0)
        return true;
    channel->engine = NULL;
    channel_die(channel, error);
    return false;
}

static void channels_set_unfinished(uint32_t channels) {
    atomic_store(&weft_channels_unfinished, channels);
    weft_job_set_unfinished(channels != 0);
}

void weft_channel_count(struct weft_channel *channel) {
    bool unfinished =
        channel->quiet_until != channel->acknowledged || channel->requested != channel->answered;
    if (unfinished != channel->unfinished)
        channels_set_unfinished(weft_channels_unfinished + (unfinished ? 1 : UINT32_MAX));
    channel->unfinished = unfinished;
}

/* A quarter of the bytes that may be under way, so that a sender that waits for room gets its
 * acknowledgments in time. */
size_t weft_message_payload_max(void) {
    size_t most = weft_channels.engine->message_bytes;
    return (most < ACK_BYTES ? most : ACK_BYTES) - sizeof(struct head);
}

/* --- Sending --------------------------------------------------------------------------------- */

/* Hands a message to the engine, with the current acknowledgment in its head. Returns 0, or -EAGAIN
 * if the engine has no room or the channel is dead. */
static int channel_emit(struct weft_channel *channel, struct head *head,
                        const struct iovec *payload, int nparts) {
    if (channel->error || !channel_is_connected(channel))
        return -EAGAIN;
    struct iovec parts[WEFT_ENGINE_MESSAGE_PARTS] = {{head, sizeof *head}};
    for (int i = 0; i < nparts; i++)
        parts[i + 1] = payload[i];
    head->acknowledged = channel->applied;
    head->from = (uint32_t)weft_job.pe;
    int result = weft_channels.engine->message(channel->engine, parts, nparts + 1);
    if (result == 0) {
        channel->ack_sent = channel->applied;
        channel->unacked_bytes = 0;
        if (weft_epoch_reached(channel->ack_sent, channel->ack_wanted))
            channel->ack_wanted = channel->ack_sent;
    } else if (result != -EAGAIN) {
        channel_die(channel, result);
    }
    return result ? -EAGAIN : 0;
}

/* Counts bytes of the last numbered message. */
static void channel_weigh(struct weft_channel *channel, size_t bytes) {
    channel->sent_bytes += (uint32_t)bytes;
    channel->bytes_until[channel->sent % WEFT_CHANNEL_RING] = channel->sent_bytes;
}

/* Numbers a message that has been sent or queued. */
static void channel_number(struct weft_channel *channel, size_t bytes) {
    channel->sent++;
    channel_weigh(channel, bytes);
    weft_channel_count(channel);
}

/* Returns whether the limits permit another message: of messages under way, and of answers, which
 * the peer may have to queue. */
static bool channel_has_room(const struct weft_channel *channel, size_t bytes,
                             const struct weft_message_request *request) {
    uint32_t acknowledged = channel->acknowledged;
    uint32_t under_way =
        channel->sent_bytes - channel->bytes_until[acknowledged % WEFT_CHANNEL_RING];
    if (channel->sent - acknowledged >= WEFT_CHANNEL_MESSAGES ||
        (under_way && under_way + bytes > WEFT_CHANNEL_BYTES))
        return false;
    if (!request)
        return true;
    uint32_t open = channel->requested - channel->answered;
    size_t more = request->block_bytes * request->nblocks;
    return open < WEFT_CHANNEL_REQUESTS &&
           (open == 0 || channel->answer_bytes + more <= WEFT_CHANNEL_BYTES);
}

/* --- Messages that are kept ------------------------------------------------------------------- */

static void bundle_close(struct weft_channel *channel) {
    atomic_fetch_sub(&weft_channels_bundles, channel->bundle != NULL);
    channel->bundle = NULL;
}

static void channel_keep(struct weft_channel *channel, struct weft_message_kept *kept) {
    bundle_close(channel);
    *channel->queue_end = kept;
    channel->queue_end = &kept->next;
    channel_make_due(channel);
}

/* Queues a copy of a numbered message until the engine has room. */
static void channel_queue(struct weft_channel *channel, const struct head *head,
                          const struct iovec *payload, int nparts) {
    size_t bytes = sizeof *head + weft_payload_bytes(payload, nparts);
    struct weft_message_kept *kept = malloc(sizeof *kept + bytes);
    if (!kept) {
        weft_channel_fail("no memory for an answer of %zu bytes to PE %d", bytes, channel->pe);
        return;
    }
    *kept = (struct weft_message_kept){.bytes = bytes};
    memcpy(kept->message, head, sizeof *head);
    weft_payload_copy(kept->message + sizeof *head, payload, nparts);
    channel_keep(channel, kept);
}

bool weft_channel_send_kept(struct weft_channel *channel) {
    struct weft_message_kept *kept;
    while ((kept = channel->queue)) {
        struct head head;
        memcpy(&head, kept->message, sizeof head);
        struct iovec payload = {kept->message + sizeof head, kept->bytes - sizeof head};
        if (channel_emit(channel, &head, &payload, 1) != 0)
            return false;
        if (kept == channel->bundle)
            bundle_close(channel);
        channel->queue = kept->next;
        if (!channel->queue)
            channel->queue_end = &channel->queue;
        free(kept);
    }
    return true;
}

/* --- Bundles --------------------------------------------------------------------------------- */

bool weft_channel_open_bundle(struct weft_channel *channel, uint64_t now_ns) {
    struct head head = {.number = channel->sent + 1, .sort = BUNDLE};
    if (!weft_channel_send_kept(channel) || !channel_has_room(channel, BUNDLE_BYTES, NULL))
        return false;
    struct weft_message_kept *bundle = malloc(sizeof *bundle + BUNDLE_BYTES);
    if (!bundle) {
        weft_channel_fail("no memory for messages to PE %d", channel->pe);
        return false;
    }
    *bundle = (struct weft_message_kept){.bytes = sizeof head};
    memcpy(bundle->message, &head, sizeof head);
    channel_number(channel, sizeof head);
    channel_keep(channel, bundle);
    channel->bundle = bundle;
    channel->bundle_ns = now_ns;
    atomic_fetch_add(&weft_channels_bundles, 1);
    return true;
}

bool weft_channel_add(struct weft_channel *channel, const struct weft_message *message) {
    struct weft_message_kept *bundle = channel->bundle;
    size_t bytes = weft_bundle_part_bytes(weft_payload_bytes(message->payload, message->nparts));
    if (!bundle || bundle->bytes + bytes > BUNDLE_BYTES || !channel_has_room(channel, bytes, NULL))
        return false;
    weft_bundle_add(bundle->message + bundle->bytes, message->payload, message->nparts);
    bundle->bytes += bytes;
    channel_weigh(channel, bytes);
    if (!message->no_quiet)
        channel->quiet_until = channel->sent;
    weft_channel_count(channel);
    return true;
}

bool weft_channel_try_send(struct weft_channel *channel, const struct weft_message *message) {
    const struct weft_message_request *request = message->request;
    size_t bytes = sizeof(struct head) + weft_payload_bytes(message->payload, message->nparts);
    struct head head = {.number = channel->sent + 1, .sort = MESSAGE};
    head.asks =
        channel->quiet_follows && message->may_wait && channel->acknowledged == channel->sent;
    if (!weft_channel_send_kept(channel) || !channel_has_room(channel, bytes, request) ||
        channel_emit(channel, &head, message->payload, message->nparts) != 0)
        return false;
    channel->quiet_follows = false;
    if (head.asks)
        channel->asked = head.number;
    if (!message->no_quiet)
        channel->quiet_until = head.number;
    if (request) {
        channel->requests[channel->requested++ % WEFT_CHANNEL_REQUESTS] = *request;
        channel->answer_bytes += request->block_bytes * request->nblocks;
    }
    channel_number(channel, bytes);
    return true;
}

/* The request counts as applied from here on, so that its answer acknowledges it. */
void weft_message_answer(int pe, const struct iovec *payload, int nparts) {
    struct weft_channel *channel = weft_channel_of(pe);
    struct head head = {.number = channel->sent + 1, .sort = ANSWER};
    if (channel->sent - channel->acknowledged >= WEFT_CHANNEL_RING - 1) {
        weft_message_refuse(pe, "it has more requests than may be under way");
        return;
    }
    channel->applied = channel->applying;
    if (channel->queue || channel_emit(channel, &head, payload, nparts) != 0)
        channel_queue(channel, &head, payload, nparts);
    channel_number(channel, sizeof head + weft_payload_bytes(payload, nparts));
}

/* --- Messages that are due -------------------------------------------------------------------- */

void weft_channel_ask(struct weft_channel *channel, bool all) {
    uint32_t goal = all ? channel->sent : channel->quiet_until;
    channel->quiet_follows = goal - channel->acknowledged == 1;
    if (weft_epoch_reached(channel->asked, goal))
        return;
    channel->asked = goal;
    channel->must_ask = true;
    channel_make_due(channel);
}

/* Returns whether the peer waits for an acknowledgment, or may soon. */
static bool channel_must_acknowledge(const struct weft_channel *channel) {
    uint32_t unacked = channel->applied - channel->ack_sent;
    bool asked = channel->ack_wanted != channel->ack_sent &&
                 weft_epoch_reached(channel->applied, channel->ack_wanted);
    return asked || unacked >= ACK_MESSAGES || channel->unacked_bytes >= ACK_BYTES;
}

void weft_channel_acknowledge(struct weft_channel *channel) {
    if (channel_must_acknowledge(channel))
        channel_make_due(channel);
}

/* Returns whether the queue is just a bundle that is young enough to stay open. */
static bool channel_lingers(const struct weft_channel *channel) {
    return channel->bundle && channel->queue == channel->bundle && !channel->must_ask &&
           weft_clock_ns() - channel->bundle_ns < YOUNG_NS;
}

/* Returns whether nothing is left to send. */
static bool channel_send_due(struct weft_channel *channel, bool linger) {
    bool waits = linger && channel_lingers(channel);
    if (!waits && !weft_channel_send_kept(channel))
        return false;
    if (!channel->must_ask && !channel_must_acknowledge(channel))
        return !waits;
    struct head head = {.number = channel->asked, .sort = CONTROL, .asks = channel->must_ask};
    if (channel_emit(channel, &head, NULL, 0) != 0)
        return false;
    channel->must_ask = false;
    return !waits;
}

void weft_channels_send_due(bool linger) {
    struct weft_channel *channel = weft_channels.due, *next;
    weft_channels.due = NULL;
    for (; channel; channel = next) {
        next = channel->next_due;
        channel->due = false;
        if (!channel_send_due(channel, linger))
            channel_make_due(channel);
    }
}

/* --- The end --------------------------------------------------------------------------------- */

static void channel_free(struct weft_channel *channel) {
    struct weft_message_kept *next;
    for (; channel->queue; channel->queue = next) {
        next = channel->queue->next;
        free(channel->queue);
    }
    for (int i = 0; i < WEFT_CHANNEL_RING; i++)
        free(channel->early[i]);
    free(channel);
}

void weft_channels_free(void) {
    for (int pe = 0; weft_channels.of && pe < weft_job.npes; pe++)
        if (weft_channels.of[pe])
            channel_free(weft_channels.of[pe]);
    free(weft_channels.of);
    weft_channels = (struct weft_channels){0};
    channels_set_unfinished(0);
    atomic_store(&weft_channels_bundles, 0);
    atomic_store(&weft_channels_put_off, 0);
}
