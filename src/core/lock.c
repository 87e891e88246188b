/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleepers set a bit in the word on which they sleep, and each sleeps under a futex bit of its
 * ticket, so that a release wakes the next in line and hardly any other. The bit in the word is
 * never cleared: a release does not know whether others sleep, and one without waiters makes no
 * system call anyway. */
#include "core/lock.h"
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <shmem.h>
#include "base/futex.h"
#include "core/awaited.h"
#include "core/init.h"
#include "core/order.h"
#include "core/team.h"

enum {
    HOME = 0,          /* the PE whose long is the lock */
    LOOK_TIMES = 1024, /* failed tests between two checks of the holder */
    ASK_TIMES = 64,    /* requests of a far PE before it sleeps, about 12 us each */
};

#define SLEPT_ON  UINT32_C(1)
#define FAR_SLEEP UINT32_C(2)
#define TICKET    UINT32_C(256) /* the distance of two tickets; they wrap around */

/* In a PE other than HOME only `held` is used. */
struct lock {
    _Atomic uint32_t serving; /* with SLEPT_ON and FAR_SLEEP */
    union {
        _Atomic uint32_t next;
        _Atomic uint8_t held; /* by this long's PE; below the ticket */
    };
};
_Static_assert(sizeof(struct lock) == sizeof(long), "a lock is the user's long");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "`held` is below the ticket");

/* Returns pe's copy of the lock, or NULL if `lock` is not a symmetric long or the PE is far. */
static struct lock *lock_at(long *lock, int pe) {
    return weft_near(lock, sizeof *lock, pe);
}

/* Returns the address that messages use for the lock on HOME, which is far, or NULL if `lock` is
 * not a symmetric long. */
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

/* Performs an atomic on a half of HOME's long; returns the old value. */
static uint32_t far_amo(enum weft_amo_op op, _Atomic uint32_t *word, uint32_t value,
                        uint32_t cond) {
    uint32_t before;
    struct weft_amo amo = {op, sizeof *word, (void *)word, value, cond, &before};
    weft_far_amo(&amo, false, HOME);
    return before;
}

/* Returns the word on which a near PE's threads sleep if they are far from HOME. */
static _Atomic uint32_t *bell_of(int pe) {
    return &weft_team_words_of(weft_team_find(SHMEM_TEAM_WORLD), pe)->lock_bell;
}

static void ring(int pe) {
    void *name = (void *)bell_of(weft_job.pe);
    if (weft_is_far(pe)) {
        struct weft_amo add = {WEFT_AMO_ADD, sizeof(uint32_t), name, .value = 1};
        weft_far_amo(&add, true, pe);
        return;
    }
    atomic_fetch_add(bell_of(pe), 1);
    weft_futex_wake(bell_of(pe), WEFT_FUTEX_ALL);
}

/* Rings all bells after FAR_SLEEP was cleared: a PE that sets it again has read its bell before it
 * rings. */
static void ring_all(void) {
    for (int pe = 0; pe < weft_job.npes; pe++)
        if (pe != HOME)
            ring(pe);
}

static uint32_t far_served(struct lock *lock) {
    return ticket_in(far_amo(WEFT_AMO_FETCH, &lock->serving, 0, 0));
}

/* Returns the futex bit of a ticket. Up to 32 tickets in a row have different bits. */
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

/* Returns the PE that holds the lock, or WEFT_PE_ANY if the holder is just changing. Ends the job
 * if the holder has departed, since it would never clear the lock. */
static int find_holder(long *object) {
    for (int pe = 0; pe < weft_job.npes; pe++) {
        bool departed = weft_pe_departed(pe); /* first: all that it did is visible then */
        if (!is_held_by(object, pe))
            continue;
        if (departed)
            weft_job_panic_bare(
                "%s waits for PE %d, which holds the lock and has finalized (returned from main, "
                "called exit or shmem_finalize): clear it before finalizing",
                weft_current_call, pe);
        return pe;
    }
    return WEFT_PE_ANY;
}

/* The lock that this thread set last, and its ticket: the thread holds the lock while that ticket
 * is served. */
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

/* Ends the job if this PE waits for itself. Below SHMEM_THREAD_SERIALIZED it has no other thread
 * that could clear the lock. */
static void refuse_own(const struct lock *lock, uint32_t serving, int holder) {
    bool this_thread = latest.lock == lock && latest.ticket == serving;
    bool other_barred = weft_thread_level() < SHMEM_THREAD_SERIALIZED;
    if (holder == weft_job.pe && (this_thread || other_barred))
        weft_job_panic("%s holds this lock already, and would wait for itself: locks do not nest; "
                       "clear it before it is set again",
                       this_thread ? "this thread" : "this PE");
}

/* --- The description of a wait for a lock ---------------------------------------------------- */

