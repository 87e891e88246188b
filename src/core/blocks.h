/* SPDX-License-Identifier: BSD-3-Clause */
/* The allocator of a heap. It handles only offsets: every PE that makes the same calls gets the
 * same results, and the bookkeeping is in private memory, where no peer can damage it. */
#ifndef WEFT_CORE_BLOCKS_H
#define WEFT_CORE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

#define WEFT_BLOCK_ALIGN 64 /* a cache line: two objects never share one */
#define WEFT_BLOCK_NONE  SIZE_MAX

struct weft_blocks;

/* Returns an allocator for [0, limit) of a range that can grow to `capacity`; limit is 0 at first.
 * Returns NULL if there is no memory. weft_blocks_free frees it. */
struct weft_blocks *weft_blocks_new(size_t capacity);
void weft_blocks_free(struct weft_blocks *blocks);

/* Raises the limit; `limit` is a multiple of WEFT_BLOCK_ALIGN and at most the capacity. */
void weft_blocks_extend(struct weft_blocks *blocks, size_t limit);

/* Lowers the limit; `limit` is a multiple of WEFT_BLOCK_ALIGN, and no block after it is in use. */
void weft_blocks_shrink(struct weft_blocks *blocks, size_t limit);

/* Allocates `bytes` (> 0) aligned to a power of two. Returns the offset, or WEFT_BLOCK_NONE. Good
 * fit in constant time. */
size_t weft_blocks_take(struct weft_blocks *blocks, size_t bytes, size_t alignment);

/* Returns the bytes of the used block that begins at `offset`, or 0 if there is none. */
size_t weft_blocks_size(const struct weft_blocks *blocks, size_t offset);

/* Sets the requested size of a used block to `bytes`, which fit into it. */
void weft_blocks_resize(struct weft_blocks *blocks, size_t offset, size_t bytes);

/* Returns whether a block that began at `offset` was freed and no used block begins there now. */
bool weft_blocks_given_back(const struct weft_blocks *blocks, size_t offset);

/* Finds the block that contains `offset`: its begin and its requested bytes. Returns false if the
 * block is not in use. For diagnostics: it is slow, but safe beside calls of other threads in
 * checked mode. */
bool weft_blocks_find(struct weft_blocks *blocks, size_t offset, size_t *begin, size_t *bytes);

/* Frees the used block that begins at `offset`; returns false if there is none. *idle receives the
 * number of contiguous bytes of the resulting free run that may have memory: those used since
 * weft_blocks_find_idle last returned them. */
bool weft_blocks_give(struct weft_blocks *blocks, size_t offset, size_t *idle);

/* Finds a part of a free run, of at least `least` bytes, that may have memory, and marks it as
 * having none. Returns false if there is no such part. */
bool weft_blocks_find_idle(struct weft_blocks *blocks, size_t least, size_t *offset, size_t *bytes);

/* Returns a limit with which an allocation of `bytes` with `alignment` is sure to succeed. */
size_t weft_blocks_limit_for(const struct weft_blocks *blocks, size_t bytes, size_t alignment);

/* Returns the end of the last used block. */
size_t weft_blocks_used_end(const struct weft_blocks *blocks);

size_t weft_blocks_in_use(const struct weft_blocks *blocks);
size_t weft_blocks_limit(const struct weft_blocks *blocks);

#endif
