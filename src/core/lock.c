/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleepers leave a bit in the word that they sleep on, and each sleeps under a bit of its ticket,
 * so that a release wakes the next in line and hardly anyone else. The bit stays: whether others
 * sleep is not known, and a release that nobody waits for makes no system call anyway. */
#include "core/lock.h"
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <shmem.h>
#include "base/futex.h"
#include "core/far.h"
#include "core/init.h"
#include "core/order.h"
#include "core/wait.h"

enum {
    HOME = 0,             /* whose long is the lock */
    LOOK_TIMES = 1024,    /* tests in vain from one look at the holder to the next */
    ASK_SHARE = 8,        /* of the time for which one ticket has been served */
    ASK_NS_MAX = 1000000, /* the longest rest from one question to the next */
    TURN_NS = 20000,      /* that a turn of others takes at least: far ones need two letters */
    YIELD_NS = 50000,     /* shorter rests are not slept */
};

#define SLEPT_ON UINT32_C(1)
#define TICKET   UINT32_C(256) /* from one ticket to the next; they wrap around */

/* Of a PE other than HOME only `held` counts. */
struct lock {
    _Atomic uint32_t serving; /* and SLEPT_ON */
    union {
        _Atomic uint32_t next;
        _Atomic uint8_t held; /* by this long's PE; below the ticket */
    };
};
_Static_assert(sizeof(struct lock) == sizeof(long), "a lock is the user's long");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "`held` is below the ticket");

/* NULL: it is no symmetric long, or the PE is far. */
static struct lock *lock_at(long *lock, int pe) {
    return weft_near(lock, sizeof *lock, pe);
}

/* HOME's by the name that it has for letters, where HOME is far; NULL: it is no symmetric long. */
static struct lock *far_lock(long *lock) {
    return lock_at(lock, weft_job.pe) ? (struct lock *)lock : NULL;
}

static void hold(long *lock, bool held) {
    atomic_store_explicit(&((struct lock *)lock)->held, held, memory_order_relaxed);
}

static uint32_t ticket_in(uint32_t word) {
    return word & ~(TICKET - 1);
}

static uint32_t served(struct lock *lock) {
    return ticket_in(atomic_load_explicit(&lock->serving, memory_order_acquire));
}

/* An atomic on a half of HOME's long, of which `word` is the name. */
static uint32_t far_amo(enum weft_amo_op op, _Atomic uint32_t *word, uint32_t value,
                        uint32_t cond) {
    return (uint32_t)weft_far_amo(op, sizeof value, true, (void *)word, value, cond, false, HOME);
}

static uint32_t far_served(struct lock *lock) {
    return ticket_in(far_amo(WEFT_AMO_FETCH, &lock->serving, 0, 0));
}

/* Tickets in line sleep under different bits, up to 32 of them. */
static uint32_t bit_of(uint32_t ticket) {
    return UINT32_C(1) << (ticket / TICKET % 32);
}

static bool is_held_by(long *object, int pe) {
    struct lock *theirs = lock_at(object, pe);
    uint8_t held;
    if (theirs)
        return atomic_load(&theirs->held);
    assert(weft_is_far(pe));
    weft_far_get(&held, (void *)&far_lock(object)->held, sizeof held, pe, false);
    return held;
}

/* The PE that has the lock, or WEFT_PE_ANY where that has just changed. Who has departed with it
 * never clears it. */
static int find_holder(long *object) {
    for (int pe = 0; pe < weft_job.npes; pe++) {
        bool departed = weft_pe_departed(pe); /* first: all that it did is visible then */
        if (!is_held_by(object, pe))
            continue;
        if (departed)
            weft_job_panic_bare(
                "%s waits for PE %d, which holds the lock and has finalized (returned from main, "
                "called exit or shmem_finalize): clear it before",
                weft_current_call, pe);
        return pe;
    }
    return WEFT_PE_ANY;
}

/* The lock that this thread has set last, by its ticket: while that is served the thread has it. */
static _Thread_local struct {
    const struct lock *lock;
    uint32_t ticket;
} latest;

static __attribute__((noinline)) void remember(const struct lock *lock, uint32_t ticket) {
    latest.lock = lock;
    latest.ticket = ticket;
}

static int acquire(long *object, const struct lock *lock, uint32_t ticket) {
    hold(object, true);
    if (weft_thread_level() >= SHMEM_THREAD_SERIALIZED)
        remember(lock, ticket);
    return 0;
}

/* Below SHMEM_THREAD_SERIALIZED the PE has no other thread that could clear it. */
static void refuse_own(const struct lock *lock, uint32_t serving, int holder) {
    bool this_thread = latest.lock == lock && latest.ticket == serving;
    bool other_barred = weft_thread_level() < SHMEM_THREAD_SERIALIZED;
    if (holder == weft_job.pe && (this_thread || other_barred))
        weft_job_panic("%s holds this lock already, and would wait for itself: locks do not nest; "
                       "clear it before it is set again",
                       this_thread ? "this thread" : "this PE");
}

static void wait_for_turn(struct lock *lock, uint32_t ticket, long *object) {
    struct weft_waiter waiter = {.pe = WEFT_PE_ANY};
    uint32_t serving;
    while ((serving = served(lock)) != ticket) {
        if (weft_waiter_awake(&waiter))
            continue;
        waiter.pe = find_holder(object);
        if (served(lock) == serving)
            refuse_own(lock, serving, waiter.pe);
        uint32_t seen = atomic_fetch_or(&lock->serving, SLEPT_ON) | SLEPT_ON;
        if (ticket_in(seen) != ticket)
            weft_futex_sleep(&lock->serving, seen, bit_of(ticket), weft_waiter_rest_ms(&waiter));
    }
    weft_waiter_end(&waiter);
}

