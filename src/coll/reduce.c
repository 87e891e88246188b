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

static void reduce_block(const struct weft_group *group, const struct weft_chunk *chunk,
                         const struct weft_fold *fold) {
    size_t offset = chunk->first * fold->elem_bytes, bytes = chunk->nelems * fold->elem_bytes;
    _Alignas(64) char room[WEFT_CHUNK_BLOCK_BYTES];
    char *result = chunk->stream ? room : (char *)chunk->dests[group->me] + offset;
    weft_fold_all(fold, result, chunk->sources, group->npes, chunk->first, chunk->nelems);
    for (int distance = chunk->stream ? 0 : 1; distance < group->npes; distance++)
        weft_stream_or_copy(chunk->stream,
                            (char *)chunk->dests[weft_group_member(group, distance)] + offset,
                            result, bytes);
}

void weft_group_reduce(const struct weft_group *group, void *dest, const void *source,
                       size_t nelems, const struct weft_fold *fold) {
    size_t bytes = nelems * fold->elem_bytes;
    if (group->npes == 1)
        memmove(dest, source, bytes);
    else if (group->team && weft_choice_packet(WEFT_REDUCE, bytes, group->npes))
        reduce_packets(group, dest, source, nelems, fold);
    else
        weft_chunks_each(group, dest, source, nelems, fold, reduce_block);
}
