/* SPDX-License-Identifier: BSD-3-Clause */
/* One lock stands around all links and all calls of the engine. Who waits lets go of it and looks;
 * a look that finds it taken leaves the work to whoever has it. A failure that is found under it is
 * told behind it, because telling may leave the call for good. */
#include "core/letter.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "base/futex.h"
#include "base/machine.h"
#include "base/thread.h"
#include "core/engine.h"
#include "core/gather.h"
#include "core/job.h"

_Atomic bool weft_letters_armed;

static pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static _Atomic(pthread_t) holder; /* of the lock; another thread's own may be an old one */
static bool started;

/* A signal handler has broken into this thread while it held the lock. */
static void handler_refuse(void) {
    weft_job_panic("called by a signal handler within a call to a far PE: set a flag in the "
                   "handler, and call behind it");
}

static void letters_hold(void) {
    atomic_store_explicit(&holder, pthread_self(), memory_order_relaxed);
}

static void letters_lock(void) {
    if (pthread_mutex_lock(&lock) == EDEADLK)
        handler_refuse();
    letters_hold();
}

static void letters_unlock(void) {
    bool failed = weft_links.failure[0] != '\0';
    atomic_store_explicit(&holder, (pthread_t)0, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    if (failed)
        weft_job_panic_bare("%s", weft_links.failure);
}

/* --- The life of letters --------------------------------------------------------------------- */

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
                                          .deliver = weft_link_arrived};
    const struct weft_engine *engine = weft_links.engine;
    if (network_is_trusted(&options.trusted) != 0)
        return -EINVAL;
    struct weft_engine_end *end = NULL;
    int result = engine->open(&options, &end);
    if (result == 0)
        result = engine->address(end, address, bytes);
    if (result == 0)
        weft_links.end = end;
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

int weft_letters_open(const struct weft_letter_user *user, void *address, size_t *bytes) {
    weft_links = (struct weft_links){.user = user};
    char reason[WEFT_ENGINE_TEXT_BYTES];
    int result = weft_far_engine(&weft_links.engine, reason);
    if (result < 0) {
        weft_log("%s", reason);
        return result;
    }
    weft_links.of = calloc((size_t)weft_job.npes, sizeof(struct weft_link *));
    if (!weft_links.of) {
        weft_log("no memory for links to %d PEs", weft_job.npes);
        return -ENOMEM;
    }
    result = end_open(address, bytes);
    if (result < 0)
        weft_links_free();
    return result;
}

void weft_letters_describe(char *text, size_t bytes) {
    letters_lock();
    if (weft_links.end)
        weft_links.engine->describe(weft_links.end, text, bytes);
    else
        snprintf(text, bytes, "none is open");
    letters_unlock();
}

void weft_letters_start(void) {
    letters_lock();
    started = true;
    letters_unlock();
}

void weft_letters_close(void) {
    letters_lock();
    started = false;
    if (weft_links.end) {
        weft_thread_count(-(int)weft_links.engine->threads(weft_links.end));
        weft_links.engine->abandon(weft_links.end);
    }
    weft_links_free();
    letters_unlock();
}

/* --- Looking and waiting --------------------------------------------------------------------- */

/* Once the job is over nothing more is delivered: what asked for it may be gone. */
static bool links_look(bool linger) {
    if (!started || weft_job_aborted())
        return false;
    bool moved = weft_links.engine->progress(weft_links.end) != 0;
    moved |= weft_links_go_on();
    weft_links_send_due(linger);
    weft_links_look_at_dead();
    return moved;
}

bool weft_letters_look(bool linger) {
    if (pthread_mutex_trylock(&lock) != 0) {
        if (pthread_equal(atomic_load_explicit(&holder, memory_order_relaxed), pthread_self()))
            handler_refuse(); /* who waits in a handler would wait for ever */
        return false;
    }
    letters_hold();
    bool moved = links_look(linger);
    if (moved && weft_links.user->moved)
        weft_links.user->moved();
    letters_unlock();
    if (moved)
        weft_arrivals_tell(weft_arrivals());
    return moved;
}

