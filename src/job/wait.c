/* SPDX-License-Identifier: BSD-3-Clause */
/* The stages of a wait: spin, yield, sleep. A wait spins only on a host where every PE has a
 * processor; elsewhere spinning delays the PE that is waited for. */
#include "job/wait.h"
#include <sched.h>
#include <time.h>
#include "base/futex.h"
#include "base/thread.h"
#include "boot/end.h"
#include "boot/guard.h"
#include "boot/long_wait.h"
#include "job/placement.h"

enum {
    BRIEF_TURNS = 32,
    FEW_TURNS = 4,     /* each may take 25 ms if twelve other threads want this processor */
    SPIN_TURNS = 4096, /* about 50 us of pauses */
    YIELD_TURNS = 512,
    ABORT_CHECK_TURNS = 64,
    CLOCK_TURNS = 64,       /* turns with a poll of the engine between two readings of the clock */
    CLOCK_AFTER_TURNS = 32, /* shorter waits are not worth two readings of the clock */
    LOOK_TURNS = 16,        /* pauses between two polls of the engine, each of which takes 200 ns */
    SPIN_NS = 50 * 1000,    /* spinning with polls of the engine, which may take long */
    AWAKE_NS = 5000000,     /* polls and yields; longer if other threads want this processor */
    SHARED_NS = 200 * 1000, /* a longer yield has let another thread compute */
    SHARED_WAITS = 64,      /* waits without a spin after a yield that let another thread run */
    TIMER_NS = 30 * 1000,   /* below 100 us, including the kernel's timer slack of 50 us */
    TIMER_NS_FAR = 2000000, /* at most, if no near PE stores to this one's memory */
    REST_MS_MIN = 5,
    REST_MS_MAX = 100,
    REST_SHARE = 8, /* a sleep lasts 1 / REST_SHARE of the time waited so far */
};

_Thread_local uint64_t weft_waited_ns;
struct weft_wait_watch weft_wait_watch;
void (*_Atomic weft_wait_look)(void);

static _Thread_local uint32_t shared_waits;               /* remaining waits without a spin */
static _Thread_local const struct weft_waiter *innermost; /* of this thread */

static inline void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* Leaves because the job is over. A waiter with a time limit expects that peers may be missing: if
 * the program's end handler leaves the call, the program may continue alone (weft_boot_go_alone).
 */
static _Noreturn void waiter_leave(const struct weft_waiter *waiter) {
    if (waiter->limited)
        weft_boot_go_alone();
    weft_job_die_aborted();
}

/* Returns whether only messages can end a wait for this PE, or for any PE: the PE is far, or all
 * are. Either this process applies these messages or its host proxy, which calls
 * weft_arrivals_notify. */
static inline bool messages_alone(int pe) {
    return weft_job.far && (weft_windows.scratch.window.count <= 1 || weft_is_far(pe));
}

/* Delivers messages if the job has far PEs: on every turn of a wait that only messages end, now and
 * then in any other wait. A wait that sleeps no longer polls. The progress thread stays away for a
 * while from a PE that polls. */
static inline bool look_for_messages(const struct weft_waiter *waiter, bool in_any_wait) {
    void (*look)(void) = atomic_load_explicit(&weft_wait_look, memory_order_acquire);
    if (__builtin_expect(!look, 1) ||
        !(in_any_wait || waiter->by_messages || messages_alone(waiter->pe)))
        return false;
    look();
    return true;
}

/* Returns the time since the first call for this wait, and lets the watch look when that is due. */
static uint64_t lasted_ns(struct weft_waiter *waiter) {
    uint64_t now_ns = weft_clock_ns();
    if (waiter->since_ns == 0) {
        waiter->since_ns = now_ns;
        waiter->look_ns = weft_wait_watch.look ? now_ns + weft_wait_watch.after_ns : UINT64_MAX;
    }
    if (now_ns >= waiter->look_ns)
        weft_wait_watch.look(waiter, now_ns);
    return now_ns - waiter->since_ns;
}

/* Pauses are limited by their number. Polls of the engine, which may take long, are limited by
 * time: PEs of several hosts can share processors without knowing it, and every poll keeps a
 * processor from the peer that is waited for. */
static void spin(struct weft_waiter *waiter, uint32_t turn) {
    if (turn % ABORT_CHECK_TURNS == 0 && weft_job_aborted())
        waiter_leave(waiter);
    if (!look_for_messages(waiter, turn % LOOK_TURNS == 0))
        pause_briefly();
    else if (turn > 0 && turn % CLOCK_TURNS == 0 && lasted_ns(waiter) >= SPIN_NS)
        waiter->turns = SPIN_TURNS;
}

