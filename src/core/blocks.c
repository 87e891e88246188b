/* SPDX-License-Identifier: BSD-3-Clause */
/* Two-level segregated fit (Masmano et al., 2004), with the bookkeeping outside the memory.
 *
 *   offset order:   |used|--free--|used|used|---free---|      block.before / block.after
 *   by size:        bin[first][second] -> free -> free        two bitmaps find a bin in O(1)
 *
 * Each power of two of sizes is divided into eight bins. The neighbours of a free block are in
 * use. */
#include "core/blocks.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include "job/job.h"

enum {
    SECOND_BITS = 3,
    SECONDS = 1 << SECOND_BITS,
    FIRSTS = 48,
    LEAF_BITS = 14, /* 2^LEAF_BITS possible block starts per leaf of the index: 1 MiB of heap */
    LEAF = 1 << LEAF_BITS,
    NIL = 0, /* descriptor 0 is never used */
};
#define GONE UINT32_MAX /* in the index: a freed block began here, and no block does now */

/* Sizes and offsets in units of WEFT_BLOCK_ALIGN. */
struct block {
    size_t offset, size;
    size_t bytes;          /* the bytes requested of them */
    size_t idle, idle_end; /* of a free block: the part that may have memory, as [idle, idle_end) */
    uint32_t before, after;  /* neighbours in offset order */
    uint32_t previous, next; /* in the bin; next, also in the list of spares */
    bool used, was_used;     /* the first implies the second */
};

struct weft_blocks {
    pthread_mutex_t lock; /* used in checked mode only: other threads look up objects meanwhile */
    struct block *block;
    uint32_t nblocks, spare; /* descriptors made so far; list of unused ones */
    uint32_t last;           /* the block that ends at the limit */
    size_t limit, capacity, in_use;
    uint64_t firsts;
    uint8_t seconds[FIRSTS];
    uint32_t bin[FIRSTS][SECONDS];
    uint32_t **index; /* leaf tables: offset -> descriptor of the block that begins there */
};

static inline size_t to_units(size_t bytes) {
    return bytes / WEFT_BLOCK_ALIGN + (bytes % WEFT_BLOCK_ALIGN != 0);
}

static inline int highest_bit(size_t value) {
    return 63 - __builtin_clzll(value);
}

/* Computes the bin for `size`: bins are linear below SECONDS, logarithmic above. */
static void bin_of(size_t size, int *first, int *second) {
    int bit = size < SECONDS ? 0 : highest_bit(size) - SECOND_BITS + 1;
    *first = bit;
    *second = bit == 0 ? (int)size : (int)(size >> (bit - 1)) - SECONDS;
}

static void bin_insert(struct weft_blocks *blocks, uint32_t id) {
    int first, second;
    struct block *block = &blocks->block[id];
    bin_of(block->size, &first, &second);
    uint32_t *head = &blocks->bin[first][second];
    block->used = false;
    block->previous = NIL;
    block->next = *head;
    if (*head)
        blocks->block[*head].previous = id;
    *head = id;
    blocks->firsts |= UINT64_C(1) << first;
    blocks->seconds[first] |= (uint8_t)(1u << second);
}

static void bin_remove(struct weft_blocks *blocks, uint32_t id) {
    int first, second;
    struct block *block = &blocks->block[id];
    bin_of(block->size, &first, &second);
    if (block->next)
        blocks->block[block->next].previous = block->previous;
    if (block->previous)
        blocks->block[block->previous].next = block->next;
    else
        blocks->bin[first][second] = block->next;
    if (!blocks->bin[first][second])
        blocks->seconds[first] &= (uint8_t) ~(1u << second);
    if (!blocks->seconds[first])
        blocks->firsts &= ~(UINT64_C(1) << first);
}

/* Returns a free block from a bin whose sizes are all at least `size`, or NIL. */
static uint32_t bin_find(const struct weft_blocks *blocks, size_t size) {
    int first, second;
    size_t step = size < SECONDS ? 1 : (size_t)1 << (highest_bit(size) - SECOND_BITS);
    bin_of(size + step - 1, &first, &second);
    if (first >= FIRSTS)
        return NIL;
    unsigned seconds = blocks->seconds[first] & (~0u << second);
    if (!seconds) {
        uint64_t firsts = first + 1 < FIRSTS ? blocks->firsts & (~UINT64_C(0) << (first + 1)) : 0;
        if (!firsts)
            return NIL;
        first = __builtin_ctzll(firsts);
        seconds = blocks->seconds[first];
    }
    return blocks->bin[first][__builtin_ctz(seconds)];
}

