/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs of words that are incremented by plain get and put; only a lock makes that correct. */
#include "execute.h"

static long static_lock, *locks[LOCKS];

void execute_open(void) {
    long *heap = shmem_calloc(LOCKS - 1, sizeof *heap);
    for (int lock = 0; lock < LOCKS; lock++)
        locks[lock] = lock == 0 ? &static_lock : &heap[lock - 1];
}

/* The first word is accessed by the routines for one element, the account as bytes. */
static void grow(const struct op *op) {
    uint64_t *word = memory_real(op->remote), account;
    shmem_uint64_p(word, shmem_uint64_g(word, op->target) + op->value, op->target);
    shmem_getmem(&account, word + 1, sizeof account, op->target);
    account += op->value / 2;
    shmem_putmem(word + 1, &account, sizeof account, op->target);
}

static void grow_locked(const struct op *op) {
    long *lock = locks[op->team];
    if (op->verb == LOCK_SET)
        shmem_set_lock(lock);
    else
        while (shmem_test_lock(lock))
            ;
    grow(op);
    late_deliver(0, everybody());
    shmem_clear_lock(lock);
    landing_quiet(0, everybody());
}

void execute_lock(const struct op *op) {
    if (op->nblocks > 1)
        shmem_sync_all();
    for (uint32_t times = 0; times < op->nblocks; times++)
        grow_locked(op);
}
