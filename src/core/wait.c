/* SPDX-License-Identifier: BSD-3-Clause */
/* The stages of a wait: spin, yield, sleep. Spinning is for hosts where every PE has a processor;
 * elsewhere it only delays the PE that is waited for. */
#include "core/wait.h"
#include <sched.h>
#include <time.h>
#include "base/clock.h"
#include "base/futex.h"
#include "core/job.h"

enum {
    SPIN_TURNS = 4096, /* some 50 us of pauses */
    YIELD_TURNS = 512,
    ABORT_CHECK_TURNS = 64,
    CLOCK_AFTER_TURNS = 32, /* shorter waits are not worth two readings of the clock */
    TIMER_NS = 30 * 1000,   /* with the kernel's timer slack of 50 us: below 100 us */
};

_Thread_local uint64_t weft_waited_ns;

static inline void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* Spins or yields for one turn; false when it is time to sleep. */
bool weft_waiter_awake(struct weft_waiter *waiter) {
    uint32_t spins = weft_job.oversubscribed ? 0 : SPIN_TURNS;
    uint32_t turn = waiter->turns++;
    if (turn < spins) {
        pause_briefly();
        if (turn % ABORT_CHECK_TURNS == 0 && weft_job_aborted())
            weft_job_die_aborted(waiter->call);
        return true;
    }
    if (weft_job_aborted())
        weft_job_die_aborted(waiter->call);
    if (turn < spins + YIELD_TURNS) {
        sched_yield();
        return true;
    }
    waiter->turns = spins + YIELD_TURNS; /* and stay there, without ever wrapping */
    return false;
}

void weft_word_wake(struct weft_word *word) {
    weft_futex_wake(&word->value, WEFT_FUTEX_ALL);
}

/* Sleeps while the word is still `seen`. The setter stores the value before it looks for sleepers,
 * the sleeper counts itself before the kernel compares the value: one of them sees the other. */
static void word_sleep(struct weft_word *word, uint32_t seen) {
    atomic_fetch_add(&word->sleepers, 1);
    weft_futex_sleep(&word->value, seen, WEFT_FUTEX_ALL, WEFT_SLEEP_MS_MAX);
    atomic_fetch_sub(&word->sleepers, 1);
}

bool weft_pe_departed(int pe) {
    struct weft_control *control = weft_job.control;
    return atomic_load(&control->pe[pe].departures) >
           atomic_load(&control->pe[weft_job.pe].departures);
}

/* A PE that has gone into shmem_finalize sets nothing any more: the wait would never end. */
static void panic_departed(const struct weft_waiter *waiter) {
    weft_job_panic("%s waits for PE %d, which has finalized (returned from main, called exit or "
                   "shmem_finalize) and will never get here",
                   waiter->call, waiter->pe);
}

static void check_departure(const struct weft_word *word, uint32_t value,
                            const struct weft_waiter *waiter) {
    if (weft_pe_departed(waiter->pe) && !weft_word_reached(word, value))
        panic_departed(waiter);
}

/* What the PE did before it departed is visible once the departure is: one more look decides. */
void weft_waiter_turn(struct weft_waiter *waiter) {
    if (weft_waiter_awake(waiter))
        return;
    if (waiter->departed)
        panic_departed(waiter);
    if (waiter->pe >= 0 && (waiter->departed = weft_pe_departed(waiter->pe)))
        return;
    struct timespec briefly = {.tv_nsec = TIMER_NS};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &briefly, NULL);
}

/* Whether the word was reached in at most `sleeps` sleeps. */
static bool word_wait(struct weft_word *word, uint32_t value, struct weft_waiter *waiter,
                      uint32_t sleeps) {
    uint64_t since = 0;
    uint32_t seen;
    bool reached;
    while (!(reached = weft_epoch_reached(
                 seen = atomic_load_explicit(&word->value, memory_order_acquire), value))) {
        if (!since && waiter->turns >= CLOCK_AFTER_TURNS)
            since = weft_clock_ns();
        if (weft_waiter_awake(waiter))
            continue;
        check_departure(word, value, waiter);
        if (sleeps-- == 0)
            break;
        word_sleep(word, seen);
    }
    if (since)
        weft_waited_ns += weft_clock_ns() - since;
    return reached;
}

void weft_word_wait_slow(struct weft_word *word, uint32_t value, int pe, const char *call) {
    struct weft_waiter waiter = {.call = call, .pe = pe};
    while (!word_wait(word, value, &waiter, UINT32_MAX))
        continue;
}

bool weft_word_wait_briefly(struct weft_word *word, uint32_t value, int pe, const char *call) {
    struct weft_waiter waiter = {.call = call, .pe = pe};
    return word_wait(word, value, &waiter, 1);
}