/* Returns the free block at the limit if it is large enough, or NIL. bin_find skips a block that is
 * large enough but in a bin with smaller ones; the heap may have grown for just this block. */
static uint32_t tail_find(const struct weft_blocks *blocks, size_t size) {
    const struct block *last = &blocks->block[blocks->last];
    return blocks->last && !last->used && last->size >= size ? blocks->last : NIL;
}

static uint32_t index_get(const struct weft_blocks *blocks, size_t offset) {
    const uint32_t *leaf = blocks->index[offset >> LEAF_BITS];
    return leaf ? leaf[offset & (LEAF - 1)] : NIL;
}

/* Ends the job if there is no memory. Bookkeeping must not fail on a single PE: the heaps would
 * differ from then on. */
static void *need(void *memory) {
    if (!memory)
        weft_job_panic_bare("out of private memory for the bookkeeping of the symmetric heap");
    return memory;
}

static inline void index_set(struct weft_blocks *blocks, size_t offset, uint32_t id) {
    uint32_t **leaf = &blocks->index[offset >> LEAF_BITS];
    if (__builtin_expect(!*leaf, 0))
        *leaf = need(calloc(LEAF, sizeof **leaf));
    (*leaf)[offset & (LEAF - 1)] = id;
}

static uint32_t block_new(struct weft_blocks *blocks) {
    uint32_t id = blocks->spare;
    if (id) {
        blocks->spare = blocks->block[id].next;
        return id;
    }
    if ((blocks->nblocks & (blocks->nblocks - 1)) == 0) { /* a power of two, so the array is full */
        size_t room = (size_t)blocks->nblocks * 2;
        blocks->block = need(realloc(blocks->block, room * sizeof *blocks->block));
    }
    return blocks->nblocks++;
}

static void block_drop(struct weft_blocks *blocks, uint32_t id) {
    index_set(blocks, blocks->block[id].offset, blocks->block[id].was_used ? GONE : NIL);
    blocks->block[id].next = blocks->spare;
    blocks->spare = id;
}

/* Inserts a new block after `before` in offset order. */
static uint32_t block_link(struct weft_blocks *blocks, uint32_t before, size_t offset,
                           size_t size) {
    uint32_t id = block_new(blocks);
    uint32_t after = before ? blocks->block[before].after : NIL;
    blocks->block[id] = (struct block){
        .offset = offset, .size = size, .before = before, .after = after, .used = true};
    if (before)
        blocks->block[before].after = id;
    if (after)
        blocks->block[after].before = id;
    else
        blocks->last = id;
    index_set(blocks, offset, id);
    return id;
}

/* Sets the idle part of a block to the part of the range that lies inside it. */
static void set_idle(struct block *block, size_t begin, size_t end) {
    size_t block_end = block->offset + block->size;
    block->idle = begin > block->offset ? begin : block->offset;
    block->idle_end = end < block_end ? end : block_end;
    if (block->idle >= block->idle_end)
        block->idle = block->idle_end = block->offset;
}

/* Extends the idle part of a block by that of the next one, including what is in between. */
static void join_idle(struct block *block, const struct block *next) {
    if (next->idle == next->idle_end)
        return;
    if (block->idle == block->idle_end)
        block->idle = next->idle;
    block->idle_end = next->idle_end;
}

/* Merges a block with the next one; neither may be in a bin. */
static void block_absorb_next(struct weft_blocks *blocks, uint32_t id) {
    struct block *block = &blocks->block[id];
    uint32_t gone = block->after;
    block->size += blocks->block[gone].size;
    join_idle(block, &blocks->block[gone]);
    block->after = blocks->block[gone].after;
    if (block->after)
        blocks->block[block->after].before = id;
    else
        blocks->last = id;
    block_drop(blocks, gone);
}

/* Returns a block to its bin, merged with its free neighbours. Returns the merged block. */
static uint32_t block_release(struct weft_blocks *blocks, uint32_t id) {
    uint32_t after = blocks->block[id].after, before = blocks->block[id].before;
    if (after && !blocks->block[after].used) {
        bin_remove(blocks, after);
        block_absorb_next(blocks, id);
    }
    if (before && !blocks->block[before].used) {
        bin_remove(blocks, before);
        block_absorb_next(blocks, before);
        id = before;
    }
    bin_insert(blocks, id);
    return id;
}

