/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash FNV-1a (Fowler, Noll and Vo): distinguishes values, but gives no protection from an
 * attacker. */
#ifndef WEFT_BASE_HASH_H
#define WEFT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define WEFT_HASH_BASIS UINT64_C(0xcbf29ce484222325)

/* Returns the hash of the bytes hashed into `so_far` followed by these. */
static inline uint64_t weft_hash(uint64_t so_far, const void *bytes, size_t nbytes) {
    for (const unsigned char *p = bytes; nbytes--; p++)
        so_far = (so_far ^ *p) * UINT64_C(0x100000001b3);
    return so_far;
}

#endif
