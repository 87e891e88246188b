/* SPDX-License-Identifier: BSD-3-Clause */
/* Work on large arrays by chunks: each member owns one, and does it for everybody. */
#ifndef WEFT_COLL_CHUNK_H
#define WEFT_COLL_CHUNK_H

#include <stdbool.h>
#include "coll/fold.h"
#include "coll/group.h"

enum { WEFT_CHUNK_BLOCK_BYTES = 8 << 10 }; /* of each array: a few of them fit the cache */

/* One block of a member's chunk: elements [first, first + nelems) of every member's arrays. */
struct weft_chunk {
    size_t first, nelems;
    const void *const *sources;
    void *const *dests;
    bool stream; /* what is written should go past the cache */
};
typedef void weft_chunk_body(const struct weft_group *group, const struct weft_chunk *chunk,
                             const struct weft_fold *fold);

/* The first element of a member's chunk; of member npes: the end. Chunks are whole cache lines. */
size_t weft_chunk_begin(size_t nelems, size_t elem_bytes, int member, int npes);

/* Calls body for every block of this member's chunk. Collective: on return all chunks are done. */
void weft_chunks_each(const struct weft_group *group, void *dest, const void *source, size_t nelems,
                      const struct weft_fold *fold, weft_chunk_body *body);

#endif
