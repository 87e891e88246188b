/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers for the tests of this room: numbers drawn from a seed, bytes that identify their writer,
 * and the number of rounds. */
#ifndef TESTS_FAR_DRAW_H
#define TESTS_FAR_DRAW_H

#include <shmem.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include "tap.h"

static inline uint64_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Returns ten times as many rounds in the long form. */
static inline int rounds(int few) {
    return getenv("WEFT_TEST_LONG") ? 10 * few : few;
}

/* Draws a size from 1 B to `most`, all magnitudes equally likely. */
static inline size_t draw_size(uint64_t *state, size_t most) {
    size_t limit = (size_t)1 << draw(state) % 21;
    size_t bytes = 1 + draw(state) % limit;
    return bytes < most ? bytes : most;
}

static inline unsigned char byte_of(uint64_t key, size_t i) {
    return (unsigned char)((key * 2654435761u + i * 40503u) >> 8);
}

static inline void fill(unsigned char *bytes, size_t n, uint64_t key) {
    for (size_t i = 0; i < n; i++)
        bytes[i] = byte_of(key, i);
}

/* Returns the first index at which the bytes differ from those of `fill`, or n. */
static inline size_t differs(const unsigned char *bytes, size_t n, uint64_t key) {
    size_t i = 0;
    while (i < n && bytes[i] == byte_of(key, i))
        i++;
    return i;
}

#endif
