/* SPDX-License-Identifier: BSD-3-Clause */
#include "buffer.h"
#include <string.h>

size_t buffer_draw(uint64_t *random, size_t limit) {
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (size_t)(*random >> 33) % limit;
}

static bool in_one_word(const char *at, const char *other) {
    return (uintptr_t)at / 8 == (uintptr_t)other / 8;
}

static bool sees(int thread, const struct buffer_store *store) {
    if (thread == BUFFER_PROXY)
        return store->proxied;
    return store->thread == thread || store->thread == BUFFER_ALL ||
           store->thread == BUFFER_WARP(thread / BUFFER_LANES);
}

static void write_word(const struct buffer_store *store) {
    if (store->bytes == 8)
        __atomic_store_n((uint64_t *)store->at, store->value, __ATOMIC_RELEASE);
    else if (store->bytes == 4)
        __atomic_store_n((uint32_t *)store->at, (uint32_t)store->value, __ATOMIC_RELEASE);
    else if (store->bytes == 2)
        __atomic_store_n((uint16_t *)store->at, (uint16_t)store->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint8_t *)store->at, (uint8_t)store->value, __ATOMIC_RELEASE);
}

static uint64_t read_word(const char *at, unsigned bytes) {
    if (bytes == 8)
        return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
    if (bytes == 4)
        return __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
    if (bytes == 2)
        return __atomic_load_n((const uint16_t *)at, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint8_t *)at, __ATOMIC_ACQUIRE);
}

/* The oldest store to that word arrives, which may be another one. */
static void arrive(struct buffer *buffer, unsigned i) {
    unsigned first = 0;
    while (!in_one_word(buffer->stores[first].at, buffer->stores[i].at))
        first++;
    write_word(&buffer->stores[first]);
    struct buffer_store *place = &buffer->stores[first];
    memmove(place, place + 1, (--buffer->n - first) * sizeof *place);
}

void buffer_add(struct buffer *buffer, struct buffer_store store) {
    if (buffer->n == BUFFER_STORES)
        arrive(buffer, (unsigned)buffer_draw(buffer->random, buffer->n));
    buffer->stores[buffer->n++] = store;
}

uint64_t buffer_load(const struct buffer *buffer, const char *at, unsigned bytes, int thread) {
    uint64_t value = read_word(at, bytes);
    for (unsigned i = 0; i < buffer->n; i++) {
        const struct buffer_store *store = &buffer->stores[i];
        if (!in_one_word(store->at, at) || !sees(thread, store))
            continue;
        for (unsigned k = 0; k < store->bytes; k++)
            if (store->at + k >= at && store->at + k < at + bytes)
                memcpy((char *)&value + (store->at + k - at), (const char *)&store->value + k, 1);
    }
    return value;
}

/* Returns the n-th store for which a release waits, or the number of such stores if there are
 * fewer. */
static unsigned find(const struct buffer *buffer, int thread, const char *at, unsigned n,
                     unsigned *place) {
    unsigned found = 0;
    for (unsigned i = 0; i < buffer->n; i++) {
        const struct buffer_store *store = &buffer->stores[i];
        if (sees(thread, store) && (!at || in_one_word(store->at, at)) && found++ == n)
            *place = i;
    }
    return found;
}

void buffer_release(struct buffer *buffer, int thread, const char *at) {
    unsigned place = 0, left;
    while ((left = find(buffer, thread, at, 0, &place)) > 0) {
        find(buffer, thread, at, (unsigned)buffer_draw(buffer->random, left), &place);
        arrive(buffer, place);
    }
}

/* Returns whether a barrier makes the store visible to more threads. */
static bool is_published(int thread, const struct buffer_store *store) {
    if (thread == BUFFER_ALL)
        return true;
    if (thread >= 0)
        return sees(thread, store);
    return store->thread == thread ||
           (store->thread >= 0 && BUFFER_WARP(store->thread / BUFFER_LANES) == thread);
}

void buffer_publish(struct buffer *buffer, int thread, bool (*is_own)(const void *at, int gpu),
                    int gpu) {
    int to = thread >= 0 ? BUFFER_ALL : thread;
    for (unsigned i = 0; i < buffer->n; i++)
        if (is_published(thread, &buffer->stores[i]) && buffer->stores[i].thread != BUFFER_ALL)
            buffer->stores[i].thread = to;
    for (unsigned i = 0; i < buffer->n;)
        if (buffer->stores[i].thread == to && is_own(buffer->stores[i].at, gpu))
            arrive(buffer, i);
        else
            i++;
}

void buffer_proxy(struct buffer *buffer, int thread) {
    for (unsigned i = 0; i < buffer->n; i++)
        if (sees(thread, &buffer->stores[i]))
            buffer->stores[i].proxied = true;
}

void buffer_drain(struct buffer *buffer, size_t of) {
    for (unsigned left = buffer->n; left > 0; left--)
        if (buffer_draw(buffer->random, of) == 0)
            arrive(buffer, (unsigned)buffer_draw(buffer->random, buffer->n));
}