/* Yields, and infers from the duration whether other waiting or serving threads want this
 * processor: several hosts may be one machine without the job's knowledge. If so, waits begin with
 * yields for a while. A thread that keeps the processor longer is computing and does not count. */
static void yield(void) {
    if (weft_job.oversubscribed) { /* no wait spins here anyway */
        sched_yield();
        return;
    }
    uint64_t before_ns = weft_clock_ns();
    sched_yield();
    uint64_t took_ns = weft_clock_ns() - before_ns;
    shared_waits = took_ns > WEFT_YIELD_ALONE_NS && took_ns < SHARED_NS ? SHARED_WAITS : 0;
}

/* Returns whether a wait that begins may spin. */
static bool may_spin(void) {
    if (weft_job.oversubscribed)
        return false;
    if (shared_waits == 0)
        return true;
    shared_waits--;
    return false;
}

/* Shortens the time slices of this thread when a wait outlasts the spin for the first time: the
 * thread probably shares its processor, and its peers wait until it runs again. */
static void shorten_slices(void) {
    static _Thread_local bool shortened;
    if (!shortened)
        weft_thread_shorten_slices();
    shortened = true;
}

/* While other threads want the processor, a yield lasts until all of them have run, and no message
 * ends it. A message does end a sleep, so the stage of yields is limited by time. */
bool weft_waiter_awake(struct weft_waiter *waiter) {
    if (waiter->turns == 0 && !may_spin())
        waiter->turns = SPIN_TURNS;
    uint32_t turn = waiter->turns++;
    if (turn < SPIN_TURNS) {
        spin(waiter, turn);
        return true;
    }
    if (weft_job_aborted())
        waiter_leave(waiter);
    if (turn == SPIN_TURNS)
        shorten_slices();
    if (turn < SPIN_TURNS + YIELD_TURNS) {
        yield();
        if (look_for_messages(waiter, true) && lasted_ns(waiter) >= AWAKE_NS)
            waiter->turns = SPIN_TURNS + YIELD_TURNS;
        return true;
    }
    waiter->turns = SPIN_TURNS + YIELD_TURNS; /* keeps the count from wrapping around */
    weft_guard_look();
    return false;
}

void weft_word_wake(struct weft_word *word) {
    weft_futex_wake(&word->value, WEFT_FUTEX_ALL);
}

struct weft_arrivals *weft_arrivals(void) {
    return &weft_job.control->pe[weft_job.pe].arrivals;
}

uint32_t weft_arrivals_count(void) {
    return atomic_load(&weft_arrivals()->count);
}

void weft_arrivals_notify(struct weft_arrivals *arrivals) {
    atomic_fetch_add(&arrivals->count, 1);
    if (__builtin_expect(atomic_load(&arrivals->sleepers) != 0, 0))
        weft_futex_wake(&arrivals->count, WEFT_FUTEX_ALL);
}

uint32_t weft_arrivals_sleep(uint32_t seen, uint64_t rest_ns) {
    struct weft_arrivals *arrivals = weft_arrivals();
    atomic_fetch_add(&arrivals->sleepers, 1);
    weft_futex_sleep_ns(&arrivals->count, seen, WEFT_FUTEX_ALL, rest_ns);
    atomic_fetch_sub(&arrivals->sleepers, 1);
    return atomic_load(&arrivals->count);
}

void weft_waiter_hide(struct weft_waiter *waiter) {
    weft_long_wait_hide(waiter->shown);
    waiter->shown = NULL;
}

/* Returns an eighth of the time waited, between 5 and 100 ms. With shorter sleeps, many sleepers on
 * few processors would keep these busy just by checking the abort word, while the PE that they wait
 * for waits for a processor. */
uint32_t weft_waiter_rest_ms(struct weft_waiter *waiter) {
    uint64_t rest_ms = lasted_ns(waiter) / WEFT_NS_PER_MS / REST_SHARE;
    return rest_ms < REST_MS_MIN ? REST_MS_MIN : rest_ms > REST_MS_MAX ? REST_MS_MAX : rest_ms;
}

/* Sleeps while the word still has the value `seen`. The setter stores the value before it checks
 * for sleepers, and the sleeper counts itself before the kernel compares the value, so at least one
 * notices the other. The first sleeper to find the job over wakes the others. */
static void word_sleep(struct weft_word *word, uint32_t seen, uint32_t limit_ms) {
    atomic_fetch_add(&word->sleepers, 1);
    weft_futex_sleep(&word->value, seen, WEFT_FUTEX_ALL, limit_ms);
    atomic_fetch_sub(&word->sleepers, 1);
    if (weft_job_aborted())
        weft_word_wake(word);
}

bool weft_pe_departed(int pe) {
    struct weft_control *control = weft_job.control;
    return atomic_load(&control->pe[pe].departures) >
           atomic_load(&control->pe[weft_job.pe].departures);
}

