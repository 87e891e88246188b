/* SPDX-License-Identifier: BSD-3-Clause */
/* Movers: how bytes are moved between members of a group. A family describes what is moved
 * (coll/plan.h), and a mover moves it. A new mover is a table in a file of its own and a line in
 * weft_mover_of.
 *
 *     near     this processor loads and stores the others' mapped memory
 *     far      messages to the members whose memory is not mapped
 *     device   this PE's GPU copies, and the host waits for it
 *
 * Calls on streams have movers of their own, which enqueue (coll/on_stream.h). */
#ifndef WEFT_COLL_MOVE_H
#define WEFT_COLL_MOVE_H

#include <stdbool.h>
#include "core/rma.h"
#include "coll/fold.h"
#include "coll/group.h"

/* One move: `count` pieces of `bytes` each, which begin dest_step and source_step bytes apart. */
struct weft_pieces {
    size_t bytes, count;
    ptrdiff_t dest_step, source_step;
    bool stream; /* past the cache; of one piece only */
};

struct weft_mover {
    /* Completes the operations that this member has begun, without waiting for other members. */
    void (*complete)(void);

    /* pull copies from a member's source, which may be this member's, to dest here; push copies one
     * piece from source here to a member's dest. The other member's object is given by its address
     * on this PE. The copy may be in progress on return. Ends the job if the member has no such
     * object. */
    void (*pull)(const struct weft_group *group, void *dest, const void *source,
                 const struct weft_pieces *pieces, int member);
    void (*push)(const struct weft_group *group, void *dest, const void *source, size_t bytes,
                 int member);

    /* Executes a reduction, if the mover has a better way than copies and processors; otherwise
     * NULL. */
    void (*fold)(const struct weft_group *group, void *dest, const void *source,
                 const struct weft_folding *folding);

    bool own_first;  /* pulls from itself precede the meeting, while the others enter */
    bool in_packets; /* small payloads are better sent in packets of the team */
};
extern const struct weft_mover weft_mover_near, weft_mover_far, weft_mover_device;

/* Copies past the cache. If a collective moves more than the last-level cache holds, its results
 * leave the cache before they are read, and a plain store would first read the line that it
 * overwrites; non-temporal stores do not. The C library's memcpy decides by the size of one copy;
 * here all bytes that a member touches in the call count: weft_stream_wanted returns whether a
 * collective in which each member reads and writes `bytes` in total should stream. Streamed stores
 * become visible to others like plain stores. */
bool weft_stream_wanted(size_t bytes);
void weft_stream_copy(void *dest, const void *source, size_t bytes);

/* Returns the mover between these symmetric arrays: the same on all members, since they pass the
 * same objects. */
static inline const struct weft_mover *weft_mover_of(const struct weft_group *group,
                                                     const void *dest, const void *source) {
    if (__builtin_expect(!weft_job.dispatch, 1))
        return &weft_mover_near;
    if (weft_job.devices && (weft_space_holds(dest) || weft_space_holds(source)))
        return &weft_mover_device;
    return group->far ? &weft_mover_far : &weft_mover_near;
}

/* As weft_mover_of, for sources that differ between members, of which any may be empty: if there
 * are devices at all, a GPU may have to pull. */
static inline const struct weft_mover *weft_mover_of_any(const struct weft_group *group) {
    if (weft_job.devices)
        return &weft_mover_device;
    return group->far ? &weft_mover_far : &weft_mover_near;
}

/* No member leaves before every member has entered. Operations that a member has begun before, its
 * own transfers included, are complete for all members after it. */
static inline void weft_mover_meet(const struct weft_mover *mover, const struct weft_group *group) {
    mover->complete();
    group->sync(group);
}

/* dest <- source, both mapped here. */
static inline __attribute__((always_inline)) void weft_pieces_copy(
    void *dest, const void *source, const struct weft_pieces *pieces) {
    if (pieces->stream)
        weft_stream_copy(dest, source, pieces->bytes);
    else if (pieces->count == 1)
        weft_rma_copy(dest, source, pieces->bytes);
    else
        weft_rma_copy_strided(&(struct weft_strided_copy){
            dest, source, pieces->dest_step, pieces->source_step, pieces->bytes, pieces->count});
}

/* Returns the bytes of the source from its first piece to the end of the last. */
static inline size_t weft_pieces_span(const struct weft_pieces *pieces) {
    return (pieces->count - 1) * (size_t)pieces->source_step + pieces->bytes;
}

/* Returns the shape of several pieces for a table of operations. */
static inline struct weft_strided weft_pieces_shape(const struct weft_pieces *pieces) {
    ptrdiff_t bytes = (ptrdiff_t)pieces->bytes;
    return (struct weft_strided){pieces->bytes, 1, pieces->count, pieces->dest_step / bytes,
                                 pieces->source_step / bytes};
}

#endif
