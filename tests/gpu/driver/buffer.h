/* SPDX-License-Identifier: BSD-3-Clause */
/* The stores of a block that memory does not have yet: they arrive there in any order, but those to
 * one word in their own. So a flag may overtake its data, unless a release holds it back.
 *
 * A thread sees its own stores at once, and those of the others of its block from their next
 * barrier on. A release waits for all that the thread sees: its own, and by the barrier's
 * cumulativity the others'. */
#ifndef TESTS_GPU_DRIVER_BUFFER_H
#define TESTS_GPU_DRIVER_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUFFER_STORES = 128, BUFFER_ALL = -1 };

/* Of 1, 2, 4 or 8 bytes within a word of 8. */
struct buffer_store {
    char *at;
    uint64_t value;
    unsigned bytes;
    int thread; /* BUFFER_ALL: all of the block see it */
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

/* What a thread sees there. */
uint64_t buffer_load(const struct buffer *buffer, const char *at, unsigned bytes, int thread);

/* All that a thread sees arrives; of the word around `at` alone, if that is not NULL. */
void buffer_release(struct buffer *buffer, int thread, const char *at);

/* A barrier: all threads see what a thread has stored, or what all have (BUFFER_ALL). Stores to
 * memory of the GPU itself arrive. */
void buffer_publish(struct buffer *buffer, int thread, bool (*is_own)(const void *at, int gpu),
                    int gpu);

/* One store in `of` arrives, at random. */
void buffer_drain(struct buffer *buffer, size_t of);

#endif