/* Ends the job: a PE that has entered shmem_finalize sets no word any more, so the wait would never
 * end. */
static void panic_departed(const struct weft_waiter *waiter) {
    int status = atomic_load(&weft_job.control->pe[waiter->pe].exit_status);
    if (status)
        weft_job_die_left(waiter->pe, status);
    weft_job_panic_bare(
        "%s waits for PE %d, which has finalized (returned from main, called exit or "
        "shmem_finalize) and will never get here",
        weft_current_call, waiter->pe);
}

static void check_departure(const struct weft_word *word, uint32_t value,
                            const struct weft_waiter *waiter) {
    if (weft_pe_departed(waiter->pe) && !weft_word_reached(word, value))
        panic_departed(waiter);
}

/* Sleeps until a batch of messages arrives after the condition was checked. The timer covers direct
 * stores: by near PEs, or, if there are none, by other threads of this PE. */
static void arrivals_sleep(struct weft_waiter *waiter, uint64_t waited_ns) {
    bool near_peers = weft_windows.scratch.window.count > 1;
    uint64_t rest_ns = near_peers ? 0 : waited_ns / REST_SHARE;
    rest_ns = rest_ns < TIMER_NS ? TIMER_NS : rest_ns > TIMER_NS_FAR ? TIMER_NS_FAR : rest_ns;
    waiter->arrivals = weft_arrivals_sleep(waiter->arrivals, rest_ns);
}

/* Everything the PE stored before it departed is visible once its departure is. For a far PE this
 * holds because it departs after a quiet. So one more check of the condition decides. */
void weft_waiter_turn(struct weft_waiter *waiter) {
    if (weft_waiter_awake(waiter))
        return;
    if (waiter->departed)
        panic_departed(waiter);
    if (waiter->pe >= 0 && (waiter->departed = weft_pe_departed(waiter->pe)))
        return;
    uint64_t waited_ns = lasted_ns(waiter);
    if (weft_wait_look) {
        arrivals_sleep(waiter, waited_ns);
    } else {
        struct timespec briefly = {.tv_nsec = TIMER_NS};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &briefly, NULL);
    }
}

/* Records the wait as this thread's innermost one. If the thread is in a wait already, a signal
 * handler made this call. */
static void word_wait_begin(struct weft_waiter *waiter, const struct weft_word *word) {
    waiter->call = weft_current_call;
    waiter->word = word;
    waiter->outer = innermost;
    innermost = waiter;
    if (waiter->outer && weft_wait_watch.nested)
        weft_wait_watch.nested(waiter);
}

static void word_wait_end(const struct weft_waiter *waiter, uint64_t since_ns) {
    weft_waited_ns += weft_clock_ns() - since_ns;
    innermost = waiter->outer;
}

/* Waits for at most `turns` turns (pauses, yields, sleeps). Returns whether the word was
 * reached. */
static bool word_wait(struct weft_word *word, uint32_t value, struct weft_waiter *waiter,
                      uint32_t turns) {
    uint64_t since_ns = 0;
    uint32_t seen;
    bool reached;
    while (!(reached = weft_epoch_reached(
                 seen = atomic_load_explicit(&word->value, memory_order_acquire), value))) {
        if (turns-- == 0)
            break;
        if (!since_ns && waiter->turns >= CLOCK_AFTER_TURNS) {
            since_ns = weft_clock_ns();
            word_wait_begin(waiter, word);
        }
        if (weft_waiter_awake(waiter))
            continue;
        check_departure(word, value, waiter);
        word_sleep(word, seen, weft_waiter_rest_ms(waiter));
        if (turns < FEW_TURNS)
            turns = 0; /* a sleep may be long, so a brief wait sleeps once */
    }
    if (since_ns)
        word_wait_end(waiter, since_ns);
    return reached;
}

static __attribute__((noinline)) void word_wait_long(struct weft_word *word, uint32_t value,
                                                     int pe) {
    struct weft_waiter waiter = {.pe = pe};
    while (!word_wait(word, value, &waiter, UINT32_MAX))
        continue;
    weft_waiter_end(&waiter);
}

/* If every PE has a processor, most waits end within a few pauses and need no waiter. */
void weft_word_wait_slow(struct weft_word *word, uint32_t value, int pe) {
    int turns = weft_job.oversubscribed || messages_alone(pe) ? 0 : BRIEF_TURNS;
    for (int turn = 0; turn < turns; turn++) {
        pause_briefly();
        if (weft_word_reached(word, value))
            return;
    }
    word_wait_long(word, value, pe);
}

bool weft_word_wait_briefly(struct weft_word *word, uint32_t value, struct weft_waiter *waiter) {
    return word_wait(word, value, waiter, FEW_TURNS);
}
