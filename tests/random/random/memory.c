/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"
#include <shmem.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 512, RECENT = 4 };

struct block blocks[BLOCKS_MAX];
unsigned char *model[PES_MAX];
unsigned char pool[POOL_BYTES];
struct random dice;
static _Alignas(16) unsigned char statics[STATIC_BYTES];
static uint32_t recent[PES_MAX][RECENT];
static uint8_t recent_next[PES_MAX];

void memory_open(uint64_t seed) {
    struct random random = random_of(seed, -1);
    random_fill(&random, pool, sizeof pool);
    for (int pe = 0; pe < npes; pe++)
        model[pe] = aligned_alloc(16, SPACE);
}

void *memory_real(uint32_t offset) {
    if (offset < STATIC_BYTES)
        return statics + offset;
    uint32_t inside = offset - STATIC_BYTES;
    return (unsigned char *)blocks[inside / BLOCK_BYTES].real + inside % BLOCK_BYTES;
}

uint32_t memory_end_of(uint32_t offset) {
    if (offset < STATIC_BYTES)
        return STATIC_BYTES;
    uint32_t block = (offset - STATIC_BYTES) / BLOCK_BYTES;
    return block_offset((int)block) + blocks[block].known;
}

void memory_fill(uint32_t offset, uint32_t bytes) {
    for (int pe = 0; pe < npes; pe++)
        for (uint32_t done = 0; done < bytes; done += CHUNK)
            memcpy(model[pe] + offset + done, pool + below(POOL_BYTES - CHUNK),
                   bytes - done < CHUNK ? bytes - done : CHUNK);
}

void memory_load(uint32_t offset, uint32_t bytes) {
    if (bytes)
        memcpy(memory_real(offset), model[me] + offset, bytes);
}

void memory_begin(void) {
    memset(recent, 0, sizeof recent);
    memset(recent_next, 0, sizeof recent_next);
    blocks[0] = (struct block){shmem_malloc(BLOCK_BYTES), BLOCK_BYTES};
    memory_fill(0, STATIC_BYTES);
    memory_fill(block_offset(0), BLOCK_BYTES);
}

void memory_end(void) {
    for (int block = 0; block < BLOCKS_MAX; block++) {
        shmem_free(blocks[block].real);
        blocks[block] = (struct block){NULL, 0};
    }
}

/* Returns begin and size of the plain part of region 0, which is static data, or of block region -
 * 1. */
static uint32_t plain_part(uint32_t region, uint32_t *bytes) {
    uint32_t words = region < 2 ? WORDS_BYTES : 0;
    uint32_t begin = region == 0 ? 0 : block_offset((int)region - 1);
    uint32_t known = region == 0 ? STATIC_BYTES : blocks[region - 1].known;
    *bytes = known - words;
    return begin + words;
}

bool memory_place(int pe, uint32_t bytes, uint32_t alignment, uint32_t *offset) {
    if (coin(3)) {
        uint32_t near = recent[pe][below(RECENT)] & ~(alignment - 1);
        if (near && near + bytes <= memory_end_of(near)) {
            *offset = near;
            return true;
        }
    }
    uint32_t room, region = coin(3) ? 0 : below(1 + BLOCKS_MAX), begin = plain_part(region, &room);
    if (room < bytes)
        begin = plain_part(0, &room);
    if (room < bytes || room == 0)
        return false;
    *offset = begin + (below(room - bytes + (bytes != 0)) & ~(alignment - 1));
    return true;
}

void memory_used(int pe, uint32_t offset) {
    recent[pe][recent_next[pe]++ % RECENT] = offset;
}

static uint32_t range_differs(uint32_t begin, uint32_t end) {
    const unsigned char *real = memory_real(begin);
    if (memcmp(real, model[me] + begin, end - begin) == 0)
        return SPACE;
    while (*real++ == model[me][begin])
        begin++;
    return begin;
}

uint32_t memory_differs(uint32_t begin, uint32_t end) {
    uint32_t found = SPACE;
    while (begin < end && found == SPACE) {
        uint32_t region_end = memory_end_of(begin), until = end < region_end ? end : region_end;
        if (until > begin)
            found = range_differs(begin, until);
        begin = begin < STATIC_BYTES
                    ? STATIC_BYTES
                    : block_offset((int)((begin - STATIC_BYTES) / BLOCK_BYTES) + 1);
    }
    return found;
}
