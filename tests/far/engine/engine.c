/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine.h"
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BURST = 64, SOCKETS_EVERY = 16, MESSAGE_BYTES = WEFT_ENGINE_MESSAGE_MIN };

void engine_fail(const struct weft_engine_end *end, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "fake engine: PE %d: %s\n", end->options.pe, text);
    abort();
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void spend(uint64_t us) {
    for (uint64_t end_ns = us ? now_ns() + us * 1000 : 0; end_ns && now_ns() < end_ns;)
        continue;
}

/* Every call is between call_begin and call_end. The library calls the engine under one lock, so a
 * second thread here has called without it. A call within deliver is made by the same thread. */
static void call_begin(struct weft_engine_end *end, const char *name) {
    pthread_t caller = atomic_load_explicit(&end->caller, memory_order_relaxed);
    if (caller && caller != pthread_self())
        engine_fail(end, "%s is called while another thread is in a call", name);
    atomic_store_explicit(&end->caller, pthread_self(), memory_order_relaxed);
}

static void call_end(struct weft_engine_end *end) {
    if (!end->delivering)
        atomic_store_explicit(&end->caller, 0, memory_order_relaxed);
}

static void forbid_within_deliver(const struct weft_engine_end *end, const char *name) {
    if (end->delivering)
        engine_fail(end, "%s is called within deliver", name);
}

static void end_free(struct weft_engine_end *end) {
    for (struct weft_engine_link *link = end->links, *next; link; link = next) {
        next = link->next;
        if (link->source.fd >= 0)
            close(link->source.fd);
        message_ring_unmap(&link->ring);
        free(link);
    }
    for (size_t i = 0; i < end->ninbound; i++) {
        if (end->inbound[i]->source.fd >= 0)
            close(end->inbound[i]->source.fd);
        message_ring_unmap(&end->inbound[i]->ring);
        free(end->inbound[i]);
    }
    free(end->inbound);
    late_free(&end->late);
    sockets_close(end);
    free(end);
}

static int engine_open(const struct weft_engine_options *options, struct weft_engine_end **result) {
    struct weft_engine_end *end = calloc(1, sizeof *end);
    if (!end)
        return -ENOMEM;
    end->options = *options;
    settings_read(&end->settings, options->pe);
    end->random = end->late.random =
        (end->settings.seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)options->pe;
    int error = end->settings.fail_open ? -(int)end->settings.fail_open : sockets_open(end);
    if (error < 0)
        end_free(end);
    else
        *result = end;
    return error;
}

static int engine_address(struct weft_engine_end *end, void *address, size_t *bytes) {
    call_begin(end, "address");
    size_t length = strlen(end->name);
    int error = *bytes < length ? -ENOSPC : 0;
    if (error == 0)
        memcpy(address, end->name, length);
    *bytes = length;
    call_end(end);
    return error;
}

static int engine_connect(struct weft_engine_end *end, const void *address, size_t bytes,
                          struct weft_engine_link **result) {
    call_begin(end, "connect");
    struct weft_engine_link *link = calloc(1, sizeof *link);
    if (!link)
        engine_fail(end, "no memory for a link");
    for (const struct weft_engine_link *made = end->links; made; made = made->next)
        if (!made->dead && bytes < sizeof made->name && memcmp(made->name, address, bytes) == 0)
            engine_fail(end, "there is a link to that address already");
    memcpy(link->name, address, bytes < sizeof link->name ? bytes : 0);
    link->end = end;
    int error = end->settings.fail_connect ? -(int)end->settings.fail_connect
                                           : sockets_connect(link, address, bytes);
    link->next = end->links; /* also after a failure: it is freed with the end */
    end->links = link;
    if (error == 0)
        *result = link;
    call_end(end);
    return error;
}

/* Counts a message that is sent or delivered. */
static void message_count(struct weft_engine_end *end, uint64_t *count) {
    ++*count;
    if (end->settings.die_after && end->sent + end->received == end->settings.die_after)
        kill(getpid(), SIGKILL);
}

static size_t message_measure(const struct weft_engine_end *end, const struct iovec *parts,
                              int nparts) {
    size_t bytes = 0;
    if (nparts < 1 || nparts > WEFT_ENGINE_MESSAGE_PARTS)
        engine_fail(end, "a message of %d parts: they have 1 to %d", nparts,
                    WEFT_ENGINE_MESSAGE_PARTS);
    for (int i = 0; i < nparts; i++)
        bytes += parts[i].iov_len;
    if (bytes == 0 || bytes > MESSAGE_BYTES)
        engine_fail(end, "a message of %zu bytes: they have 1 to %d", bytes, MESSAGE_BYTES);
    return bytes;
}

static int message_send(struct weft_engine_link *link, const struct iovec *parts, int nparts,
                        size_t bytes) {
    struct weft_engine_end *end = link->end;
    const struct settings *settings = &end->settings;
    if (link->dead)
        return -ECONNRESET;
    if (settings->fail_message)
        return -(int)settings->fail_message;
    if (settings->refuse && random_next(&end->random) % 100 < settings->refuse) {
        end->refused = true;
        return -EAGAIN;
    }
    message_count(end, &end->sent);
    spend(settings->slow_us);
    if (!message_ring_write(&link->ring, parts, nparts, bytes)) {
        end->sent--;
        return -EAGAIN;
    }
    if (settings->limit && message_ring_under_way(&link->ring) > settings->limit)
        engine_fail(end, "%zu bytes are under way to one PE, not %zu at most",
                    message_ring_under_way(&link->ring), (size_t)settings->limit);
    if (message_ring_wakes_reader(&link->ring))
        sockets_ring(end, link->source.fd);
    return 0;
}

