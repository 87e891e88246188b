/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions and scans. Small ones: every member folds the packets of all members, or of those up
 * to itself. Large ones: each member folds a chunk of the results for all members (coll/plan.h). */
#include <string.h>
#include "coll/choice.h"
#include "coll/collective.h"
#include "coll/elements.h"
#include "coll/hosts.h"

static void fold_packets(const struct weft_group *group, void *dest, const void *source,
                         const struct weft_folding *folding) {
    const void *sources[group->npes];
    size_t bytes = folding->nelems * folding->fold->elem_bytes;
    weft_packets_gather(group->team, source, bytes, sources);
    int nsources = folding->of == WEFT_FOLD_OF_ALL
                       ? group->npes
                       : group->me + (folding->of == WEFT_FOLD_UP_TO_OWN);
    struct weft_chunk chunk = {.sources = sources, .n = nsources, .nelems = folding->nelems};
    if (nsources > 0)
        weft_elements_fold(folding, WEFT_FOLD_WHOLE, dest, &chunk);
    else
        memset(dest, 0, bytes);
}

/* No other member's elements are needed: a copy, or zeros, which the processor writes. */
static void fold_alone(const struct weft_group *group, const struct weft_mover *mover, void *dest,
                       const void *source, const struct weft_folding *folding) {
    size_t bytes = folding->nelems * folding->fold->elem_bytes;
    struct weft_plan plan = weft_plan_reduce(bytes);
    if (folding->of == WEFT_FOLD_BEFORE_OWN)
        memset(dest, 0, bytes);
    else
        weft_plan_copy(group, mover, &plan, dest, source);
}

void weft_group_fold(const struct weft_group *group, void *dest, const void *source,
                     const struct weft_folding *folding) {
    const struct weft_mover *mover = weft_mover_of(group, dest, source);
    size_t bytes = folding->nelems * folding->fold->elem_bytes;
    enum weft_family family = folding->of == WEFT_FOLD_OF_ALL ? WEFT_REDUCE : WEFT_SCAN;
    if (weft_choice_gathered(group, mover, family, bytes))
        fold_packets(group, dest, source, folding);
    else if (group->npes == 1 && (mover->in_packets || folding->of != WEFT_FOLD_BEFORE_OWN))
        fold_alone(group, mover, dest, source, folding);
    else if (mover->fold)
        mover->fold(group, dest, source, folding);
    else if (mover == &weft_mover_far)
        weft_hosts_fold(group, dest, source, folding);
    else
        weft_plan_fold(group, mover, dest, source, folding);
}
