/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers at random, the same in every run. */
#ifndef TESTS_BOOT_RANDOM_H
#define TESTS_BOOT_RANDOM_H

#include <stdint.h>

static inline uint32_t random_number(uint32_t below) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16) % below;
}

#endif
