/* SPDX-License-Identifier: BSD-3-Clause */
/* Polling loops of programs: a flag that is fetched again and again until it changes.
 *
 * If PEs share processors, such a loop keeps the processor from the PE that would change the flag
 * until the end of a time slice. So in oversubscribed jobs every call that fetches a word reports
 * the value here. A thread that fetches the same value again and again yields its processor. */
#ifndef WEFT_JOB_POLL_H
#define WEFT_JOB_POLL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "job/job.h"

enum { WEFT_POLL_WORDS = 16 };

/* The last fetch of each word: a hash of address and value, indexed by some bits of the address.
 * Threads share the table; a lost update does no harm. */
extern _Atomic uint64_t weft_poll_seen[WEFT_POLL_WORDS];

/* Returns the hash of a word's address, PE and value. */
static inline uint64_t weft_poll_number(const void *word, int pe, uint64_t value) {
    return (uintptr_t)word ^ (uint64_t)pe << 48 ^ value * UINT64_C(0x9E3779B97F4A7C15);
}

/* Returns whether the previous fetch of this word gave this value, too. */
static inline bool weft_poll_repeats(const void *word, uint64_t number) {
    _Atomic uint64_t *seen = &weft_poll_seen[(uintptr_t)word / 4 % WEFT_POLL_WORDS];
    if (atomic_load_explicit(seen, memory_order_relaxed) == number)
        return true;
    atomic_store_explicit(seen, number, memory_order_relaxed);
    return false;
}

/* Counts a fetch without change; may then yield. Returns `value`, so that a fetch can end with
 * this call. */
__attribute__((cold, noinline)) uint64_t weft_poll_again(uint64_t value, const char *call);

/* Reports that the program has fetched `value` from the word on `pe`. Returns `value`. */
static inline uint64_t weft_poll_look(const void *word, int pe, uint64_t value, const char *call) {
    uint64_t number = weft_poll_number(word, pe, value);
    return weft_poll_repeats(word, number) ? weft_poll_again(value, call) : value;
}

/* Reports a finished fetch: `bytes` of the word on `pe` are now at `fetched`, in host memory. */
static inline void weft_poll_fetched(const void *word, const void *fetched, size_t bytes, int pe,
                                     const char *call) {
    uint64_t value = 0;
    if (__builtin_expect(!weft_job.oversubscribed, 1) || bytes == 0 || bytes > sizeof value)
        return;
    if (bytes == sizeof value) /* the most frequent case: a copy of a constant size */
        memcpy(&value, fetched, sizeof value);
    else
        memcpy(&value, fetched, bytes);
    weft_poll_look(word, pe, value, call);
}

#endif