static int engine_message(struct weft_engine_link *link, const struct iovec *parts, int nparts) {
    call_begin(link->end, "message");
    int error = message_send(link, parts, nparts, message_measure(link->end, parts, nparts));
    call_end(link->end);
    return error;
}

static void deliver(struct weft_engine_end *end, const void *message, size_t bytes) {
    message_count(end, &end->received);
    spend(end->settings.slow_read_us);
    end->delivering = true;
    end->options.deliver(end->options.context, message, bytes);
    end->delivering = false;
}

static bool is_late(const struct weft_engine_end *end) {
    return end->settings.delay_us || end->settings.reorder > 1;
}

static unsigned inbound_read(struct weft_engine_end *end, struct inbound *inbound) {
    struct message_ring *ring = &inbound->ring;
    const void *message;
    size_t bytes;
    unsigned moved = 0;
    for (; moved < BURST && (message = message_ring_read(ring, &bytes)) != NULL; moved++) {
        if (!is_late(end))
            deliver(end, message, bytes);
        else if (!late_add(&end->late, &end->settings, message, bytes, now_ns()))
            engine_fail(end, "no memory for a late message");
        message_ring_take(ring, bytes);
    }
    if (moved && message_ring_give_back(ring))
        sockets_ring(end, inbound->source.fd);
    return moved;
}

/* Delivers the messages that are due; if they are only reordered, a random number of them. */
static unsigned late_read(struct weft_engine_end *end) {
    unsigned moved = 0;
    struct late_message *message;
    size_t limit = end->settings.delay_us ? end->late.count
                                          : random_next(&end->random) % (end->late.count + 1);
    while (moved < limit && (message = late_take(&end->late, &end->settings, now_ns())) != NULL) {
        deliver(end, message->message, message->bytes);
        free(message);
        moved++;
    }
    return moved;
}

static void readers_sleep(struct weft_engine_end *end, bool sleep) {
    for (size_t i = 0; i < end->ninbound; i++)
        if (end->inbound[i]->ring.words)
            message_ring_sleep(&end->inbound[i]->ring, sleep);
    end->armed = sleep;
}

static unsigned engine_progress(struct weft_engine_end *end) {
    call_begin(end, "progress");
    forbid_within_deliver(end, "progress");
    spend(end->settings.slow_look_us);
    unsigned moved = 0;
    if (end->armed || ++end->turns % SOCKETS_EVERY == 0)
        moved += sockets_look(end);
    if (end->armed)
        readers_sleep(end, false);
    for (size_t i = 0; i < end->ninbound; i++)
        if (end->inbound[i]->ring.words)
            moved += inbound_read(end, end->inbound[i]);
    if (end->late.count)
        moved += late_read(end);
    moved += end->refused || (end->late.count && !end->settings.delay_us);
    end->refused = false;
    call_end(end);
    return moved;
}

static bool has_messages(struct weft_engine_end *end) {
    size_t bytes;
    for (size_t i = 0; i < end->ninbound; i++)
        if (end->inbound[i]->ring.words && message_ring_read(&end->inbound[i]->ring, &bytes))
            return true;
    return end->refused || (end->late.count && !end->settings.delay_us);
}

static int engine_arm(struct weft_engine_end *end, int *descriptor) {
    call_begin(end, "arm");
    forbid_within_deliver(end, "arm");
    readers_sleep(end, true);
    int error = has_messages(end) ? -EBUSY : 0;
    if (error == 0 && end->late.count)
        error = sockets_set_timer(end, late_due_ns(&end->late));
    if (error == 0)
        *descriptor = end->epoll;
    else
        readers_sleep(end, false);
    call_end(end);
    return error;
}

static uint32_t engine_abilities(struct weft_engine_link *link) {
    call_begin(link->end, "abilities");
    bool ordered = link->end->settings.reorder <= 1;
    call_end(link->end);
    return ordered ? WEFT_ENGINE_ORDERED : 0;
}

static unsigned engine_threads(struct weft_engine_end *end) {
    (void)end;
    return 0;
}

static void engine_describe(struct weft_engine_end *end, char *text, size_t bytes) {
    (void)end;
    snprintf(text, bytes, "rings in shared memory, for tests");
}

static void engine_abandon(struct weft_engine_end *end) {
    call_begin(end, "abandon");
    forbid_within_deliver(end, "abandon");
    if (end->settings.tell)
        fprintf(stderr, "fake engine: PE %d: %lu messages sent, %lu received\n", end->options.pe,
                (unsigned long)end->sent, (unsigned long)end->received);
    end_free(end);
}

__attribute__((visibility("default"))) const struct weft_engine weft_engine = {
    .version = WEFT_ENGINE_VERSION,
    .name = "fake",
    .message_bytes = MESSAGE_BYTES,
    .open = engine_open,
    .address = engine_address,
    .connect = engine_connect,
    .message = engine_message,
    .progress = engine_progress,
    .arm = engine_arm,
    .abilities = engine_abilities,
    .threads = engine_threads,
    .describe = engine_describe,
    .abandon = engine_abandon,
};
