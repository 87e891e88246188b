/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleepers leave a bit in the word that they sleep on, and each sleeps under a bit of its ticket,
 * so that a release wakes the next in line and hardly anyone else. The bit stays: whether others
 * sleep is not known, and a release that nobody waits for makes no system call anyway. */
#include "core/lock.h"
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/job.h"
#include "core/order.h"
#include "core/wait.h"
#include "core/window.h"

enum { HOME = 0 }; /* whose long is the lock */

#define SLEPT_ON UINT32_C(1)
#define TICKET   UINT32_C(2) /* from one ticket to the next; they wrap around */

struct lock {
    _Atomic uint32_t serving; /* and SLEPT_ON */
    _Atomic uint32_t next;
};
_Static_assert(sizeof(struct lock) == sizeof(long), "a lock is the user's long");

static struct lock *at_home(long *lock) {
    return weft_near(lock, sizeof *lock, HOME);
}

static uint32_t ticket_in(uint32_t serving) {
    return serving & ~SLEPT_ON;
}

static uint32_t served(struct lock *lock) {
    return ticket_in(atomic_load_explicit(&lock->serving, memory_order_acquire));
}

/* Tickets in line sleep under different bits, up to 32 of them. */
static uint32_t bit_of(uint32_t ticket) {
    return UINT32_C(1) << (ticket / TICKET % 32);
}

static void wait_for_turn(struct lock *lock, uint32_t ticket, const char *call) {
    struct weft_waiter waiter = {.call = call, .pe = -1};
    while (served(lock) != ticket) {
        if (weft_waiter_awake(&waiter))
            continue;
        uint32_t seen = atomic_fetch_or(&lock->serving, SLEPT_ON) | SLEPT_ON;
        if (ticket_in(seen) != ticket)
            weft_futex_sleep(&lock->serving, seen, bit_of(ticket));
    }
}

int weft_lock_set(long *object, const char *call) {
    struct lock *lock = at_home(object);
    if (!lock)
        return -EFAULT;
    uint32_t ticket = atomic_fetch_add(&lock->next, TICKET);
    if (served(lock) != ticket)
        wait_for_turn(lock, ticket, call);
    return 0;
}

/* It is free while the ticket being served has not been taken. Programs test in loops: there a job
 * that is over has to be noticed, and a holder that needs this processor must get it. */
int weft_lock_test(long *object, const char *call) {
    struct lock *lock = at_home(object);
    if (!lock)
        return -EFAULT;
    uint32_t ticket = served(lock);
    if (atomic_compare_exchange_strong(&lock->next, &(uint32_t){ticket}, ticket + TICKET))
        return 0;
    if (weft_job_aborted())
        weft_job_die_aborted(call);
    if (weft_job.oversubscribed)
        sched_yield();
    return 1;
}

int weft_lock_clear(long *object) {
    struct lock *lock = at_home(object);
    if (!lock)
        return -EFAULT;
    uint32_t mine = served(lock); /* nobody but the holder changes it */
    if (mine == atomic_load(&lock->next))
        return -EPERM;
    weft_quiet();
    uint32_t before = atomic_fetch_add(&lock->serving, TICKET), next_turn = mine + TICKET;
    if ((before & SLEPT_ON) && atomic_load(&lock->next) != next_turn)
        weft_futex_wake(&lock->serving, bit_of(next_turn));
    return 0;
}
