/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithm of a data-moving collective of a team. Small payloads are sent in packets: they
 * are copied once more, but need one synchronisation instead of two, or none to wait for. Large
 * payloads are read in place. The choice depends only on sizes, so it is the same on all
 * members. */
#ifndef WEFT_COLL_CHOICE_H
#define WEFT_COLL_CHOICE_H

#include "coll/host_packets.h"
#include "coll/move.h"

enum weft_family {
    WEFT_BROADCAST,
    WEFT_COLLECT,
    WEFT_FCOLLECT,
    WEFT_ALLTOALL,
    WEFT_REDUCE,
    WEFT_SCAN,
    WEFT_FAMILIES,
};

struct weft_choice {
    const char *name;
    size_t packet_bytes_max; /* of one member; at most WEFT_PACKET_BYTES */
    size_t total_bytes_max;  /* of all members */
    const char *small, *large;
};
extern const struct weft_choice weft_choices[WEFT_FAMILIES];

/* Returns whether a member's `bytes` are few enough for its packet. */
static inline bool weft_choice_packet(enum weft_family family, size_t bytes, int npes) {
    const struct weft_choice *choice = &weft_choices[family];
    return bytes <= choice->packet_bytes_max && bytes * (size_t)npes <= choice->total_bytes_max;
}

/* Returns whether packets are used: only in teams of several members, and only if processors move
 * the data. */
static inline bool weft_choice_small(const struct weft_group *group, const struct weft_mover *mover,
                                     enum weft_family family, size_t bytes) {
    return mover->in_packets && group->team && group->npes > 1 &&
           weft_choice_packet(family, bytes, group->npes);
}

/* Returns whether packets are used between hosts: they save so much time that only their room is a
 * limit. */
static inline bool weft_choice_far(const struct weft_group *group, const struct weft_mover *mover,
                                   struct weft_packet_layout layout) {
    return mover == &weft_mover_far && group->team && weft_host_packets_hold(group->team, layout);
}

/* Returns whether packets are used by a family that gathers all packets, with or without far
 * members (coll/host_packets.h). */
static inline bool weft_choice_gathered(const struct weft_group *group,
                                        const struct weft_mover *mover, enum weft_family family,
                                        size_t bytes) {
    return mover->in_packets
               ? weft_choice_small(group, mover, family, bytes)
               : weft_choice_far(group, mover, (struct weft_packet_layout){.whole = bytes});
}

/* Returns the largest `bytes` for which weft_choice_packet is true. */
static inline size_t weft_choice_packet_max(enum weft_family family, int npes) {
    const struct weft_choice *choice = &weft_choices[family];
    size_t share = choice->total_bytes_max / (size_t)npes;
    return share < choice->packet_bytes_max ? share : choice->packet_bytes_max;
}

/* Writes a line that describes the algorithms of a family, such as "broadcast  up to 1.98 KiB a
 * PE: a packet of the root; else: ...". Returns what snprintf does. */
int weft_choice_describe(char *text, size_t bytes, enum weft_family family, int npes);

#endif