/* Cuts a block, which is in no bin, at `size`, and frees the rest. */
static void block_trim(struct weft_blocks *blocks, uint32_t id, size_t size) {
    struct block *block = &blocks->block[id];
    if (block->size == size)
        return;
    size_t idle = block->idle, idle_end = block->idle_end;
    uint32_t rest = block_link(blocks, id, block->offset + size, block->size - size);
    blocks->block[id].size = size; /* block_link may have moved the descriptors */
    set_idle(&blocks->block[rest], idle, idle_end);
    block_release(blocks, rest);
}

static void lock(struct weft_blocks *blocks) {
    if (weft_job.checked)
        pthread_mutex_lock(&blocks->lock);
}

static void unlock(struct weft_blocks *blocks) {
    if (weft_job.checked)
        pthread_mutex_unlock(&blocks->lock);
}

struct weft_blocks *weft_blocks_new(size_t capacity) {
    struct weft_blocks *blocks = calloc(1, sizeof *blocks);
    if (!blocks)
        return NULL;
    pthread_mutex_init(&blocks->lock, NULL);
    blocks->capacity = to_units(capacity);
    blocks->nblocks = 1;
    blocks->block = calloc(1, sizeof *blocks->block);
    blocks->index = calloc((blocks->capacity >> LEAF_BITS) + 1, sizeof *blocks->index);
    if (blocks->block && blocks->index)
        return blocks;
    weft_blocks_free(blocks);
    return NULL;
}

void weft_blocks_free(struct weft_blocks *blocks) {
    if (!blocks)
        return;
    for (size_t leaf = 0; blocks->index && leaf <= blocks->capacity >> LEAF_BITS; leaf++)
        free(blocks->index[leaf]);
    pthread_mutex_destroy(&blocks->lock);
    free(blocks->index);
    free(blocks->block);
    free(blocks);
}

void weft_blocks_extend(struct weft_blocks *blocks, size_t limit) {
    size_t units = limit / WEFT_BLOCK_ALIGN;
    if (units <= blocks->limit)
        return;
    lock(blocks);
    uint32_t id = block_link(blocks, blocks->last, blocks->limit, units - blocks->limit);
    blocks->limit = units;
    block_release(blocks, id);
    unlock(blocks);
}

static size_t used_end(const struct weft_blocks *blocks) {
    const struct block *last = &blocks->block[blocks->last];
    return blocks->last && !last->used ? last->offset : blocks->limit;
}

size_t weft_blocks_used_end(const struct weft_blocks *blocks) {
    return used_end(blocks) * WEFT_BLOCK_ALIGN;
}

void weft_blocks_shrink(struct weft_blocks *blocks, size_t limit) {
    size_t units = limit / WEFT_BLOCK_ALIGN;
    uint32_t id = blocks->last;
    if (units >= blocks->limit || units < used_end(blocks))
        return;
    lock(blocks);
    struct block *block = &blocks->block[id];
    bin_remove(blocks, id);
    block->size = units - block->offset;
    blocks->limit = units;
    if (block->size > 0) {
        set_idle(block, block->idle, block->idle_end);
        bin_insert(blocks, id);
    } else {
        blocks->last = block->before;
        if (block->before)
            blocks->block[block->before].after = NIL;
        block_drop(blocks, id);
    }
    unlock(blocks);
}

/* Returns the offset of the allocated block, or WEFT_BLOCK_NONE. */
static size_t take(struct weft_blocks *blocks, size_t bytes, size_t alignment) {
    size_t size = to_units(bytes), align = to_units(alignment);
    if (size > blocks->capacity || align > blocks->capacity)
        return WEFT_BLOCK_NONE;
    uint32_t id = bin_find(blocks, size + align - 1);
    if (!id)
        id = tail_find(blocks, size + align - 1);
    if (!id)
        return WEFT_BLOCK_NONE;
    bin_remove(blocks, id);
    struct block *block = &blocks->block[id];
    size_t skip = (align - block->offset % align) % align;
    block->used = true;
    if (skip) {
        size_t idle = block->idle, idle_end = block->idle_end;
        uint32_t rest = block_link(blocks, id, block->offset + skip, block->size - skip);
        blocks->block[id].size = skip;
        set_idle(&blocks->block[rest], idle, idle_end);
        set_idle(&blocks->block[id], idle, idle_end);
        bin_insert(blocks, id); /* nothing to merge: the neighbour is in use */
        id = rest;
    }
    block_trim(blocks, id, size);
    blocks->block[id].bytes = bytes;
    blocks->block[id].was_used = true;
    blocks->in_use += blocks->block[id].size;
    return blocks->block[id].offset * WEFT_BLOCK_ALIGN;
}

size_t weft_blocks_take(struct weft_blocks *blocks, size_t bytes, size_t alignment) {
    lock(blocks);
    size_t offset = take(blocks, bytes, alignment);
    unlock(blocks);
    return offset;
}

