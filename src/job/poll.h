/* SPDX-License-Identifier: BSD-3-Clause */
/* Polling loops of programs: a flag that is fetched again and again until it changes.
 *
 * Where PEs share processors, such a loop keeps one from the PE that would change the flag, up to
 * the end of its time slice. So calls that fetch a word tell it here, in crowded jobs only, and a
 * word that gives the same value again and again has the processor given away. */
#ifndef WEFT_JOB_POLL_H
#define WEFT_JOB_POLL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "job/job.h"

enum { WEFT_POLL_WORDS = 16 };

/* What was seen last, word and value in one number, by some bits of the address. Threads share it:
 * a look that is lost does no harm. */
extern _Atomic uint64_t weft_poll_seen[WEFT_POLL_WORDS];

/* A word and its value as one number. */
static inline uint64_t weft_poll_number(const void *word, int pe, uint64_t value) {
    return (uintptr_t)word ^ (uint64_t)pe << 48 ^ value * UINT64_C(0x9E3779B97F4A7C15);
}

/* Whether the word gave this value the last time, too. */
static inline bool weft_poll_repeats(const void *word, uint64_t number) {
    _Atomic uint64_t *seen = &weft_poll_seen[(uintptr_t)word / 4 % WEFT_POLL_WORDS];
    if (atomic_load_explicit(seen, memory_order_relaxed) == number)
        return true;
    atomic_store_explicit(seen, number, memory_order_relaxed);
    return false;
}

/* A look in vain. Gives `value` back, so that a fetch can end with it. */
__attribute__((cold, noinline)) uint64_t weft_poll_again(uint64_t value, const char *call);

/* The program has looked at the word on `pe` and seen `value`, which this gives back. */
static inline uint64_t weft_poll_look(const void *word, int pe, uint64_t value, const char *call) {
    uint64_t number = weft_poll_number(word, pe, value);
    return weft_poll_repeats(word, number) ? weft_poll_again(value, call) : value;
}

/* Behind a fetch: `bytes` of the word on `pe` are at `fetched` now, in the memory of the host. */
static inline void weft_poll_fetched(const void *word, const void *fetched, size_t bytes, int pe,
                                     const char *call) {
    uint64_t value = 0;
    if (__builtin_expect(!weft_job.oversubscribed, 1) || bytes == 0 || bytes > sizeof value)
        return;
    if (bytes == sizeof value) /* a copy of a constant size, for most of them */
        memcpy(&value, fetched, sizeof value);
    else
        memcpy(&value, fetched, bytes);
    weft_poll_look(word, pe, value, call);
}

#endif
