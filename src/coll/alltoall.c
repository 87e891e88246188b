/* SPDX-License-Identifier: BSD-3-Clause */
/* alltoall and alltoalls: everybody copies its blocks from everybody. */
#include <string.h>
#include "coll/choice.h"
#include "coll/collective.h"
#include "coll/packet.h"
#include "core/rma.h"

/* How a block lies in dest and in source, in bytes. Elements that follow one another are one. */
struct layout {
    size_t elem_bytes, nelems;
    ptrdiff_t dest_step, source_step;   /* from element to element */
    ptrdiff_t dest_block, source_block; /* from block to block */
};

static void copy(void *dest, const void *source, const struct layout *layout) {
    weft_copy_blocks(dest, layout->dest_step, source, layout->source_step, layout->elem_bytes,
                     layout->nelems);
}

/* A packet holds all blocks of its sender, one behind the other. */
static void alltoall_packets(const struct weft_group *group, char *dest, const char *source,
                             const struct layout *layout) {
    struct weft_team *team = group->team;
    size_t elem = layout->elem_bytes, bytes = layout->nelems * elem;
    weft_packet_next(team, group->call);
    unsigned char *payload = weft_packet_mine(team, group->call)->payload;
    for (int member = 0; member < group->npes; member++)
        weft_copy_blocks(payload + (size_t)member * bytes, (ptrdiff_t)elem,
                         source + member * layout->source_block, layout->source_step, elem,
                         layout->nelems);
    weft_packet_send(team);
    weft_packets_wait_sent(team, group->call);
    for (int member = 0; member < group->npes; member++) {
        const struct weft_packet *packet = weft_packet_from(team, member, group->call);
        weft_copy_blocks(dest + member * layout->dest_block, layout->dest_step,
                         packet->payload + (size_t)group->me * bytes, (ptrdiff_t)elem, elem,
                         layout->nelems);
    }
}

static void alltoall_direct(const struct weft_group *group, char *dest, const char *source,
                            const struct layout *layout) {
    const char *block = source + group->me * layout->source_block;
    size_t span = (layout->nelems - 1) * (size_t)layout->source_step + layout->elem_bytes;
    copy(dest + group->me * layout->dest_block, block, layout);
    group->sync(group);
    for (int distance = 1; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        copy(dest + member * layout->dest_block, weft_group_near(group, block, span, member),
             layout);
    }
    group->sync(group);
}

static void alltoall(const struct weft_group *group, void *dest, const void *source,
                     const struct layout *layout) {
    size_t all = layout->nelems * layout->elem_bytes * (size_t)group->npes;
    if (group->npes == 1)
        copy(dest, source, layout);
    else if (group->team && weft_choice_packet(WEFT_ALLTOALL, all, group->npes))
        alltoall_packets(group, dest, source, layout);
    else
        alltoall_direct(group, dest, source, layout);
}

void weft_alltoall(const struct weft_group *group, void *dest, const void *source, size_t bytes) {
    ptrdiff_t step = (ptrdiff_t)bytes;
    struct layout layout = {bytes, 1, step, step, step, step};
    alltoall(group, dest, source, &layout);
}

void weft_alltoalls(const struct weft_group *group, void *dest, const void *source,
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
