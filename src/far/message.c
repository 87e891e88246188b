/* SPDX-License-Identifier: BSD-3-Clause */
/* One lock protects all channels and all calls of the engine. A thread that waits releases it and
 * polls; a thread that finds it taken leaves the polling to the holder. A failure found under the
 * lock is reported after its release, because the program's error handler may leave the call for
 * good. */
#include "far/message.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/env.h"
#include "base/machine.h"
#include "base/thread.h"
#include "job/job.h"
#include "far/coalesce.h"
#include "far/engine.h"

_Atomic bool weft_messages_armed;

static pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
/* The thread that holds the lock; may be out of date for other threads. */
static _Atomic(pthread_t) holder;
static bool started;

/* Ends the job: a signal handler has interrupted this thread while it held the lock. */
static void handler_refuse(void) {
    weft_job_panic("called by a signal handler that interrupted a call to a far PE: set a flag in "
                   "the handler, and make the call after it");
}

static void messages_hold(void) {
    atomic_store_explicit(&holder, pthread_self(), memory_order_relaxed);
}

static void messages_lock(void) {
    if (pthread_mutex_lock(&lock) == EDEADLK)
        handler_refuse();
    messages_hold();
}

static void messages_unlock(void) {
    bool failed = weft_channels.failure[0] != '\0';
    atomic_store_explicit(&holder, (pthread_t)0, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    if (failed)
        weft_job_panic_bare("%s", weft_channels.failure);
}

/* --- The life of messages --------------------------------------------------------------------- */

static int network_is_trusted(bool *trusted) {
    *trusted = strcmp(weft_env.far_network, "trusted") == 0;
    if (*trusted || strcmp(weft_env.far_network, "private") == 0)
        return 0;
    weft_log("WEFT_FAR_NETWORK is '%s': set it to private or trusted", weft_env.far_network);
    return -EINVAL;
}

static int end_open(void *address, size_t *bytes) {
    char reason[WEFT_ENGINE_TEXT_BYTES] = "";
    const struct weft_network *network = weft_boot_network();
    bool reached = network && network->own.sin6_family != AF_UNSPEC;
    struct weft_engine_options options = {.pe = weft_job.pe,
                                          .npes = weft_job.npes,
                                          .network = network ? network->interface : NULL,
                                          .address = reached ? (const void *)&network->own : NULL,
                                          .reason = reason,
                                          .deliver = weft_channel_arrived};
    const struct weft_engine *engine = weft_channels.engine;
    if (network_is_trusted(&options.trusted) != 0)
        return -EINVAL;
    struct weft_engine_end *end = NULL;
    int result = engine->open(&options, &end);
    if (result == 0)
        result = engine->address(end, address, bytes);
    if (result == 0)
        weft_channels.end = end;
    else if (end)
        engine->abandon(end);
    weft_log_make_printable(reason, sizeof reason);
    if (result < 0)
        weft_log("the engine '%s' for far PEs cannot be opened: %s%s", engine->name,
                 reason[0] ? reason : strerror(-result), reason[0] ? "" : weft_remedy(result).text);
    else
        weft_thread_count((int)engine->threads(end));
    return result;
}

int weft_messages_open(const struct weft_message_user *user, void *address, size_t *bytes) {
    weft_channels = (struct weft_channels){.user = user};
    char reason[WEFT_ENGINE_TEXT_BYTES];
    int result = weft_far_engine(&weft_channels.engine, reason);
    if (result < 0) {
        weft_log("%s", reason);
        return result;
    }
    weft_channels.of = calloc((size_t)weft_job.npes, sizeof(struct weft_channel *));
    if (!weft_channels.of) {
        weft_log("no memory for channels to %d PEs", weft_job.npes);
        return -ENOMEM;
    }
    result = end_open(address, bytes);
    if (result < 0)
        weft_channels_free();
    return result;
}

void weft_messages_describe(char *text, size_t bytes) {
    messages_lock();
    if (weft_channels.end)
        weft_channels.engine->describe(weft_channels.end, text, bytes);
    else
        snprintf(text, bytes, "none is open");
    messages_unlock();
}

void weft_messages_start(void) {
    messages_lock();
    started = true;
    messages_unlock();
}

void weft_messages_close(void) {
    messages_lock();
    started = false;
    if (weft_channels.end) {
        weft_thread_count(-(int)weft_channels.engine->threads(weft_channels.end));
        weft_channels.engine->abandon(weft_channels.end);
    }
    weft_channels_free();
    messages_unlock();
}

/* --- Polling and waiting --------------------------------------------------------------------- */

/* Once the job is over, no message is delivered: the destination of an answer may be gone. */
static bool channels_look(bool linger) {
    if (!started || weft_job_aborted())
        return false;
    bool moved = weft_channels.engine->progress(weft_channels.end) != 0;
    moved |= weft_channels_go_on();
    weft_channels_send_due(linger);
    weft_channels_look_at_dead();
    return moved;
}

bool weft_messages_look(bool linger) {
    if (pthread_mutex_trylock(&lock) != 0) {
        if (pthread_equal(atomic_load_explicit(&holder, memory_order_relaxed), pthread_self()))
            handler_refuse(); /* a wait in the handler would never end */
        return false;
    }
    messages_hold();
    bool moved = channels_look(linger);
    if (moved && weft_channels.user->moved)
        weft_channels.user->moved();
    messages_unlock();
    if (moved)
        weft_arrivals_notify(weft_arrivals());
    return moved;
}

void weft_messages_pass(void) {
    messages_lock();
    messages_unlock();
}

void weft_messages_each_channel(void (*take)(struct weft_channel *channel)) {
    messages_lock();
    for (int pe = 0; started && pe < weft_job.npes; pe++)
        if (weft_channels.of[pe])
            take(weft_channels.of[pe]);
    if (started)
        weft_channels_send_due(true);
    messages_unlock();
}

int weft_messages_arm(int *descriptor) {
    messages_lock();
    bool may = started && atomic_load(&weft_channels_bundles) == 0 && !weft_channels.put_off;
    int result = may ? weft_channels.engine->arm(weft_channels.end, descriptor) : -EBUSY;
    if (result == -EBADF)
        weft_channel_fail_closed();
    atomic_store(&weft_messages_armed, result == 0);
    messages_unlock();
    return result;
}

bool weft_messages_wait_for_room(void) {
    messages_lock();
    bool waits = weft_channels.due || weft_channels.dead;
    messages_unlock();
    return waits;
}

/* A thread that polls wakes the threads that sleep, so a poll by another thread is as good as a
 * poll by this thread. */
void weft_message_turn(struct weft_waiter *waiter) {
    waiter->by_messages = true;
    if (!weft_waiter_awake(waiter)) {
        void (*look)(void) = atomic_load_explicit(&weft_wait_look, memory_order_acquire);
        if (look)
            look();
        uint64_t rest_ns = weft_waiter_rest_ms(waiter) * WEFT_NS_PER_MS;
        waiter->arrivals = weft_arrivals_sleep(waiter->arrivals, rest_ns);
    } else {
        waiter->arrivals = weft_arrivals_count();
    }
}

/* --- Sending and quiet ----------------------------------------------------------------------- */

void weft_message_send(int pe, const struct weft_message *message) {
    struct weft_waiter waiter = {.pe = pe};
    for (;;) {
        messages_lock();
        struct weft_channel *channel = weft_channels.end ? weft_channel_of(pe) : NULL;
        bool sent = channel && weft_coalesce_try_send(channel, message);
        messages_unlock();
        if (sent)
            break;
        weft_message_turn(&waiter);
    }
    weft_waiter_end(&waiter);
}

void weft_messages_begin(void (*begin)(void *), void *context) {
    messages_lock();
    if (weft_channels.end)
        begin(context);
    messages_unlock();
}

void weft_messages_fence(void) {
    atomic_fetch_add(&weft_coalesce_burst, 1);
    if (atomic_load(&weft_channels_bundles) == 0)
        return;
    messages_lock();
    if (started)
        weft_channels_send_due(false);
    messages_unlock();
}

/* Returns the channel to a PE, or NULL if it is unused. */
static struct weft_channel *channel_find(int pe) {
    return weft_channels.of ? weft_channels.of[pe] : NULL;
}

/* Waits until the channel has the acknowledgments and answers that were outstanding at the first
 * look. If the job, and with it the channel, is gone, that never happens. */
static void channel_await(int pe) {
    struct weft_waiter waiter = {.pe = pe};
    bool begun = false;
    uint32_t acknowledged = 0, answered = 0;
    for (;;) {
        messages_lock();
        const struct weft_channel *channel = channel_find(pe);
        if (channel && !begun) {
            acknowledged = channel->asked;
            answered = channel->requested;
        }
        bool come = channel ? weft_epoch_reached(channel->acknowledged, acknowledged) &&
                                  weft_epoch_reached(channel->answered, answered)
                            : !begun;
        messages_unlock();
        if (come)
            break;
        begun = true;
        weft_message_turn(&waiter);
    }
    weft_waiter_end(&waiter);
}

/* All PEs are asked first, so that they answer in parallel. */
void weft_messages_quiet(const int *pes, size_t n, bool all) {
    if (!all && atomic_load(&weft_channels_unfinished) == 0)
        return;
    atomic_fetch_add(&weft_coalesce_burst, 1);
    if (!pes)
        n = (size_t)weft_job.npes;
    messages_lock();
    for (size_t i = 0; i < n; i++) {
        struct weft_channel *channel = channel_find(pes ? pes[i] : (int)i);
        if (channel)
            weft_channel_ask(channel, all);
    }
    if (started)
        weft_channels_send_due(false);
    messages_unlock();
    for (size_t i = 0; i < n; i++)
        channel_await(pes ? pes[i] : (int)i);
}
