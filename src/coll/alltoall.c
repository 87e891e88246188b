/* SPDX-License-Identifier: BSD-3-Clause */
/* alltoall and alltoalls: everybody copies its blocks from everybody. */
#include <string.h>
#include "coll/choice.h"
#include "coll/collective.h"
#include "coll/packet.h"
#include "coll/stream.h"
#include "core/rma.h"

/* How a block lies in dest and in source, in bytes. Elements that follow one another are one. */
struct layout {
    size_t elem_bytes, nelems;
    ptrdiff_t dest_step, source_step;   /* from element to element */
    ptrdiff_t dest_block, source_block; /* from block to block */
    bool stream;                        /* whole blocks go past the cache */
};

/* A block to `to` from `from`, where elements begin to_step and from_step bytes apart. */
static void copy_block(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step,
                       const struct layout *layout) {
    if (layout->stream)
        weft_stream_copy(to, from, layout->elem_bytes);
    else if (layout->nelems == 1)
        weft_rma_copy(to, from, layout->elem_bytes);
    else
        weft_rma_copy_blocks(to, to_step, from, from_step, layout->elem_bytes, layout->nelems);
}

/* Block `member` of dest from a block of a source. */
static void copy(char *dest, int member, const char *block, const struct layout *layout) {
    copy_block(dest + member * layout->dest_block, layout->dest_step, block, layout->source_step,
               layout);
}

/* A packet holds all blocks of its sender, one behind the other. */
static void alltoall_packets(const struct weft_group *group, char *dest, const char *source,
                             const struct layout *layout) {
    struct weft_team *team = group->team;
    ptrdiff_t elem = (ptrdiff_t)layout->elem_bytes, bytes = (ptrdiff_t)layout->nelems * elem;
    weft_packet_next(team, group->call);
    char *payload = (char *)weft_packet_mine(team, group->call)->payload;
    for (int member = 0; member < group->npes; member++)
        if (member != group->me)
            copy_block(payload + member * bytes, elem, source + member * layout->source_block,
                       layout->source_step, layout);
    weft_packet_send(team);
    copy(dest, group->me, source + group->me * layout->source_block, layout);
    for (int distance = 1; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        const char *theirs = (const char *)weft_packet_from(team, member, group->call)->payload;
        copy_block(dest + member * layout->dest_block, layout->dest_step,
                   theirs + group->me * bytes, elem, layout);
    }
    weft_packets_finish_exchange(team);
}

static void alltoall_direct(const struct weft_group *group, char *dest, const char *source,
                            const struct layout *layout) {
    const char *block = source + group->me * layout->source_block;
    size_t span = (layout->nelems - 1) * (size_t)layout->source_step + layout->elem_bytes;
    copy(dest, group->me, block, layout);
    group->sync(group);
    for (int distance = 1; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        copy(dest, member, weft_group_near(group, block, span, member), layout);
    }
    group->sync(group);
}

static void alltoall(const struct weft_group *group, void *dest, const void *source,
                     struct layout *layout) {
    size_t all = layout->nelems * layout->elem_bytes * (size_t)group->npes;
    layout->stream = layout->nelems == 1 && weft_stream_wanted(2 * all);
    if (group->npes == 1)
        copy(dest, 0, source, layout);
    else if (group->team && weft_choice_packet(WEFT_ALLTOALL, all, group->npes))
        alltoall_packets(group, dest, source, layout);
    else
        alltoall_direct(group, dest, source, layout);
}

void weft_group_alltoall(const struct weft_group *group, void *dest, const void *source,
                         size_t bytes) {
    ptrdiff_t step = (ptrdiff_t)bytes;
    struct layout layout = {bytes, 1, step, step, step, step, false};
    alltoall(group, dest, source, &layout);
}

void weft_group_alltoalls(const struct weft_group *group, void *dest, const void *source,
                          const struct weft_blocks_shape *shape) {
    ptrdiff_t nelems = (ptrdiff_t)shape->nelems, elem = (ptrdiff_t)shape->elem_bytes;
    struct layout layout = {.elem_bytes = shape->elem_bytes,
                            .nelems = shape->nelems,
                            .dest_step = shape->dest_stride * elem,
                            .source_step = shape->source_stride * elem,
                            .dest_block = shape->dest_stride * elem * nelems,
                            .source_block = shape->source_stride * elem * nelems};
    alltoall(group, dest, source, &layout);
}
