/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring of messages in a file of memory, between one process that writes and one that reads.
 *
 *   | bytes | message ...| bytes | message ....| 0 |        a record: 8 bytes, then the message,
 *           position of the reader ^         ^ of the writer       rounded up to 8
 *
 * The writer puts a 0 where the next record will begin before it makes this one known by its
 * number of bytes: so what is left there from the last lap is never taken for a record. Messages
 * do not wrap around; a record of RING_SKIP bytes says that the next one is at the beginning.
 *
 * Who dies or is stopped within a call leaves the ring whole: a record is known when it is all
 * there. How a sleeper is woken is its users' affair; they learn here when. */
#ifndef TESTS_FAR_ENGINE_MESSAGE_RING_H
#define TESTS_FAR_ENGINE_MESSAGE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct message_ring_words {
    _Alignas(64) _Atomic uint64_t taken; /* bytes of records that the reader has given back */
    _Alignas(64) _Atomic uint32_t reader_sleeps;
    _Atomic uint32_t writer_waits; /* for room */
    _Alignas(64) unsigned char records[];
};

/* One end of it. */
struct message_ring {
    struct message_ring_words *words; /* NULL: not mapped yet */
    size_t bytes;                     /* of the records */
    uint64_t position, taken;         /* taken: as the writer knows it */
};

/* What the file of a ring has for records of so many bytes; it is made with zeros. */
size_t message_ring_file_bytes(size_t bytes);

/* Maps the file, which is the caller's to close. 0 or -errno. */
int message_ring_map(struct message_ring *ring, int fd);
void message_ring_unmap(struct message_ring *ring);

/* Whether the message has been written. If not, the reader rings once there is room again. */
bool message_ring_write(struct message_ring *ring, const struct iovec *parts, int nparts,
                        size_t bytes);

/* Whether the reader has asked to be woken, and is now to be. Behind each write. */
static inline bool message_ring_wakes_reader(struct message_ring *ring) {
    return __builtin_expect(
               atomic_load_explicit(&ring->words->reader_sleeps, memory_order_relaxed) != 0, 0) &&
           atomic_exchange(&ring->words->reader_sleeps, 0) != 0;
}

/* Before the reader sleeps, and when it is awake: messages of before a sleep are seen behind this,
 * and each of later wakes it. */
static inline void message_ring_sleep(struct message_ring *ring, bool sleep) {
    atomic_exchange(&ring->words->reader_sleeps, sleep);
}

/* Bytes that the reader has not given back. */
size_t message_ring_under_way(const struct message_ring *ring);

/* The next message, valid until it is taken; NULL: there is none. */
const void *message_ring_read(struct message_ring *ring, size_t *bytes);
void message_ring_take(struct message_ring *ring, size_t bytes);

/* Gives back what has been taken; whether the writer is waiting for it. */
bool message_ring_give_back(struct message_ring *ring);

#endif
