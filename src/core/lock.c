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
#include <stdio.h>
#include <shmem.h>
#include "base/futex.h"
#include "core/awaited.h"
#include "core/init.h"
#include "core/order.h"
#include "core/team.h"

enum {
    HOME = 0,          /* whose long is the lock */
    LOOK_TIMES = 1024, /* tests in vain from one look at the holder to the next */
    ASK_TIMES = 64,    /* that a far PE asks before it sleeps: some 12 us each */
};

#define SLEPT_ON  UINT32_C(1)
#define FAR_SLEEP UINT32_C(2)
#define TICKET    UINT32_C(256) /* from one ticket to the next; they wrap around */

/* Of a PE other than HOME only `held` counts. */
struct lock {
    _Atomic uint32_t serving; /* and SLEPT_ON, FAR_SLEEP */
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

/* HOME's by the name that it has for messages, where HOME is far; NULL: it is no symmetric long. */
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
    uint32_t before;
    struct weft_amo amo = {op, sizeof *word, (void *)word, value, cond, &before};
    weft_far_amo(&amo, false, HOME);
    return before;
}

/* What threads that are far from HOME sleep on, of a near PE. */
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

/* FAR_SLEEP has been cleared: who sets it anew has looked at its bell before that rings. */
static void ring_all(void) {
    for (int pe = 0; pe < weft_job.npes; pe++)
        if (pe != HOME)
            ring(pe);
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

/* --- What a wait for the lock says of it ------------------------------------------------------ */

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

/* Sleeps until the bell rings, or for some time, and then looks for the holder; the ticket that is
 * served then. The bell is read first: who releases the lock sees the bit and rings, or it has
 * added its ticket before. */
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

/* Who sleeps on HOME's long is woken there, whatever its turn. */
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
        latest.lock = NULL; /* its tickets begin again where it is zeroed */
    if (near)
        release(near);
    else
        far_release(lock);
    return 0;
}
