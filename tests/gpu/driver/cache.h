/* SPDX-License-Identifier: BSD-3-Clause */
/* What threads of a multiprocessor, of two blocks, have loaded weakly: they may find it again,
 * whatever memory has got meanwhile, until an acquire. A barrier of the block is one for all if it
 * was for one of them.
 *
 * What a kernel loads weakly it stores by the functions of base/gpu.cuh, too: the cache does not
 * notice other stores. */
#ifndef TESTS_GPU_DRIVER_CACHE_H
#define TESTS_GPU_DRIVER_CACHE_H

#include <stdbool.h>
#include <stdint.h>

enum { CACHE_WORDS = 256 };

struct cache {
    uint64_t now; /* acquires, of all threads */
    struct cache_word {
        const char *at;
        unsigned bytes;
        uint64_t value, since;
    } words[CACHE_WORDS];
};

/* Acquires: the result is from when on the thread may find again what has been loaded. */
uint64_t cache_acquire(struct cache *cache);

/* Whether these bytes have been loaded since then. */
bool cache_find(const struct cache *cache, const char *at, unsigned bytes, uint64_t since,
                uint64_t *value);

void cache_keep(struct cache *cache, const char *at, unsigned bytes, uint64_t value);

/* What the block stores, or loads from memory itself, is not to be found as it was. */
void cache_forget(struct cache *cache, const char *at);

#endif
