/* SPDX-License-Identifier: BSD-3-Clause */
#include "message_ring.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD = sizeof(uint64_t) };
#define RING_SKIP UINT64_MAX

static size_t record_bytes(size_t message_bytes) {
    return HEAD + (message_bytes + HEAD - 1) / HEAD * HEAD;
}

static _Atomic uint64_t *head_at(const struct message_ring *ring, uint64_t position) {
    return (_Atomic uint64_t *)(void *)&ring->words->records[position % ring->bytes];
}

size_t message_ring_file_bytes(size_t bytes) {
    return sizeof(struct message_ring_words) + (bytes + HEAD - 1) / HEAD * HEAD;
}

int message_ring_map(struct message_ring *ring, int fd) {
    struct stat file;
    if (fstat(fd, &file) != 0)
        return -errno;
    size_t bytes = (size_t)file.st_size;
    void *words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (words == MAP_FAILED)
        return -errno;
    *ring =
        (struct message_ring){.words = words, .bytes = bytes - sizeof(struct message_ring_words)};
    return 0;
}

void message_ring_unmap(struct message_ring *ring) {
    if (ring->words)
        munmap(ring->words, sizeof(struct message_ring_words) + ring->bytes);
    ring->words = NULL;
}

static bool has_room(struct message_ring *ring, size_t bytes) {
    if (ring->position + bytes - ring->taken <= ring->bytes)
        return true;
    ring->taken = atomic_load_explicit(&ring->words->taken, memory_order_acquire);
    return ring->position + bytes - ring->taken <= ring->bytes;
}

/* Returns whether there is room; if not, asks the reader to ring. */
static bool has_room_or_waits(struct message_ring *ring, size_t bytes) {
    if (has_room(ring, bytes))
        return true;
    atomic_exchange(&ring->words->writer_waits, 1);
    return has_room(ring, bytes);
}

/* Publishes the record, after which the next one begins at `next`: a release, and a full fence
 * after it. */
static void publish(struct message_ring *ring, uint64_t next, uint64_t head) {
    atomic_store_explicit(head_at(ring, next), 0, memory_order_relaxed);
    atomic_exchange(head_at(ring, ring->position), head);
    ring->position = next;
}

bool message_ring_write(struct message_ring *ring, const struct iovec *parts, int nparts,
                        size_t bytes) {
    size_t record = record_bytes(bytes), left = ring->bytes - ring->position % ring->bytes;
    size_t skip = record + HEAD > left ? left : 0; /* there is always room for the next head */
    if (!has_room_or_waits(ring, skip + record + HEAD))
        return false;
    if (skip)
        publish(ring, ring->position + skip, RING_SKIP);
    unsigned char *message = (unsigned char *)head_at(ring, ring->position) + HEAD;
    for (int i = 0; i < nparts; i++) {
        if (parts[i].iov_len)
            memcpy(message, parts[i].iov_base, parts[i].iov_len);
        message += parts[i].iov_len;
    }
    publish(ring, ring->position + record, bytes);
    return true;
}

size_t message_ring_under_way(const struct message_ring *ring) {
    return (size_t)(ring->position -
                    atomic_load_explicit(&ring->words->taken, memory_order_relaxed));
}

const void *message_ring_read(struct message_ring *ring, size_t *bytes) {
    uint64_t head = atomic_load_explicit(head_at(ring, ring->position), memory_order_acquire);
    if (head == RING_SKIP) {
        ring->position += ring->bytes - ring->position % ring->bytes;
        head = atomic_load_explicit(head_at(ring, ring->position), memory_order_acquire);
    }
    *bytes = (size_t)head;
    return head ? (const unsigned char *)head_at(ring, ring->position) + HEAD : NULL;
}

void message_ring_take(struct message_ring *ring, size_t bytes) {
    ring->position += record_bytes(bytes);
}

bool message_ring_give_back(struct message_ring *ring) {
    atomic_exchange(&ring->words->taken, ring->position);
    return atomic_load_explicit(&ring->words->writer_waits, memory_order_relaxed) != 0 &&
           atomic_exchange(&ring->words->writer_waits, 0) != 0;
}