struct awaited_turn {
    struct weft_awaited awaited;
    const long *object;
    uint32_t serving, ticket;
};

static void write_turn(const struct weft_awaited *awaited, char *text, size_t bytes) {
    const struct awaited_turn *turn = (const struct awaited_turn *)awaited;
    char object[WEFT_AWAITED_OBJECT_BYTES];
    weft_awaited_write_object(turn->object, object, sizeof object);
    snprintf(text, bytes, "%s serves ticket %u, waits for %u", object, turn->serving / TICKET,
             turn->ticket / TICKET);
}

static void wait_for_turn(struct lock *lock, uint32_t ticket, long *object) {
    struct awaited_turn turn = {{write_turn}, object, 0, ticket};
    struct weft_waiter waiter = {.pe = WEFT_PE_ANY, .awaited = &turn.awaited};
    uint32_t serving;
    while ((turn.serving = serving = served(lock)) != ticket) {
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

/* Programs test in loops. In such a loop the end of the job must be noticed, from time to time also
 * a holder that has departed, and a holder that needs this processor must get it. */
static void tested_in_vain(long *object) {
    static _Thread_local unsigned times;
    if (weft_job_aborted())
        weft_job_die_aborted();
    if (++times % LOOK_TIMES == 0)
        find_holder(object);
    if (weft_job.oversubscribed)
        sched_yield();
}

/* --- HOME is far ----------------------------------------------------------------------------- */

/* Sleeps until the bell rings or for some time; checks the holder if the bell has not rung. Returns
 * the ticket that is served afterwards. The bell is read before the bit is set: a release either
 * sees the bit and rings, or has advanced the ticket before. */
static uint32_t far_sleep(struct lock *lock, uint32_t ticket, struct weft_waiter *waiter,
                          long *object) {
    _Atomic uint32_t *bell = bell_of(weft_job.pe);
    uint32_t rung = atomic_load(bell);
    uint32_t serving = ticket_in(far_amo(WEFT_AMO_OR, &lock->serving, FAR_SLEEP, 0));
    if (serving == ticket)
        return serving;
    weft_futex_sleep(bell, rung, WEFT_FUTEX_ALL, weft_waiter_rest_ms(waiter));
    if (atomic_load(bell) != rung)
        return far_served(lock);
    waiter->pe = find_holder(object);
    uint32_t now = far_served(lock);
    if (now == serving)
        refuse_own(lock, serving, waiter->pe);
    return now;
}

static void far_wait_for_turn(struct lock *lock, uint32_t ticket, long *object) {
    struct awaited_turn turn = {{write_turn}, object, 0, ticket};
    struct weft_waiter waiter = {.pe = WEFT_PE_ANY, .awaited = &turn.awaited};
    for (int asked = 0; asked < ASK_TIMES; asked++) {
        if (far_served(lock) == ticket)
            return;
        sched_yield();
    }
    do
        turn.serving = far_sleep(lock, ticket, &waiter, object);
    while (turn.serving != ticket);
    weft_waiter_end(&waiter);
}

static int far_set(long *object) {
    struct lock *lock = far_lock(object);
    if (!lock)
        return -EFAULT;
    uint32_t ticket = ticket_in(far_amo(WEFT_AMO_ADD, &lock->next, TICKET, 0));
    far_wait_for_turn(lock, ticket, object);
    return acquire(object, lock, ticket);
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

/* Wakes the threads that sleep on HOME's long, whatever their turn. */
static void far_release(struct lock *lock) {
    uint32_t before;
    struct weft_amo add = {WEFT_AMO_ADD, sizeof before, (void *)&lock->serving, TICKET,
                           .fetch = &before};
    weft_far_amo(&add, true, HOME);
    if (before & FAR_SLEEP) {
        far_amo(WEFT_AMO_AND, &lock->serving, ~FAR_SLEEP, 0);
        ring_all();
    }
}

/* --- The calls ------------------------------------------------------------------------------- */

int weft_lock_set(long *object) {
    struct lock *lock = lock_at(object, HOME);
    if (!lock)
        return far_set(object);
    uint32_t ticket = ticket_in(atomic_fetch_add(&lock->next, TICKET));
    if (served(lock) != ticket)
        wait_for_turn(lock, ticket, object);
    return acquire(object, lock, ticket);
}

/* The lock is free while the ticket being served has not been taken; no PE's `held` is set then. */
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
    if (__builtin_expect(before & FAR_SLEEP, 0)) {
        atomic_fetch_and(&lock->serving, ~FAR_SLEEP);
        ring_all();
    }
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
        latest.lock = NULL; /* if the program zeroes the lock, its tickets start again */
    if (near)
        release(near);
    else
        far_release(lock);
    return 0;
}