/* Programs test in loops: there a job that is over has to be noticed, now and then a holder that
 * has departed, and one that needs this processor must get it. */
static void tested_in_vain(long *object) {
    static _Thread_local unsigned times;
    if (weft_job_aborted())
        weft_job_die_aborted();
    if (++times % LOOK_TIMES == 0)
        find_holder(object);
    if (weft_job.oversubscribed)
        sched_yield();
}

/* --- Where HOME is far ------------------------------------------------------------------------ */

/* What is known of the line from letters. */
struct line {
    uint32_t ticket, serving; /* this thread's, and the one whose turn it is */
    uint64_t since_ns;        /* that was first seen */
};

/* From one question to the next: long while one holder has a long turn, and the longer the more of
 * them come before. */
static void rest_in_line(const struct line *line) {
    uint64_t before = (line->ticket - line->serving) / TICKET - 1;
    uint64_t rest_ns = (weft_clock_ns() - line->since_ns) / ASK_SHARE + before * TURN_NS;
    if (rest_ns < YIELD_NS) {
        sched_yield();
        return;
    }
    struct timespec rest = {.tv_nsec = (long)(rest_ns < ASK_NS_MAX ? rest_ns : ASK_NS_MAX)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
}

/* Whether the turn has come. */
static bool ask_for_turn(struct lock *lock, struct line *line) {
    uint32_t serving = far_served(lock);
    if (serving != line->serving || line->since_ns == 0)
        line->since_ns = weft_clock_ns();
    line->serving = serving;
    return serving == line->ticket;
}

static bool ask_for_a_while(struct lock *lock, struct line *line, uint32_t limit_ms) {
    uint64_t until_ns = weft_clock_ns() + limit_ms * UINT64_C(1000000);
    bool came = false;
    while (!came && weft_clock_ns() < until_ns) {
        rest_in_line(line);
        came = ask_for_turn(lock, line);
    }
    return came;
}

static void far_wait_for_turn(struct lock *lock, struct line *line, long *object) {
    struct weft_waiter waiter = {.pe = WEFT_PE_ANY};
    while (!ask_for_a_while(lock, line, weft_waiter_rest_ms(&waiter))) {
        uint32_t serving = line->serving;
        waiter.pe = find_holder(object);
        if (ask_for_turn(lock, line))
            break;
        if (line->serving == serving)
            refuse_own(lock, serving, waiter.pe);
    }
    weft_waiter_end(&waiter);
}

static int far_set(long *object) {
    struct lock *lock = far_lock(object);
    if (!lock)
        return -EFAULT;
    struct line line = {.ticket = ticket_in(far_amo(WEFT_AMO_ADD, &lock->next, TICKET, 0))};
    if (!ask_for_turn(lock, &line))
        far_wait_for_turn(lock, &line, object);
    return acquire(object, lock, line.ticket);
}

static int far_test(long *object) {
    struct lock *lock = far_lock(object);
    if (!lock)
        return -EFAULT;
    uint32_t ticket = far_served(lock);
    if (far_amo(WEFT_AMO_COMPARE_SWAP, &lock->next, ticket + TICKET, ticket) == ticket)
        return acquire(object, lock, ticket);
    tested_in_vain(object);
    return 1;
}

/* Who sleeps on HOME's long is woken there, whatever its turn. */
static void far_release(struct lock *lock) {
    weft_far_amo(WEFT_AMO_ADD, sizeof lock->serving, false, (void *)&lock->serving, TICKET, 0, true,
                 HOME);
}

/* --- The calls -------------------------------------------------------------------------------- */

int weft_lock_set(long *object) {
    struct lock *lock = lock_at(object, HOME);
    if (!lock)
        return far_set(object);
    uint32_t ticket = ticket_in(atomic_fetch_add(&lock->next, TICKET));
    if (served(lock) != ticket)
        wait_for_turn(lock, ticket, object);
    return acquire(object, lock, ticket);
}

/* It is free while the ticket being served has not been taken; then nobody's `held` is set. */
int weft_lock_test(long *object) {
    struct lock *lock = lock_at(object, HOME);
    if (!lock)
        return far_test(object);
    uint32_t ticket = served(lock);
    if (atomic_compare_exchange_strong(&lock->next, &(uint32_t){ticket}, ticket + TICKET))
        return acquire(object, lock, ticket);
    tested_in_vain(object);
    return 1;
}

static void release(struct lock *lock) {
    uint32_t before = atomic_fetch_add(&lock->serving, TICKET);
    uint32_t next_turn = ticket_in(before) + TICKET;
    if ((before & SLEPT_ON) && ticket_in(atomic_load(&lock->next)) != next_turn)
        weft_futex_wake(&lock->serving, bit_of(next_turn));
}

int weft_lock_clear(long *object) {
    struct lock *near = lock_at(object, HOME), *lock = near ? near : far_lock(object);
    if (!lock)
        return -EFAULT;
    if (!atomic_load_explicit(&((struct lock *)object)->held, memory_order_relaxed))
        return -EPERM;
    weft_order_complete();
    hold(object, false);
    if (latest.lock == lock)
        latest.lock = NULL; /* its tickets begin again where it is zeroed */
    if (near)
        release(near);
    else
        far_release(lock);
    return 0;
}
