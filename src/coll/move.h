/* SPDX-License-Identifier: BSD-3-Clause */
/* Movers: how bytes get from one member of a group to another. A family says what is to move
 * (coll/plan.h), a mover how; a new one is a table in a file of its own, and its line in
 * weft_mover_of.
 *
 *     near     this processor loads and stores where the others' memory is mapped
 *     far      messages go to the members whose memory is not
 *     device   this PE's GPU copies, and the host waits for it
 *
 * What lies on a stream has a mover of its own kind, which enqueues (coll/on_stream.h). */
#ifndef WEFT_COLL_MOVE_H
#define WEFT_COLL_MOVE_H

#include <stdbool.h>
#include "core/rma.h"
#include "coll/fold.h"
#include "coll/group.h"

/* What moves at once: `count` pieces of `bytes` each, which begin so many bytes apart on either
 * side.
 */
struct weft_pieces {
    size_t bytes, count;
    ptrdiff_t dest_step, source_step;
    bool stream; /* past the cache; of one piece */
};

struct weft_mover {
    /* Completes what this member has begun: without waiting for anybody. */
    void (*complete)(void);

    /* dest here <- source of a member, this one included; and one piece: dest of a member <- source
     * here. The other member's side is named by the address that the object has here. It may be
     * under way on return. Ends the job where that member has no such object. */
    void (*pull)(const struct weft_group *group, void *dest, const void *source,
                 const struct weft_pieces *pieces, int member);
    void (*push)(const struct weft_group *group, void *dest, const void *source, size_t bytes,
                 int member);

    /* All of a reduction, where the mover has a better way than copies and processors; or NULL. */
    void (*fold)(const struct weft_group *group, void *dest, const void *source,
                 const struct weft_folding *folding);

    bool own_first;  /* pulls from itself are best made while the others enter */
    bool in_packets; /* small payloads had better go in packets of the team */
};
extern const struct weft_mover weft_mover_near, weft_mover_far, weft_mover_device;

/* Copies past the cache. Where a collective moves more than the last-level cache holds, its results
 * leave the cache again before anyone reads them, and a plain store would first read the line that
 * it overwrites: non-temporal stores do not. The C library's memcpy does so by the size of one
 * copy; here all that a member touches in the call counts: whether a collective in which each
 * member reads and writes `bytes` in all should stream. What is stored so is visible to others like
 * plain stores. */
bool weft_stream_wanted(size_t bytes);
void weft_stream_copy(void *dest, const void *source, size_t bytes);

/* Who moves between these symmetric arrays: the same on all members, whose arrays are the same
 * objects. */
static inline const struct weft_mover *weft_mover_of(const struct weft_group *group,
                                                     const void *dest, const void *source) {
    if (__builtin_expect(!weft_job.dispatch, 1))
        return &weft_mover_near;
    if (weft_job.devices && (weft_space_holds(dest) || weft_space_holds(source)))
        return &weft_mover_device;
    return group->far ? &weft_mover_far : &weft_mover_near;
}

/* The same where members may bring different sources, and any if nothing is to be read there: a GPU
 * may have to pull if there are devices at all. */
static inline const struct weft_mover *weft_mover_of_any(const struct weft_group *group) {
    if (weft_job.devices)
        return &weft_mover_device;
    return group->far ? &weft_mover_far : &weft_mover_near;
}

/* No member leaves before every member has entered; what a member has begun before, its own
 * transfers among it, is complete for all behind it. */
static inline void weft_mover_meet(const struct weft_mover *mover, const struct weft_group *group) {
    mover->complete();
    group->sync(group);
}

/* dest <- source, both of them mapped here. */
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

/* Bytes of the source from its first piece to the end of the last. */
static inline size_t weft_pieces_span(const struct weft_pieces *pieces) {
    return (pieces->count - 1) * (size_t)pieces->source_step + pieces->bytes;
}

/* Pieces of more than one as an operation table takes them. */
static inline struct weft_strided weft_pieces_shape(const struct weft_pieces *pieces) {
    ptrdiff_t bytes = (ptrdiff_t)pieces->bytes;
    return (struct weft_strided){pieces->bytes, 1, pieces->count, pieces->dest_step / bytes,
                                 pieces->source_step / bytes};
}

#endif
