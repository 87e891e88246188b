/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping on a word, also across processes. A process that changes the word wakes the sleepers
 * afterwards. Every sleep has a limit, because the waker may die in between. */
#ifndef WEFT_BASE_FUTEX_H
#define WEFT_BASE_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/clock.h"

#define WEFT_FUTEX_ALL UINT32_C(0xffffffff)

/* Sleeps while the word is still `seen`: until a wake with a common bit, or until the limit; may
 * also return early for no reason. The kernel takes the limit of this operation as an absolute
 * time. */
static inline void weft_futex_sleep_ns(_Atomic uint32_t *word, uint32_t seen, uint32_t bits,
                                       uint64_t limit_ns) {
    uint64_t until_ns = weft_clock_ns() + limit_ns;
    struct timespec limit = {.tv_sec = (time_t)(until_ns / 1000000000u),
                             .tv_nsec = (long)(until_ns % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET, seen, &limit, NULL, bits);
}

static inline void weft_futex_sleep(_Atomic uint32_t *word, uint32_t seen, uint32_t bits,
                                    uint32_t limit_ms) {
    weft_futex_sleep_ns(word, seen, bits, limit_ms * UINT64_C(1000000));
}

static inline void weft_futex_wake(_Atomic uint32_t *word, uint32_t bits) {
    syscall(SYS_futex, word, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, bits);
}

#endif