void weft_letters_pass(void) {
    letters_lock();
    letters_unlock();
}

void weft_letters_each_link(void (*take)(struct weft_link *link)) {
    letters_lock();
    for (int pe = 0; started && pe < weft_job.npes; pe++)
        if (weft_links.of[pe])
            take(weft_links.of[pe]);
    if (started)
        weft_links_send_due(true);
    letters_unlock();
}

int weft_letters_arm(int *descriptor) {
    letters_lock();
    bool may = started && atomic_load(&weft_links_bundles) == 0 && !weft_links.put_off;
    int result = may ? weft_links.engine->arm(weft_links.end, descriptor) : -EBUSY;
    if (result == -EBADF)
        weft_link_fail_closed();
    atomic_store(&weft_letters_armed, result == 0);
    letters_unlock();
    return result;
}

bool weft_letters_wait_for_room(void) {
    letters_lock();
    bool waits = weft_links.due || weft_links.dead;
    letters_unlock();
    return waits;
}

/* Whoever looks wakes those who sleep, so that a look by another thread is as good. */
void weft_letter_turn(struct weft_waiter *waiter) {
    waiter->by_letters = true;
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

void weft_letter_send(int pe, const struct weft_letter *letter) {
    struct weft_waiter waiter = {.pe = pe};
    for (;;) {
        letters_lock();
        struct weft_link *link = weft_links.end ? weft_link_of(pe) : NULL;
        bool sent = link && weft_gather_try_send(link, letter);
        letters_unlock();
        if (sent)
            break;
        weft_letter_turn(&waiter);
    }
    weft_waiter_end(&waiter);
}

void weft_letters_begin(void (*begin)(void *), void *context) {
    letters_lock();
    if (weft_links.end)
        begin(context);
    letters_unlock();
}

void weft_letters_fence(void) {
    atomic_fetch_add(&weft_gather_burst, 1);
    if (atomic_load(&weft_links_bundles) == 0)
        return;
    letters_lock();
    if (started)
        weft_links_send_due(false);
    letters_unlock();
}

/* The link to a PE that has been written to; NULL: none has. */
static struct weft_link *link_find(int pe) {
    return weft_links.of ? weft_links.of[pe] : NULL;
}

/* Until the link has come so far as it had been asked to when this began. A link that is gone, with
 * the job, comes no further. */
static void link_await(int pe) {
    struct weft_waiter waiter = {.pe = pe};
    bool begun = false;
    uint32_t acknowledged = 0, answered = 0;
    for (;;) {
        letters_lock();
        const struct weft_link *link = link_find(pe);
        if (link && !begun) {
            acknowledged = link->asked;
            answered = link->requested;
        }
        bool come = link ? weft_epoch_reached(link->acknowledged, acknowledged) &&
                               weft_epoch_reached(link->answered, answered)
                         : !begun;
        letters_unlock();
        if (come)
            break;
        begun = true;
        weft_letter_turn(&waiter);
    }
    weft_waiter_end(&waiter);
}

/* All are asked first, and answer side by side. */
void weft_letters_quiet(const int *pes, size_t n, bool all) {
    if (!all && atomic_load(&weft_links_unfinished) == 0)
        return;
    atomic_fetch_add(&weft_gather_burst, 1);
    if (!pes)
        n = (size_t)weft_job.npes;
    letters_lock();
    for (size_t i = 0; i < n; i++) {
        struct weft_link *link = link_find(pes ? pes[i] : (int)i);
        if (link)
            weft_link_ask(link, all);
    }
    if (started)
        weft_links_send_due(false);
    letters_unlock();
    for (size_t i = 0; i < n; i++)
        link_await(pes ? pes[i] : (int)i);
}
