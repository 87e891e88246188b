/* SPDX-License-Identifier: BSD-3-Clause */
/* fcollect and collect: every member copies from every member. */
#include <string.h>
#include "coll/choice.h"
#include "coll/collective.h"
#include "coll/hosts.h"
#include "coll/place.h"

/* --- fcollect: equal sizes -------------------------------------------------------------------- */

static void fcollect_packets(const struct weft_group *group, char *dest, const void *source,
                             size_t bytes) {
    const void *payloads[group->npes];
    weft_packets_gather(group->team, source, bytes, payloads);
    for (int member = 0; member < group->npes; member++)
        weft_rma_copy(dest + (size_t)member * bytes, payloads[member], bytes);
}

void weft_group_fcollect(const struct weft_group *group, void *dest, const void *source,
                         size_t bytes) {
    const struct weft_mover *mover = weft_mover_of(group, dest, source);
    if (weft_choice_gathered(group, mover, WEFT_FCOLLECT, bytes)) {
        fcollect_packets(group, dest, source, bytes);
        return;
    }
    if (mover == &weft_mover_far) {
        weft_hosts_fcollect(group, dest, source, bytes);
        return;
    }
    struct weft_plan plan = weft_plan_fcollect(bytes);
    weft_plan_copy(group, mover, &plan, dest, source);
}

/* --- collect: any size from each member ------------------------------------------------------- */

/* A member's contribution. It may be empty and then has no source, so each member posts the place
 * of its own. */
struct contribution {
    size_t bytes;
    bool inside;        /* in its packet, which can be read here; otherwise it must be pulled */
    const void *source; /* the packet's payload, or the address of the object on this PE */
};

/* Exchanges the sizes, and with them small sources, or the places of large ones. Returns whether
 * any source must be pulled: the same on all members. */
static bool collect_packets(const struct weft_group *group, const struct weft_mover *mover,
                            const void *source, size_t bytes, struct contribution *all) {
    struct weft_team *team = group->team;
    bool any = false;
    weft_packet_next(team);
    struct weft_packet *mine = weft_packet_mine(team);
    struct weft_place place = weft_place_of(source, bytes);
    mine->bytes = bytes;
    if (!weft_choice_small(group, mover, WEFT_COLLECT, bytes))
        memcpy(mine->payload, &place, sizeof place);
    else if (bytes > 0)
        memcpy(mine->payload, source, bytes);
    weft_packet_send(team);
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        const struct weft_packet *packet = weft_packet_from(team, member);
        bool inside = weft_choice_small(group, mover, WEFT_COLLECT, packet->bytes);
        memcpy(&place, packet->payload, sizeof place);
        all[member] = (struct contribution){.bytes = packet->bytes, .inside = inside};
        all[member].source = inside ? packet->payload : weft_place_here(place);
        any |= !inside;
    }
    weft_packets_finish_exchange(team);
    return any;
}

/* As collect_packets, for teams with far members. Packets include small sources only if the
 * processor can read them. */
static bool collect_host_packets(const struct weft_group *group, const struct weft_mover *mover,
                                 const void *source, size_t bytes, struct contribution *all) {
    struct shown {
        size_t bytes;
        struct weft_place place;
        unsigned char payload[WEFT_POST_BYTES - sizeof(size_t) - sizeof(struct weft_place)];
    } mine = {bytes, weft_place_of(source, bytes), {0}};
    size_t inside_max = mover == &weft_mover_far ? sizeof mine.payload : 0;
    const void *payloads[group->npes];
    bool any = false;
    if (bytes > 0 && bytes <= inside_max)
        memcpy(mine.payload, source, bytes);
    weft_packets_gather(group->team, &mine, sizeof mine, payloads);
    for (int member = 0; member < group->npes; member++) {
        const struct shown *theirs = member == group->me ? &mine : payloads[member];
        bool inside = theirs->bytes <= inside_max;
        all[member] = (struct contribution){theirs->bytes, inside,
                                            member == group->me ? source
                                            : inside            ? theirs->payload
                                                                : weft_place_here(theirs->place)};
        any |= !inside;
    }
    return any;
}

static bool collect_sizes(const struct weft_group *group, const void *source, size_t bytes,
                          struct contribution *all) {
    size_t sizes[group->npes];
    group->set->share(group, bytes, sizes);
    for (int member = 0; member < group->npes; member++)
        all[member] = (struct contribution){.bytes = sizes[member], .source = source};
    return true;
}

static void pull_all(const struct weft_group *group, const struct weft_mover *mover, char *dest,
                     const struct contribution *all) {
    size_t offsets[group->npes], total = 0;
    for (int member = 0; member < group->npes; total += all[member++].bytes)
        offsets[member] = total;
    bool stream = mover->in_packets && weft_stream_wanted(2 * total);
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        const struct contribution *theirs = &all[member];
        struct weft_pieces pieces = {.bytes = theirs->bytes, .count = 1, .stream = stream};
        if (theirs->inside)
            weft_pieces_copy(dest + offsets[member], theirs->source, &pieces);
        else if (theirs->bytes > 0)
            mover->pull(group, dest + offsets[member], theirs->source, &pieces, member);
    }
}

/* Gathers the contributions that were not in packets. If all were, no further synchronisation is
 * needed. */
static void collect_far(const struct weft_group *group, char *dest, const void *source,
                        size_t bytes) {
    struct contribution all[group->npes];
    struct weft_hosts_block blocks[group->npes];
    struct weft_host_push push = weft_host_push_of(group);
    size_t offset = 0;
    bool crosses = group->team ? collect_host_packets(group, &weft_mover_far, source, bytes, all)
                               : collect_sizes(group, source, bytes, all);
    if (crosses)
        weft_host_push_meet(&push, 1);
    for (int member = 0; member < group->npes; offset += all[member++].bytes) {
        const struct contribution *theirs = &all[member];
        bool near = weft_host_push_is_near(&push, member);
        blocks[member] = (struct weft_hosts_block){.offset = offset};
        if (theirs->inside && theirs->bytes > 0)
            weft_rma_copy(dest + offset, theirs->source, theirs->bytes);
        if (theirs->inside || theirs->bytes == 0)
            continue;
        blocks[member].bytes = theirs->bytes;
        blocks[member].source = member == group->me ? source
                                : near
                                    ? weft_group_near(group, theirs->source, theirs->bytes, member)
                                    : NULL;
    }
    if (crosses) {
        weft_hosts_gather(&push, dest, blocks);
        weft_host_push_end(&push);
    } else {
        weft_host_push_give_back(&push);
    }
}

void weft_group_collect(const struct weft_group *group, void *dest, const void *source,
                        size_t bytes) {
    const struct weft_mover *mover = weft_mover_of_any(group);
    struct contribution all[group->npes];
    if (mover == &weft_mover_far) {
        collect_far(group, dest, source, bytes);
        return;
    }
    mover->complete();
    bool pulls = !group->team ? collect_sizes(group, source, bytes, all)
                 : group->far ? collect_host_packets(group, mover, source, bytes, all)
                              : collect_packets(group, mover, source, bytes, all);
    pull_all(group, mover, dest, all);
    if (pulls)
        weft_mover_meet(mover, group);
}
