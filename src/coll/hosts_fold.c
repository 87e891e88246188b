/* SPDX-License-Identifier: BSD-3-Clause */
/* If the members of each host are consecutive, reductions are passed along the hosts. Otherwise
 * each member folds a chunk that it pulls from all members, and the chunks are gathered: so a byte
 * of a result is sent to a host once, and a byte of a source once, to the member that folds it.
 * Sources are also pulled if they have fewer bytes than a host's partial result. */
#include <stdlib.h>
#include "coll/hosts.h"

static void fold_and_gather(struct weft_host_push *push, void *dest, const void *source,
                            const struct weft_folding *folding) {
    const struct weft_group *group = push->group;
    struct weft_hosts_block blocks[group->npes];
    size_t elem = folding->fold->elem_bytes;
    if (!folding->vector || !folding->vector->entered)
        weft_mover_meet(&weft_mover_far, group);
    weft_plan_fold_chunk(group, &weft_mover_far, dest, source, folding, false);
    if (folding->vector && folding->vector->source_block > 0) {
        weft_mover_meet(&weft_mover_far, group);
        weft_host_push_give_back(push);
        return;
    }
    for (int member = 0; member < group->npes; member++) {
        size_t begin = weft_plan_chunk_begin(group, folding, member) * elem;
        size_t bytes = weft_plan_chunk_begin(group, folding, member + 1) * elem - begin;
        bool near = weft_host_push_is_near(push, member);
        char *at = (char *)dest + begin;
        if (member != group->me && bytes > 0)
            at = near ? weft_group_near(group, at, bytes, member) : NULL;
        blocks[member] = (struct weft_hosts_block){begin, bytes, at};
    }
    weft_host_push_meet(push, 1);
    weft_hosts_gather(push, dest, blocks);
    weft_host_push_end(push);
}

/* Compares the bytes that are sent to the next host for an element: a partial result, or the
 * sources of a host's members. A reduce-scatter also sends the result, so it pulls if both are
 * equal. */
bool weft_hosts_fold_goes_along(const struct weft_levels *levels, const struct weft_fold *fold,
                                bool scatter) {
    size_t pulled = (size_t)levels->least * fold->elem_bytes;
    return levels->in_turn && weft_partial_bytes(fold) + scatter <= pulled;
}

void weft_hosts_fold(const struct weft_group *group, void *dest, const void *source,
                     const struct weft_folding *folding) {
    struct weft_host_push push = weft_host_push_of(group);
    bool scatter = folding->vector && folding->vector->source_block > 0;
    if (weft_hosts_fold_goes_along(push.levels, folding->fold, scatter)) {
        weft_hosts_fold_along(&push, dest, source, folding);
    } else if (folding->of == WEFT_FOLD_OF_ALL) {
        fold_and_gather(&push, dest, source, folding);
    } else {
        weft_plan_fold(group, &weft_mover_far, dest, source, folding);
        weft_host_push_give_back(&push);
    }
}
