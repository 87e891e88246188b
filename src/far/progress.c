/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress thread naps while other threads of this process poll, so that it competes neither
 * for their processor nor for the lock. Each nap costs the others about 20 us, so naps grow: a nap
 * lasts as long as the others have been polling. When the program stops polling to compute, a peer
 * waits at most one nap for an answer. If no other thread has polled during a nap, the progress
 * thread polls. It continues for a while after the last message, because another may follow; with a
 * sleep in between, each message would cost a wake-up of 30 us. Then it sleeps on the descriptor.
 */
#include "far/progress.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/machine.h"
#include "base/thread.h"
#include "boot/alive.h"
#include "job/job.h"
#include "far/coalesce.h"
#include "far/endpoints.h"
#include "far/message.h"

enum {
    NAP_NS_MIN = 200 * 1000,
    NAP_NS_MAX = 3000 * 1000,
    BUNDLE_NAP_NS = 20 * 1000, /* while a bundle is open or GPU work is pending */
    LINGER_NS = 50 * 1000,
    SLEEP_MS = 100, /* then it checks whether all threads of the program have ended */
    SHORT_SLEEP_MS = 1,
};

static struct {
    pthread_t thread;
    bool running;
    int bell; /* an eventfd that ends its sleep */
    _Atomic bool stops;
} progress;

static _Atomic uint32_t looks; /* polls by other threads */

static void bell_ring(void) {
    uint64_t one = 1;
    if (weft_descriptor_is_ours(progress.bell) && write(progress.bell, &one, sizeof one) < 0 &&
        errno != EAGAIN)
        weft_log("cannot wake the thread that serves far PEs (write to an eventfd): %s%s",
                 strerror(errno), weft_remedy(-errno).text);
}

void weft_far_progress_wake(void) {
    if (__builtin_expect(atomic_load_explicit(&weft_messages_armed, memory_order_relaxed), 0) &&
        atomic_exchange(&weft_messages_armed, false))
        bell_ring();
}

void weft_far_look(void) {
    atomic_fetch_add_explicit(&looks, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&weft_coalesce_burst, 1, memory_order_relaxed);
    weft_messages_look(false);
    weft_far_progress_wake();
}

static void nap(long ns) {
    struct timespec briefly = {.tv_nsec = ns};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &briefly, NULL);
}

/* Sleeps until there is something to do. */
static void progress_sleep(void) {
    uint64_t rung;
    struct pollfd descriptors[] = {{.fd = progress.bell, .events = POLLIN},
                                   {.fd = -1, .events = POLLIN}};
    int limit_ms = weft_messages_wait_for_room() ? SHORT_SLEEP_MS : SLEEP_MS;
    if (weft_messages_arm(&descriptors[1].fd) != 0)
        return;
    int ready = poll(descriptors, 2, limit_ms);
    atomic_store(&weft_messages_armed, false);
    if (descriptors[0].revents && weft_descriptor_is_ours(progress.bell) &&
        read(progress.bell, &rung, sizeof rung) < 0 && errno != EAGAIN)
        weft_log("the thread that serves far PEs cannot read its eventfd: %s%s", strerror(errno),
                 weft_remedy(-errno).text);
    if (ready == 0)
        weft_alive_end_if_last();
}

/* Polls for a moment, until no message arrives any more. */
static void progress_linger(void) {
    uint64_t until_ns = weft_clock_ns() + LINGER_NS;
    uint32_t seen = atomic_load_explicit(&looks, memory_order_relaxed);
    do {
        if (weft_messages_look(true))
            until_ns = weft_clock_ns() + LINGER_NS;
        else if (weft_job.oversubscribed)
            sched_yield();
    } while (weft_clock_ns() < until_ns && !atomic_load(&progress.stops) &&
             atomic_load_explicit(&looks, memory_order_relaxed) == seen);
}

/* Returns the length of the next nap in a row. The naps of a host proxy's thread stay short: other
 * PEs wait for it. */
static long nap_longer(long ns) {
    long most = weft_far_is_proxy() ? NAP_NS_MIN : NAP_NS_MAX;
    ns = ns == 0 ? NAP_NS_MIN : 2 * ns;
    return ns < most ? ns : most;
}

static void *progress_main(void *unused) {
    uint32_t seen = 0;
    long nap_ns = 0;
    (void)unused;
    while (!atomic_load(&progress.stops)) {
        uint32_t now = atomic_load_explicit(&looks, memory_order_relaxed);
        weft_probes_look();
        nap_ns = now == seen ? 0 : nap_longer(nap_ns);
        seen = now;
        if (nap_ns > 0) {
            nap(nap_ns);
        } else if (weft_messages_look(true)) {
            progress_linger();
        } else if (atomic_load(&weft_channels_bundles) + atomic_load(&weft_channels_put_off) != 0) {
            nap(BUNDLE_NAP_NS);
        } else {
            progress_sleep();
        }
    }
    return NULL;
}

int weft_far_progress_start(void) {
    atomic_store(&progress.stops, false);
    progress.bell = weft_descriptor_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    int error = progress.bell < 0 ? -errno : 0;
    if (error == 0)
        error = weft_thread_start(&progress.thread, progress_main, NULL);
    progress.running = error == 0;
    if (error == 0)
        return 0;
    weft_log("cannot start the thread that serves far PEs: %s%s", strerror(-error),
             weft_remedy(error).text);
    if (progress.bell >= 0)
        weft_descriptor_close(progress.bell);
    return error;
}

/* The progress thread itself calls exit() once all other threads have ended, but must still serve
 * its peers. */
void weft_far_progress_hand_over(void) {
    if (!progress.running || !pthread_equal(progress.thread, pthread_self()))
        return;
    pthread_detach(progress.thread);
    int error = weft_thread_start(&progress.thread, progress_main, NULL);
    if (error)
        weft_job_panic("cannot start the thread that serves far PEs: %s%s", strerror(-error),
                       weft_remedy(error).text);
}

void weft_far_progress_stop(void) {
    if (!progress.running)
        return;
    atomic_store(&progress.stops, true);
    bell_ring();
    weft_thread_join(progress.thread);
    weft_descriptor_close(progress.bell);
    progress.running = false;
}
