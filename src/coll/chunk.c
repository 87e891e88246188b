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
                      const struct weft_fold *fold, weft_chunk_body *body) {
    size_t elem = fold->elem_bytes, bytes = nelems * elem, step = WEFT_CHUNK_BLOCK_BYTES / elem;
    const void *sources[group->npes];
    void *dests[group->npes];
    for (int member = 0; member < group->npes; member++) {
        sources[member] = weft_group_near(group, source, bytes, member);
        dests[member] = weft_group_near(group, dest, bytes, member);
    }
    size_t end = weft_chunk_begin(nelems, elem, group->me + 1, group->npes);
    struct weft_chunk chunk = {.sources = sources, .dests = dests};
    chunk.stream = weft_stream_wanted(2 * bytes);
    chunk.first = weft_chunk_begin(nelems, elem, group->me, group->npes);
    group->sync(group);
    for (; chunk.first < end; chunk.first += step) {
        chunk.nelems = end - chunk.first < step ? end - chunk.first : step;
        body(group, &chunk, fold);
    }
    group->sync(group);
}