/* Returns the index entry of this offset: a descriptor, GONE or NIL. */
static uint32_t entry_at(const struct weft_blocks *blocks, size_t offset) {
    size_t unit = offset / WEFT_BLOCK_ALIGN;
    bool outside = offset % WEFT_BLOCK_ALIGN || unit >= blocks->limit;
    return outside ? NIL : index_get(blocks, unit);
}

/* Returns the used block that begins at this offset, or NIL. */
static uint32_t block_at(const struct weft_blocks *blocks, size_t offset) {
    uint32_t id = entry_at(blocks, offset);
    return id != NIL && id != GONE && blocks->block[id].used ? id : NIL;
}

bool weft_blocks_given_back(const struct weft_blocks *blocks, size_t offset) {
    uint32_t id = entry_at(blocks, offset);
    if (id == NIL || id == GONE)
        return id == GONE;
    return blocks->block[id].was_used && !blocks->block[id].used;
}

size_t weft_blocks_size(const struct weft_blocks *blocks, size_t offset) {
    uint32_t id = block_at(blocks, offset);
    return id ? blocks->block[id].size * WEFT_BLOCK_ALIGN : 0;
}

void weft_blocks_resize(struct weft_blocks *blocks, size_t offset, size_t bytes) {
    lock(blocks);
    blocks->block[block_at(blocks, offset)].bytes = bytes;
    unlock(blocks);
}

/* Searches the index backwards, past NULL leaves; a block always begins at 0. */
bool weft_blocks_find(struct weft_blocks *blocks, size_t offset, size_t *begin, size_t *bytes) {
    size_t unit = offset / WEFT_BLOCK_ALIGN;
    if (unit >= blocks->limit)
        return false;
    lock(blocks);
    uint32_t id;
    while ((id = index_get(blocks, unit)) == NIL || id == GONE)
        unit -= blocks->index[unit >> LEAF_BITS] ? 1 : (unit & (LEAF - 1)) + 1;
    const struct block *block = &blocks->block[id];
    bool used = block->used;
    *begin = block->offset * WEFT_BLOCK_ALIGN;
    *bytes = block->bytes;
    unlock(blocks);
    return used;
}

bool weft_blocks_give(struct weft_blocks *blocks, size_t offset, size_t *idle) {
    uint32_t id = block_at(blocks, offset);
    if (!id)
        return false;
    lock(blocks);
    struct block *block = &blocks->block[id];
    blocks->in_use -= block->size;
    block->idle = block->offset;
    block->idle_end = block->offset + block->size;
    block = &blocks->block[block_release(blocks, id)];
    *idle = (block->idle_end - block->idle) * WEFT_BLOCK_ALIGN;
    unlock(blocks);
    return true;
}

/* A block with `least` idle units is in the bin of that size or a later one. */
static struct block *idle_find(const struct weft_blocks *blocks, size_t least) {
    int first, second;
    bin_of(least, &first, &second);
    for (int bin = first * SECONDS + second; bin < FIRSTS * SECONDS; bin++)
        for (uint32_t id = blocks->bin[bin / SECONDS][bin % SECONDS]; id;
             id = blocks->block[id].next)
            if (blocks->block[id].idle_end - blocks->block[id].idle >= least)
                return &blocks->block[id];
    return NULL;
}

bool weft_blocks_find_idle(struct weft_blocks *blocks, size_t least, size_t *offset,
                           size_t *bytes) {
    lock(blocks);
    struct block *block = idle_find(blocks, to_units(least));
    if (block) {
        *offset = block->idle * WEFT_BLOCK_ALIGN;
        *bytes = (block->idle_end - block->idle) * WEFT_BLOCK_ALIGN;
        set_idle(block, block->offset, block->offset);
    }
    unlock(blocks);
    return block;
}

size_t weft_blocks_limit_for(const struct weft_blocks *blocks, size_t bytes, size_t alignment) {
    size_t size = to_units(bytes) + to_units(alignment) - 1;
    const struct block *last = &blocks->block[blocks->last];
    size_t tail = blocks->last && !last->used ? last->size : 0;
    size_t more = size > tail ? size - tail : 0;
    return (blocks->limit + more) * WEFT_BLOCK_ALIGN;
}

size_t weft_blocks_in_use(const struct weft_blocks *blocks) {
    return blocks->in_use * WEFT_BLOCK_ALIGN;
}

size_t weft_blocks_limit(const struct weft_blocks *blocks) {
    return blocks->limit * WEFT_BLOCK_ALIGN;
}
