/* SPDX-License-Identifier: BSD-3-Clause */
/* The words that users wait on and test: each is loaded whole and compared in the order of its
 * type.
 *
 * A word becomes a key: shifted to the top of 64 bits, with the sign bit flipped for signed
 * types. Keys of one type compare as unsigned numbers, so there is one comparison for all types.
 * The load acquires: once a thread has seen the word, it also sees everything the writer ordered
 * before it. */
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

/* The arguments of a wait or test. */
struct weft_ivars {
    struct weft_ivar_type type;
    const void *ivars;
    size_t nelems;
    const int *status;      /* NULL, or non-zero for each element to ignore */
    const void *cmp_values; /* one value for all elements, or one for each if `vector` */
    bool vector;
    int cmp;
};

/* Returns whether element i meets its condition, whatever its status. */
bool weft_ivars_met(const struct weft_ivars *set, size_t i);

/* Returns whether status excludes all elements. */
bool weft_ivars_empty(const struct weft_ivars *set);

/* Returns whether all elements that status does not exclude meet their conditions. */
bool weft_ivars_all(const struct weft_ivars *set);

/* Returns the index of an element that meets its condition and is not excluded by status, or
 * SIZE_MAX if there is none. Each call starts at a different element, so that in time every such
 * element is returned. */
size_t weft_ivars_any(const struct weft_ivars *set);

/* Writes the indices of all such elements to `indices` and returns their number. */
size_t weft_ivars_some(const struct weft_ivars *set, size_t *indices);

#endif
