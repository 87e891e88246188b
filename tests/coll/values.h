/* SPDX-License-Identifier: BSD-3-Clause */
/* Values for tests of reductions: computed from the PE and the index, so that each PE can compute
 * all PEs' values, and different in each order of a fold. */
#ifndef TESTS_COLL_VALUES_H
#define TESTS_COLL_VALUES_H

#include <stdbool.h>
#include <string.h>
#include "coll/number.h"

static inline uint64_t bits_of(int pe, size_t i) {
    uint64_t x = ((uint64_t)pe + 1) * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 31) * 0x94d049bb133111ebu;
    return x ^ x >> 29;
}

/* Returns values of very different magnitudes whose products are finite. */
static inline double value_of(int pe, size_t i) {
    uint64_t x = bits_of(pe, i);
    double fraction = 0.5 + (double)(x >> 40) / (1 << 25);
    double power =
        (double)(1 << (x >> 4 & 15)) / (1 << 8); /* ldexp took half of the time of coll/bits */
    return x & 1 ? -fraction * power : fraction * power;
}

/* The elements of one number of `at`. */
#define FILL(T)                            \
    for (size_t i = 0; i < nelems; i++)    \
        ((T *)at)[i] = (T)value_of(pe, i); \
    break

/* Compares only those bytes of a long double that are part of the number. */
static inline bool same(enum weft_number number, const char *a, const char *b, size_t bytes) {
    if (number != WEFT_NUMBER_LONGDOUBLE)
        return memcmp(a, b, bytes) == 0;
    for (size_t i = 0; i < bytes / sizeof(long double); i++)
        if (((const long double *)a)[i] != ((const long double *)b)[i])
            return false;
    return true;
}

#endif
