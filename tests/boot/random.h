/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers, the same in every run; WEFT_TEST_SEED changes them. */
#ifndef TESTS_BOOT_RANDOM_H
#define TESTS_BOOT_RANDOM_H

#include <stdint.h>
#include <stdlib.h>

static inline uint32_t random_number(uint32_t below) {
    static uint64_t state;
    const char *seed = state ? NULL : getenv("WEFT_TEST_SEED");
    if (!state)
        state = 88172645463325252u + (seed ? strtoull(seed, NULL, 0) : 0);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16) % below;
}

#endif
