/* SPDX-License-Identifier: BSD-3-Clause */
/* Each member pulls the data that it needs between two meetings: a member's memory is not accessed
 * before that member has entered, nor after the second meeting. */
#include "coll/plan.h"
#include <stdlib.h>
#include "coll/elements.h"
#include "coll/split.h"

/* --- Copies ---------------------------------------------------------------------------------- */

/* Counts all bytes that this member reads, twice, because it writes as many. */
static bool is_streamed(const struct weft_group *group, const struct weft_plan *plan) {
    size_t senders = plan->sender == WEFT_SENDERS_ALL ? (size_t)group->npes : 1;
    return plan->pieces.count == 1 && weft_stream_wanted(2 * senders * plan->pieces.bytes);
}

void weft_plan_copy(const struct weft_group *group, const struct weft_mover *mover,
                    struct weft_plan *plan, void *dest, const void *source) {
    const char *from = weft_plan_source(plan, source, group->me);
    if (group->npes == 1 && mover == &weft_mover_near) { /* no other member */
        if (dest != source)
            weft_pieces_copy(dest, source, &plan->pieces);
        return;
    }
    plan->pieces.stream = is_streamed(group, plan);
    if (!mover->own_first)
        weft_mover_meet(mover, group);
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        char *to = weft_plan_dest(plan, dest, member);
        bool in_place = distance == 0 && to == from;
        if (weft_plan_sends(plan, member) && !in_place)
            mover->pull(group, to, from, &plan->pieces, member);
        if (distance == 0 && mover->own_first)
            weft_mover_meet(mover, group);
    }
    weft_mover_meet(mover, group);
}

/* --- Reductions ------------------------------------------------------------------------------ */

/* The elements [first, first + nelems) that are being folded. parts[member] is a member's part: a
 * copy, or (pull_parts) the original in its place. */
struct fold_stage {
    size_t first, nelems;
    char **parts, *result;
    bool for_all; /* results are for all members, otherwise for this one */
};

enum { STAGE_BYTES = 256 << 10 }; /* of each member's part, at most */

/* A reduction does not write the parts, so near members' parts are read in place. */
static void pull_parts(const struct weft_group *group, const struct weft_mover *mover,
                       const struct fold_stage *stage, const void *source, size_t elem_bytes) {
    struct weft_pieces part = {.bytes = stage->nelems * elem_bytes, .count = 1};
    const char *from = (const char *)source + stage->first * elem_bytes;
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        bool near = mover == &weft_mover_far && !weft_is_far(weft_group_pe(group, member));
        if (near && stage->result)
            stage->parts[member] = weft_group_near(group, from, part.bytes, member);
        else
            mover->pull(group, stage->parts[member], from, &part, member);
    }
    mover->complete();
}

static void push_results(const struct weft_group *group, const struct weft_mover *mover,
                         const struct fold_stage *stage, void *dest, size_t elem_bytes) {
    int count = stage->for_all ? group->npes : 1;
    for (int distance = 0; distance < count; distance++) {
        int member = weft_group_member(group, distance);
        mover->push(group, (char *)dest + stage->first * elem_bytes,
                    stage->result ? stage->result : stage->parts[member],
                    stage->nelems * elem_bytes, member);
    }
    mover->complete(); /* the parts may be overwritten */
}

/* A reduction's result is the last of the parts; the results of a scan replace its sources. */
static void fold_parts(const struct weft_group *group, const struct fold_stage *stage,
                       const struct weft_folding *folding) {
    struct weft_chunk chunk = {(const void *const *)stage->parts, (void *const *)stage->parts,
                               group->npes, 0, stage->nelems};
    if (folding->of == WEFT_FOLD_OF_ALL)
        weft_elements_fold(folding, WEFT_FOLD_WHOLE, stage->result, &chunk);
    else
        weft_fold_scan(folding, &chunk);
}

size_t weft_plan_chunk_begin(const struct weft_group *group, const struct weft_folding *folding,
                             int member) {
    size_t grain = weft_split_grain(folding->fold->elem_bytes);
    return weft_split_begin(folding->nelems, grain, member, group->npes);
}

void weft_plan_fold_chunk(const struct weft_group *group, const struct weft_mover *mover,
                          void *dest, const void *source, const struct weft_folding *folding,
                          bool for_all) {
    size_t elem = folding->fold->elem_bytes, step = STAGE_BYTES / elem;
    size_t block = folding->vector ? folding->vector->source_block : 0;
    size_t begin = block ? 0 : weft_plan_chunk_begin(group, folding, group->me);
    size_t end = block ? folding->nelems : weft_plan_chunk_begin(group, folding, group->me + 1);
    source = (const char *)source + (size_t)group->me * block;
    step = end - begin < step ? end - begin : step;
    char *parts[group->npes + 1], *room = malloc(((size_t)group->npes + 1) * step * elem + 1);
    if (!room)
        weft_job_panic(
            "no memory for copies of the parts of %d members: run fewer PEs on this host",
            group->npes);
    for (int member = 0; member <= group->npes; member++)
        parts[member] = room + (size_t)member * step * elem;
    struct fold_stage stage = {.first = begin, .parts = parts, .for_all = for_all};
    stage.result = folding->of == WEFT_FOLD_OF_ALL ? parts[group->npes] : NULL;
    for (; stage.first < end; stage.first += step) {
        stage.nelems = end - stage.first < step ? end - stage.first : step;
        pull_parts(group, mover, &stage, source, elem);
        fold_parts(group, &stage, folding);
        push_results(group, mover, &stage, dest, elem);
    }
    free(room);
}

void weft_plan_fold(const struct weft_group *group, const struct weft_mover *mover, void *dest,
                    const void *source, const struct weft_folding *folding) {
    weft_mover_meet(mover, group);
    weft_plan_fold_chunk(group, mover, dest, source, folding, true);
    weft_mover_meet(mover, group);
}
