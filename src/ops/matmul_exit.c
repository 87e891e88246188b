/* SPDX-License-Identifier: BSD-3-Clause */
/* Exit handlers run in the reverse order of their registration, and ours has to come before the
 * libraries'. They register some within their first product of a kind, which makes its kernels and
 * may take a tenth of a second: meanwhile a thread keeps ours the last. An exit in the moment
 * between is theirs to survive. */
#include "ops/matmul_exit.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/thread.h"

static _Atomic int under_way;
static _Atomic bool exiting;
static _Thread_local bool exits; /* this thread does: its handlers may still multiply */
static _Thread_local int own;    /* 1 within a product: an exit from there waits for the others */

/* This thread's first product of a kind that nobody had begun before. */
static _Thread_local struct first {
    _Atomic bool over;
    bool watched;
    pthread_t watcher;
} first;

static void await_products(void) {
    exits = true;
    atomic_store(&exiting, true);
    while (atomic_load(&under_way) > own)
        weft_clock_sleep_ms(1);
}

static void *stay_last(void *product) {
    enum { CLOSE_LOOKS = 64, PAUSE_MS_MAX = 50 };
    long pause_ms = 1;
    for (int looks = 0; !atomic_load(&((struct first *)product)->over); looks++) {
        atexit(await_products);
        weft_clock_sleep_ms(pause_ms);
        if (looks >= CLOSE_LOOKS && pause_ms < PAUSE_MS_MAX)
            pause_ms *= 2;
    }
    return NULL;
}

static void begin_first(unsigned kind) {
    static _Atomic uint32_t begun;
    uint32_t bit = UINT32_C(1) << kind;
    if (atomic_load_explicit(&begun, memory_order_relaxed) & bit ||
        atomic_fetch_or(&begun, bit) & bit)
        return;
    atexit(await_products);
    atomic_store(&first.over, false);
    first.watched = weft_thread_start(&first.watcher, stay_last, &first) == 0;
}

static void end_first(void) {
    atomic_store(&first.over, true);
    weft_thread_join(first.watcher);
    first.watched = false;
    atexit(await_products);
}

void weft_matmul_begin(unsigned kind) {
    atomic_fetch_add(&under_way, 1);
    own = 1;
    begin_first(kind);
    if (!atomic_load(&exiting) || exits)
        return;
    atomic_fetch_sub(&under_way, 1);
    for (;;)
        pause();
}

void weft_matmul_end(void) {
    if (first.watched)
        end_first();
    own = 0;
    atomic_fetch_sub(&under_way, 1);
}
