/* SPDX-License-Identifier: BSD-3-Clause */
/* Data that threads of a multiprocessor, of two blocks, have loaded weakly: until an acquire they
 * may find the old content again, whatever memory contains meanwhile. A barrier of the block is an
 * acquire for all of its threads if it is for one of them.
 *
 * A kernel must store such data by the functions of base/gpu.cuh, because the cache does not notice
 * other stores. */
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

/* Acquires. Returns the time from which the thread may reuse loaded data. */
uint64_t cache_acquire(struct cache *cache);

/* Returns whether these bytes have been loaded since then. */
bool cache_find(const struct cache *cache, const char *at, unsigned bytes, uint64_t since,
                uint64_t *value);

void cache_keep(struct cache *cache, const char *at, unsigned bytes, uint64_t value);

/* Removes data from the cache that the block stores, or loads from memory itself. */
void cache_forget(struct cache *cache, const char *at);

#endif
