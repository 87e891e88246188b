/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions. Small: everybody folds everybody's packet. Large: each member owns a chunk of the
 * array, folds it over all sources and writes the result to all, a block at a time while it is in
 * the cache. Nobody else reads or writes that chunk anywhere, so dest may be source, and two
 * synchronisations are enough. */
#include <string.h>
#include "coll/choice.h"
#include "coll/chunk.h"
#include "coll/collective.h"
#include "coll/packet.h"
#include "coll/stream.h"

static void reduce_packets(const struct weft_group *group, void *dest, const void *source,
                           size_t nelems, const struct weft_fold *fold) {
    const void *sources[group->npes];
    weft_packets_gather(group->team, source, nelems * fold->elem_bytes, sources, group->call);
    weft_fold_all(fold, dest, sources, group->npes, 0, nelems);
}

static void reduce_block(const struct weft_group *group, const struct weft_block *block,
                         const struct weft_fold *fold) {
    size_t offset = block->first * fold->elem_bytes, bytes = block->nelems * fold->elem_bytes;
    _Alignas(64) char room[WEFT_CHUNK_BLOCK_BYTES];
    char *result = block->stream ? room : (char *)block->dests[group->me] + offset;
    weft_fold_all(fold, result, block->sources, group->npes, block->first, block->nelems);
    for (int distance = block->stream ? 0 : 1; distance < group->npes; distance++)
        weft_stream_or_copy(block->stream,
                            (char *)block->dests[weft_group_member(group, distance)] + offset,
                            result, bytes);
}

void weft_reduce(const struct weft_group *group, void *dest, const void *source, size_t nelems,
                 const struct weft_fold *fold) {
    size_t bytes = nelems * fold->elem_bytes;
    if (group->npes == 1)
        memmove(dest, source, bytes);
    else if (group->team && weft_choice_packet(WEFT_REDUCE, bytes, group->npes))
        reduce_packets(group, dest, source, nelems, fold);
    else
        weft_chunks_each(group, dest, source, nelems, fold, reduce_block);
}
