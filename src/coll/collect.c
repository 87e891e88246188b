/* SPDX-License-Identifier: BSD-3-Clause */
/* fcollect and collect: everybody copies from everybody. */
#include <string.h>
#include "coll/choice.h"
#include "coll/collective.h"
#include "coll/packet.h"
#include "coll/stream.h"
#include "core/rma.h"

/* --- All bring the same ---------------------------------------------------------------------- */

static void fcollect_packets(const struct weft_group *group, char *dest, const void *source,
                             size_t bytes) {
    const void *payloads[group->npes];
    weft_packets_gather(group->team, source, bytes, payloads, group->call);
    for (int member = 0; member < group->npes; member++)
        weft_rma_copy(dest + (size_t)member * bytes, payloads[member], bytes);
}

/* The own part goes first: while the others enter. */
static void fcollect_direct(const struct weft_group *group, char *dest, const void *source,
                            size_t bytes) {
    bool stream = weft_stream_wanted(2 * (size_t)group->npes * bytes);
    weft_stream_or_copy(stream, dest + (size_t)group->me * bytes, source, bytes);
    group->sync(group);
    for (int distance = 1; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        weft_stream_or_copy(stream, dest + (size_t)member * bytes,
                            weft_group_near(group, source, bytes, member), bytes);
    }
    group->sync(group);
}

void weft_group_fcollect(const struct weft_group *group, void *dest, const void *source,
                         size_t bytes) {
    if (group->npes == 1)
        memcpy(dest, source, bytes);
    else if (group->team && weft_choice_packet(WEFT_FCOLLECT, bytes, group->npes))
        fcollect_packets(group, dest, source, bytes);
    else
        fcollect_direct(group, dest, source, bytes);
}

/* --- Each brings what it likes --------------------------------------------------------------- */

/* Sizes go round first, and small sources with them: sizes[member] and, where a source came along,
 * where it is. What is left to be read directly is the same on all members. */
static bool collect_packets(const struct weft_group *group, const void *source, size_t bytes,
                            size_t *sizes, const void **sources) {
    struct weft_team *team = group->team;
    bool direct = false;
    weft_packet_next(team, group->call);
    struct weft_packet *mine = weft_packet_mine(team, group->call);
    mine->bytes = bytes;
    if (bytes > 0 && weft_choice_packet(WEFT_COLLECT, bytes, group->npes))
        memcpy(mine->payload, source, bytes);
    weft_packet_send(team);
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        const struct weft_packet *packet = weft_packet_from(team, member, group->call);
        sizes[member] = packet->bytes;
        bool inside = weft_choice_packet(WEFT_COLLECT, packet->bytes, group->npes);
        sources[member] = inside ? packet->payload : NULL;
        direct |= !inside;
    }
    weft_packets_finish_exchange(team);
    return direct;
}

static bool collect_sizes(const struct weft_group *group, size_t bytes, size_t *sizes,
                          const void **sources) {
    group->share(group, bytes, sizes);
    for (int member = 0; member < group->npes; member++)
        sources[member] = NULL;
    return true;
}

void weft_group_collect(const struct weft_group *group, void *dest, const void *source,
                        size_t bytes) {
    size_t sizes[group->npes], offsets[group->npes], offset = 0;
    const void *sources[group->npes];
    bool direct = group->team ? collect_packets(group, source, bytes, sizes, sources)
                              : collect_sizes(group, bytes, sizes, sources);
    for (int member = 0; member < group->npes; offset += sizes[member++])
        offsets[member] = offset;
    bool stream = weft_stream_wanted(2 * offset);
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        if (sizes[member] == 0)
            continue;
        const void *from = member == group->me ? source : sources[member];
        if (!from)
            from = weft_group_near(group, source, sizes[member], member);
        weft_stream_or_copy(stream, (char *)dest + offsets[member], from, sizes[member]);
    }
    if (direct)
        group->sync(group);
}
