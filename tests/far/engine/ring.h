/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring of letters in a memfd, between one process that writes and one that reads.
 *
 *   | bytes | letter ...| bytes | letter ....| 0 |        a record: 8 bytes, then the letter,
 *           position of the reader ^         ^ of the writer       rounded up to 8
 *
 * The writer puts a 0 where the next record will begin before it makes this one known by its
 * number of bytes: so what is left there from the last lap is never taken for a record. Letters
 * do not wrap around; a record of RING_SKIP bytes says that the next one is at the beginning. */
#ifndef TESTS_FAR_ENGINE_RING_H
#define TESTS_FAR_ENGINE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct ring_words {
    _Alignas(64) _Atomic uint64_t taken; /* bytes of records that the reader has given back */
    _Alignas(64) _Atomic uint32_t reader_sleeps;
    _Atomic uint32_t writer_waits; /* for room */
    _Alignas(64) unsigned char records[];
};

/* One end of it. */
struct ring {
    struct ring_words *words; /* NULL: not mapped yet */
    size_t bytes;             /* of the records */
    uint64_t position, taken; /* taken: as the writer knows it */
};

/* A new ring and its descriptor, or one that another process has made. 0 or -errno. */
int ring_make(struct ring *ring, size_t bytes, int *fd);
int ring_map(struct ring *ring, int fd);
void ring_unmap(struct ring *ring);

/* Whether the letter has been written. If not, the reader rings once there is room again. */
bool ring_write(struct ring *ring, const struct iovec *parts, int nparts, size_t bytes);

/* Whether the reader has asked to be woken, and is now to be. Behind each write. */
static inline bool ring_wakes_reader(struct ring *ring) {
    return __builtin_expect(
               atomic_load_explicit(&ring->words->reader_sleeps, memory_order_relaxed) != 0, 0) &&
           atomic_exchange(&ring->words->reader_sleeps, 0) != 0;
}

/* Bytes that the reader has not given back. */
size_t ring_under_way(const struct ring *ring);

/* The next letter, valid until it is taken; NULL: there is none. */
const void *ring_read(struct ring *ring, size_t *bytes);
void ring_take(struct ring *ring, size_t bytes);

/* Gives back what has been taken; whether the writer is waiting for it. */
bool ring_give_back(struct ring *ring);

#endif
