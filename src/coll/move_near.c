/* SPDX-License-Identifier: BSD-3-Clause */
/* The near mover: this processor copies and folds the mapped memory of the other members. */
#include "coll/move.h"
#include "coll/split.h"

/* There is nothing to wait for: a store is complete when the next one begins. */
static void near_complete(void) {}

static void near_pull(const struct weft_group *group, void *dest, const void *source,
                      const struct weft_pieces *pieces, int member) {
    if (member != group->me)
        source = weft_group_near(group, source, weft_pieces_span(pieces), member);
    weft_pieces_copy(dest, source, pieces);
}

static void near_push(const struct weft_group *group, void *dest, const void *source, size_t bytes,
                      int member) {
    weft_rma_copy(weft_group_near(group, dest, bytes, member), source, bytes);
}

/* --- Reductions ------------------------------------------------------------------------------ */

/* Each member owns a chunk of the array: it folds the chunk of all sources and writes it to all
 * dests, a block at a time while it is in the cache. No other member accesses that chunk anywhere,
 * so dest may be source, and two synchronisations suffice. */
enum { BLOCK_BYTES = 8 << 10 }; /* of each array: a few blocks fit into the cache */

static void reduce_block(const struct weft_group *group, const struct weft_chunk *chunk,
                         const struct weft_fold *fold, bool stream) {
    size_t offset = chunk->first * fold->elem_bytes;
    struct weft_pieces block = {chunk->nelems * fold->elem_bytes, 1, 0, 0, stream};
    _Alignas(64) char room[BLOCK_BYTES];
    char *result = stream ? room : (char *)chunk->dests[group->me] + offset;
    weft_fold_all(fold, result, chunk);
    for (int distance = stream ? 0 : 1; distance < chunk->n; distance++)
        weft_pieces_copy((char *)chunk->dests[weft_group_member(group, distance)] + offset, result,
                         &block);
}

static void near_fold(const struct weft_group *group, void *dest, const void *source,
                      const struct weft_folding *folding) {
    size_t elem = folding->fold->elem_bytes, bytes = folding->nelems * elem;
    size_t step = BLOCK_BYTES / elem, grain = weft_split_grain(elem);
    const void *sources[group->npes];
    void *dests[group->npes];
    for (int member = 0; member < group->npes; member++) {
        sources[member] = weft_group_near(group, source, bytes, member);
        dests[member] = weft_group_near(group, dest, bytes, member);
    }
    bool stream = weft_stream_wanted(2 * bytes);
    size_t end = weft_split_begin(folding->nelems, grain, group->me + 1, group->npes);
    struct weft_chunk chunk = {.sources = sources, .dests = dests, .n = group->npes};
    chunk.first = weft_split_begin(folding->nelems, grain, group->me, group->npes);
    group->sync(group);
    for (; chunk.first < end; chunk.first += step) {
        chunk.nelems = end - chunk.first < step ? end - chunk.first : step;
        if (folding->of == WEFT_FOLD_OF_ALL)
            reduce_block(group, &chunk, folding->fold, stream);
        else
            weft_fold_scan(folding, &chunk);
    }
    group->sync(group);
}

const struct weft_mover weft_mover_near = {.complete = near_complete,
                                           .pull = near_pull,
                                           .push = near_push,
                                           .fold = near_fold,
                                           .own_first = true,
                                           .in_packets = true};
