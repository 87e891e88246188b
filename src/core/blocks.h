/* SPDX-License-Identifier: BSD-3-Clause */
/* Which parts of a heap are in use: offsets only, so that every PE that makes the same calls gets
 * the same answers, and nothing a peer can write to is trusted. */
#ifndef WEFT_CORE_BLOCKS_H
#define WEFT_CORE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

#define WEFT_BLOCK_ALIGN 64 /* a cache line: two objects never share one */
#define WEFT_BLOCK_NONE  SIZE_MAX

struct weft_blocks;

/* Blocks of [0, limit) of an address range that can grow up to `capacity`. NULL: no memory. */
struct weft_blocks *weft_blocks_new(size_t capacity);
void weft_blocks_free(struct weft_blocks *blocks);

/* More of the range exists now; `limit` is a multiple of WEFT_BLOCK_ALIGN, at most the capacity. */
void weft_blocks_extend(struct weft_blocks *blocks, size_t limit);

/* The range ends at `limit` again, a multiple of WEFT_BLOCK_ALIGN behind which nothing is in use.
 */
void weft_blocks_shrink(struct weft_blocks *blocks, size_t limit);

/* Offset of `bytes` (> 0) aligned to a power of two, or WEFT_BLOCK_NONE. Good fit, constant time.
 */
size_t weft_blocks_take(struct weft_blocks *blocks, size_t bytes, size_t alignment);

/* Bytes of the block that begins at `offset`, 0 when none that is in use does. */
size_t weft_blocks_size(const struct weft_blocks *blocks, size_t offset);

/* Notes that of a block in use `bytes` count now, which it has room for. */
void weft_blocks_resize(struct weft_blocks *blocks, size_t offset, size_t bytes);

/* Whether a block that began at `offset` was given back, and none is in use there now. */
bool weft_blocks_given_back(const struct weft_blocks *blocks, size_t offset);

/* The block that `offset` lies in: where it begins, and how many bytes of it were asked for. False
 * when it is in no use. For diagnoses: takes time, and looks behind calls of other threads. */
bool weft_blocks_find(struct weft_blocks *blocks, size_t offset, size_t *begin, size_t *bytes);

/* Gives back the block in use that begins at `offset`; false when none does. It becomes part of a
 * free run, of which *idle bytes may have memory behind them: they were in use since
 * weft_blocks_find_idle last gave them. */
bool weft_blocks_give(struct weft_blocks *blocks, size_t offset, size_t *idle);

/* A part of a free run, `least` bytes or more, that may have memory behind it. From now on it has
 * none. False when there is no such part. */
bool weft_blocks_find_idle(struct weft_blocks *blocks, size_t least, size_t *offset, size_t *bytes);

/* The limit that a take of `bytes` with `alignment` needs at most to succeed. */
size_t weft_blocks_limit_for(const struct weft_blocks *blocks, size_t bytes, size_t alignment);

/* Where the last block in use ends. */
size_t weft_blocks_used_end(const struct weft_blocks *blocks);

size_t weft_blocks_in_use(const struct weft_blocks *blocks);
size_t weft_blocks_limit(const struct weft_blocks *blocks);

#endif
