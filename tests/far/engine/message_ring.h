/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring of messages in a memory file, between one process that writes and one that reads.
 *
 *   | bytes | message ...| bytes | message ....| 0 |        a record: 8 bytes, then the message,
 *           position of the reader ^         ^ of the writer       rounded up to 8
 *
 * The writer stores a 0 where the next record will begin before it publishes this one by storing
 * its number of bytes. So old data from the last lap is never taken for a record. Messages do not
 * wrap around; a record of RING_SKIP bytes says that the next one is at the beginning.
 *
 * A process that dies or stops within a call leaves the ring valid: a record is published when
 * it is complete. Sleeping and waking is left to the users of the ring, which learn here when to
 * wake. */
#ifndef TESTS_FAR_ENGINE_MESSAGE_RING_H
#define TESTS_FAR_ENGINE_MESSAGE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct message_ring_words {
    _Alignas(64) _Atomic uint64_t taken; /* bytes of records that the reader has returned */
    _Alignas(64) _Atomic uint32_t reader_sleeps;
    _Atomic uint32_t writer_waits; /* for room */
    _Alignas(64) unsigned char records[];
};

/* One process's end of a ring. */
struct message_ring {
    struct message_ring_words *words; /* NULL until it is mapped */
    size_t bytes;                     /* of the records */
    uint64_t position, taken;         /* taken: as last read by the writer */
};

/* Returns the size of the file of a ring for `bytes` of records. The file begins as zeros. */
size_t message_ring_file_bytes(size_t bytes);

/* Maps the file, whose descriptor stays the caller's. Returns 0 or -errno. */
int message_ring_map(struct message_ring *ring, int fd);
void message_ring_unmap(struct message_ring *ring);

/* Returns whether the message has been written. If not, the reader rings once there is room. */
bool message_ring_write(struct message_ring *ring, const struct iovec *parts, int nparts,
                        size_t bytes);

/* Returns whether the reader sleeps and must be woken now. Called after each write. */
static inline bool message_ring_wakes_reader(struct message_ring *ring) {
    return __builtin_expect(
               atomic_load_explicit(&ring->words->reader_sleeps, memory_order_relaxed) != 0, 0) &&
           atomic_exchange(&ring->words->reader_sleeps, 0) != 0;
}

/* Called before the reader sleeps and when it is awake. Messages written before a sleep are visible
 * after this call, and each later one wakes the reader. */
static inline void message_ring_sleep(struct message_ring *ring, bool sleep) {
    atomic_exchange(&ring->words->reader_sleeps, sleep);
}

/* Returns the bytes that the reader has not returned. */
size_t message_ring_under_way(const struct message_ring *ring);

/* Returns the next message, valid until it is taken, or NULL. */
const void *message_ring_read(struct message_ring *ring, size_t *bytes);
void message_ring_take(struct message_ring *ring, size_t bytes);

/* Returns the room of the records taken. Returns whether the writer waits for it. */
bool message_ring_give_back(struct message_ring *ring);

#endif
