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
#include <shmem.h>
#include "base/futex.h"
#include "core/init.h"
#include "core/order.h"
#include "core/wait.h"

enum {
    HOME = 0,          /* whose long is the lock */
    LOOK_TIMES = 1024, /* tests in vain from one look at the holder to the next */
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

static struct lock *lock_at(long *lock, int pe) {
    return weft_near(lock, sizeof *lock, pe);
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

/* Tickets in line sleep under different bits, up to 32 of them. */
static uint32_t bit_of(uint32_t ticket) {
    return UINT32_C(1) << (ticket / TICKET % 32);
}

/* The PE that has the lock, or WEFT_PE_ANY where that has just changed. Who has departed with it
 * never clears it. */
static int find_holder(long *object) {
    for (int pe = 0; pe < weft_job.npes; pe++) {
        bool departed = weft_pe_departed(pe); /* first: all that it did is visible then */
        struct lock *theirs = lock_at(object, pe);
        assert(theirs);
        if (!atomic_load(&theirs->held))
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

int weft_lock_set(long *object) {
    struct lock *lock = lock_at(object, HOME);
    if (!lock)
        return -EFAULT;
    uint32_t ticket = ticket_in(atomic_fetch_add(&lock->next, TICKET));
    if (served(lock) != ticket)
        wait_for_turn(lock, ticket, object);
    return acquire(object, lock, ticket);
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

/* It is free while the ticket being served has not been taken; then nobody's `held` is set. */
int weft_lock_test(long *object) {
    struct lock *lock = lock_at(object, HOME);
    if (!lock)
        return -EFAULT;
    uint32_t ticket = served(lock);
    if (atomic_compare_exchange_strong(&lock->next, &(uint32_t){ticket}, ticket + TICKET))
        return acquire(object, lock, ticket);
    tested_in_vain(object);
    return 1;
}

int weft_lock_clear(long *object) {
    struct lock *lock = lock_at(object, HOME);
    if (!lock)
        return -EFAULT;
    if (!atomic_load_explicit(&((struct lock *)object)->held, memory_order_relaxed))
        return -EPERM;
    weft_order_quiet();
    hold(object, false);
    if (latest.lock == lock)
        latest.lock = NULL; /* its tickets begin again where it is zeroed */
    uint32_t before = atomic_fetch_add(&lock->serving, TICKET);
    uint32_t next_turn = ticket_in(before) + TICKET;
    if ((before & SLEPT_ON) && ticket_in(atomic_load(&lock->next)) != next_turn)
        weft_futex_wake(&lock->serving, bit_of(next_turn));
    return 0;
}
