/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/chunk.h"
#include "coll/stream.h"

size_t weft_chunk_begin(size_t nelems, size_t elem_bytes, int member, int npes) {
    enum { LINE_BYTES = 64 };
    size_t grain = LINE_BYTES / elem_bytes, ngrains = (nelems + grain - 1) / grain;
    size_t whole = ngrains / (size_t)npes, rest = ngrains % (size_t)npes, i = (size_t)member;
    size_t begin = (i * whole + (i < rest ? i : rest)) * grain;
    return begin < nelems ? begin : nelems;
}

void weft_chunks_each(const struct weft_group *group, void *dest, const void *source, size_t nelems,
                      const struct weft_fold *fold, weft_block_body *body) {
    size_t elem = fold->elem_bytes, bytes = nelems * elem, step = WEFT_CHUNK_BLOCK_BYTES / elem;
    const void *sources[group->npes];
    void *dests[group->npes];
    for (int member = 0; member < group->npes; member++) {
        sources[member] = weft_group_near(group, source, bytes, member);
        dests[member] = weft_group_near(group, dest, bytes, member);
    }
    size_t end = weft_chunk_begin(nelems, elem, group->me + 1, group->npes);
    struct weft_block block = {.sources = sources, .dests = dests};
    block.stream = weft_stream_wanted(2 * bytes);
    block.first = weft_chunk_begin(nelems, elem, group->me, group->npes);
    group->sync(group);
    for (; block.first < end; block.first += step) {
        block.nelems = end - block.first < step ? end - block.first : step;
        body(group, &block, fold);
    }
    group->sync(group);
}
