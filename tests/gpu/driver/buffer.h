/* SPDX-License-Identifier: BSD-3-Clause */
/* The stores of a block that memory does not have yet: they arrive there in any order, but those to
 * one word in their own. So a flag may overtake its data, unless a release holds it back.
 *
 * A thread sees its own stores at once, those of its warp from their next meeting on, and those of
 * the others of its block from their next barrier on. A release waits for all that the thread sees:
 * its own, and by the barrier's cumulativity the others'. */
#ifndef TESTS_GPU_DRIVER_BUFFER_H
#define TESTS_GPU_DRIVER_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For a thread's number: all threads, the asynchronous proxy, the threads of a warp. */
enum { BUFFER_STORES = 128, BUFFER_ALL = -1, BUFFER_PROXY = -2, BUFFER_LANES = 32 };
#define BUFFER_WARP(warp) (-3 - (int)(warp))

/* A store of 1, 2, 4 or 8 bytes within a word of 8. */
struct buffer_store {
    char *at;
    uint64_t value;
    unsigned bytes;
    int thread;   /* the thread that sees it, or BUFFER_ALL, BUFFER_WARP */
    bool proxied; /* so does the asynchronous proxy */
};

struct buffer {
    struct buffer_store stores[BUFFER_STORES]; /* the oldest first */
    unsigned n;
    uint64_t *random;
};

/* One in `limit`, from 0 on. */
size_t buffer_draw(uint64_t *random, size_t limit);

/* If it is full another store arrives first. */
void buffer_add(struct buffer *buffer, struct buffer_store store);

/* Returns the content that a thread sees. */
uint64_t buffer_load(const struct buffer *buffer, const char *at, unsigned bytes, int thread);

/* All that a thread sees arrives; of the word around `at` alone, if that is not NULL. */
void buffer_release(struct buffer *buffer, int thread, const char *at);

/* A barrier: all threads see the stores that one thread, or all (BUFFER_ALL), see; or those of a
 * warp see the stores that each of them sees (BUFFER_WARP). These stores arrive in memory of the
 * GPU itself. */
void buffer_publish(struct buffer *buffer, int thread, bool (*is_own)(const void *at, int gpu),
                    int gpu);

/* Makes the thread's stores visible to the asynchronous proxy. */
void buffer_proxy(struct buffer *buffer, int thread);

/* One store in `of` arrives, at random. */
void buffer_drain(struct buffer *buffer, size_t of);

#endif
