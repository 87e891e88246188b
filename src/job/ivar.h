/* SPDX-License-Identifier: BSD-3-Clause */
/* The words that users wait on and test: loaded whole, compared by the type's order.
 *
 * A word becomes a key: shifted to the top of 64 bits, with the sign bit turned for signed types.
 * Keys of one type compare as unsigned numbers, so there is one comparison for all types. The load
 * acquires: what the writer ordered before the word is visible to who has seen it. */
#ifndef WEFT_JOB_IVAR_H
#define WEFT_JOB_IVAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shmem.h>
#include "base/alias.h"

struct weft_ivar_type {
    size_t bytes; /* 2, 4 or 8 */
    bool is_signed;
};

static inline uint64_t weft_ivar_key(struct weft_ivar_type type, const void *word) {
    uint64_t sign = (uint64_t)type.is_signed << 63;
    if (type.bytes == 8)
        return __atomic_load_n((const weft_alias64 *)word, __ATOMIC_ACQUIRE) ^ sign;
    if (type.bytes == 4)
        return (uint64_t)__atomic_load_n((const weft_alias32 *)word, __ATOMIC_ACQUIRE) << 32 ^ sign;
    return (uint64_t)__atomic_load_n((const weft_alias16 *)word, __ATOMIC_ACQUIRE) << 48 ^ sign;
}

/* `cmp` is one of SHMEM_CMP_*. */
static inline bool weft_ivar_compare(uint64_t key, int cmp, uint64_t bound) {
    switch (cmp) {
    case SHMEM_CMP_EQ:
        return key == bound;
    case SHMEM_CMP_NE:
        return key != bound;
    case SHMEM_CMP_GT:
        return key > bound;
    case SHMEM_CMP_GE:
        return key >= bound;
    case SHMEM_CMP_LT:
        return key < bound;
    default:
        return key <= bound;
    }
}

/* A wait set. */
struct weft_ivars {
    struct weft_ivar_type type;
    const void *ivars;
    size_t nelems;
    const int *status;      /* NULL, or non-zero where an element does not count */
    const void *cmp_values; /* one for all, or one for each where `vector` */
    bool vector;
    int cmp;
};

/* Whether element i meets its condition. Does not look at status. */
bool weft_ivars_met(const struct weft_ivars *set, size_t i);

/* Whether no element counts. */
bool weft_ivars_empty(const struct weft_ivars *set);

/* Whether all elements that count meet their conditions. */
bool weft_ivars_all(const struct weft_ivars *set);

/* An element that counts and meets its condition, SIZE_MAX when there is none. Successive calls
 * start looking at different places, so that in time every such element is given. */
size_t weft_ivars_any(const struct weft_ivars *set);

/* All of them: their indices, and how many. */
size_t weft_ivars_some(const struct weft_ivars *set, size_t *indices);

#endif
