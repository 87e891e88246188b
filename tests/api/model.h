/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers that every PE can compute for every other PE, so that a target knows its writer's
 * choices, and data made from them. */
#ifndef TESTS_API_MODEL_H
#define TESTS_API_MODEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct random {
    uint64_t state;
};

/* Equal seeds and PEs give equal numbers everywhere. */
static inline struct random random_of(uint64_t seed, int pe) {
    return (struct random){seed * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)pe + 1};
}

static inline uint64_t random_next(struct random *random) {
    uint64_t z = random->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static inline size_t random_below(struct random *random, size_t limit) {
    return (size_t)(random_next(random) % limit);
}

static inline void random_fill(struct random *random, void *data, size_t bytes) {
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word = random_next(random);
        memcpy((char *)data + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word);
    }
}

#endif
