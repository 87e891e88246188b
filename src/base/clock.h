/* SPDX-License-Identifier: BSD-3-Clause */
/* The monotonic clock, and sleeping by it. */
#ifndef WEFT_BASE_CLOCK_H
#define WEFT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define WEFT_NS_PER_MS UINT64_C(1000000)

static inline uint64_t weft_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline int64_t weft_clock_ms(void) {
    return (int64_t)(weft_clock_ns() / WEFT_NS_PER_MS);
}

static inline void weft_clock_sleep_ms(long milliseconds) {
    struct timespec rest = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&rest, NULL);
}

#endif
