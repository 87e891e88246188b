/* SPDX-License-Identifier: BSD-3-Clause */
/* Scans: as reductions (coll/reduce.c), but each member gets the fold of the members up to itself.
 * The owner of a chunk makes all members' results of it in one pass. */
#include <string.h>
#include "coll/choice.h"
#include "coll/chunk.h"
#include "coll/collective.h"
#include "coll/packet.h"

static void scan_packets(const struct weft_group *group, void *dest, const void *source,
                         size_t nelems, const struct weft_fold *fold, bool inclusive) {
    const void *sources[group->npes];
    size_t bytes = nelems * fold->elem_bytes;
    weft_packets_gather(group->team, source, bytes, sources, group->call);
    int nsources = group->me + inclusive;
    if (nsources > 0)
        weft_fold_all(fold, dest, sources, nsources, 0, nelems);
    else
        memset(dest, 0, bytes);
}

/* Each result is the one before it and one source more. */
static void inclusive_block(const struct weft_group *group, const struct weft_chunk *chunk,
                            const struct weft_fold *fold) {
    size_t offset = chunk->first * fold->elem_bytes;
    const void *so_far = (const char *)chunk->sources[0] + offset;
    memmove((char *)chunk->dests[0] + offset, so_far, chunk->nelems * fold->elem_bytes);
    for (int member = 1; member < group->npes; member++) {
        void *to = (char *)chunk->dests[member] + offset;
        fold->pair(to, so_far, (const char *)chunk->sources[member] + offset, chunk->nelems);
        so_far = to;
    }
}

/* A member's dest may be its source, so that is added to the next sum before dest gets the last. */
static void exclusive_block(const struct weft_group *group, const struct weft_chunk *chunk,
                            const struct weft_fold *fold) {
    _Alignas(64) char sums[2][WEFT_CHUNK_BLOCK_BYTES];
    size_t offset = chunk->first * fold->elem_bytes, bytes = chunk->nelems * fold->elem_bytes;
    memcpy(sums[1], (const char *)chunk->sources[0] + offset, bytes);
    memset((char *)chunk->dests[0] + offset, 0, bytes);
    for (int member = 1; member < group->npes; member++) {
        const void *so_far = sums[member % 2];
        if (member + 1 < group->npes)
            fold->pair(sums[(member + 1) % 2], so_far,
                       (const char *)chunk->sources[member] + offset, chunk->nelems);
        memcpy((char *)chunk->dests[member] + offset, so_far, bytes);
    }
}

void weft_group_scan(const struct weft_group *group, void *dest, const void *source, size_t nelems,
                     const struct weft_fold *fold, bool inclusive) {
    size_t bytes = nelems * fold->elem_bytes;
    if (group->npes == 1 && inclusive)
        memmove(dest, source, bytes);
    else if (group->npes == 1)
        memset(dest, 0, bytes);
    else if (weft_choice_packet(WEFT_SCAN, bytes, group->npes))
        scan_packets(group, dest, source, nelems, fold, inclusive);
    else
        weft_chunks_each(group, dest, source, nelems, fold,
                         inclusive ? inclusive_block : exclusive_block);
}
