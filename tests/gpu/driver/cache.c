/* SPDX-License-Identifier: BSD-3-Clause */
#include "cache.h"
#include <stddef.h>

static uintptr_t slot_of(const char *at) {
    return (uintptr_t)at / 8 % CACHE_WORDS;
}

uint64_t cache_acquire(struct cache *cache) {
    return ++cache->now;
}

bool cache_find(const struct cache *cache, const char *at, unsigned bytes, uint64_t since,
                uint64_t *value) {
    const struct cache_word *word = &cache->words[slot_of(at)];
    if (word->at != at || word->bytes != bytes || word->since < since)
        return false;
    *value = word->value;
    return true;
}

void cache_keep(struct cache *cache, const char *at, unsigned bytes, uint64_t value) {
    cache->words[slot_of(at)] = (struct cache_word){at, bytes, value, cache->now};
}

void cache_forget(struct cache *cache, const char *at) {
    cache->words[slot_of(at)].at = NULL;
}
