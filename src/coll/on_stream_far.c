/* SPDX-License-Identifier: BSD-3-Clause */
/* What is copied is pushed to the members, as the general way of near ones has it: only dest has to
 * be symmetric. A reduction goes through the workspace of the second team, in bands:
 *
 *   source --this GPU--> input | all fold a chunk of all inputs | output | all gather them --> dest
 *
 * Every element is folded over the members in their order, so it has the bits of one host. */
#include "coll/on_stream_far.h"
#include <stdlib.h>
#include "core/far.h"
#include "coll/elements.h"
#include "coll/split.h"

/* --- Copies ----------------------------------------------------------------------------------- */

struct far_move {
    struct weft_team *meets;
    struct weft_plan plan;
    char *dest;
    const char *source;
};

static void push_blocks(const struct weft_group *group, const struct far_move *move) {
    char *to = weft_plan_dest(&move->plan, move->dest, group->me);
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        const char *from = weft_plan_source(&move->plan, move->source, member);
        if (distance > 0 || to != from)
            weft_mover_device.push(group, to, from, move->plan.pieces.bytes, member);
    }
}

static void far_move_run(const void *arguments) {
    const struct far_move *move = arguments;
    struct weft_group group = weft_group_of(move->meets);
    weft_mover_meet(&weft_mover_device, &group);
    if (weft_plan_sends(&move->plan, group.me))
        push_blocks(&group, move);
    weft_mover_meet(&weft_mover_device, &group);
}

int weft_stream_far_move(const struct weft_on_stream *on, const struct weft_plan *plan, void *dest,
                         const void *source) {
    size_t blocks = plan->dest_block ? (size_t)on->team->npes : 1;
    struct far_move move = {weft_proxy_team(on->team), *plan, dest, source};
    struct weft_proxy_task task = {far_move_run, &move, sizeof move};
    void *unused;
    int rc = weft_stream_near(&unused, "dest", dest, weft_saturated(plan->pieces.bytes, blocks),
                              weft_job.pe);
    return rc ? rc : weft_proxy_run(on->team, &task, on->stream);
}

/* --- Reductions ------------------------------------------------------------------------------- */

struct far_fold {
    struct weft_team *meets;
    char *dest;
    const char *source;
    struct weft_stream_folding folding;
    size_t elem_bytes, times; /* source has so many blocks */
};

/* Elements [first, first + nelems) of each block in work. */
struct fold_band {
    const struct far_fold *fold;
    size_t first, nelems;
    char *input, *output; /* in this PE's workspace */
    char *room;           /* for the parts of far members, and the results of all */
};

enum { WORK_BYTES = 4 << 20 }; /* of the workspace */

/* Where a near member has what this one has at p in its workspace. */
static const char *near_at(const struct weft_team *team, const char *p, int member) {
    const char *own = weft_team_workspace_of(team, team->my_pe);
    return (const char *)weft_team_workspace_of(team, member) + (p - own);
}

/* What a member has at p, here: in place, or brought to `room`, and there behind a quiet. */
static const char *member_bytes(const struct weft_team *team, const char *p, size_t bytes,
                                int member, char *room) {
    if (!weft_team_member_is_far(team, member))
        return near_at(team, p, member);
    if (bytes > 0)
        weft_far_get(room, p, bytes, weft_team_world_pe(team, member), true);
    return room;
}

static void band_bring(const struct fold_band *band) {
    const struct far_fold *fold = band->fold;
    size_t elem = fold->elem_bytes, bytes = band->nelems * elem;
    for (size_t block = 0; block < fold->times; block++)
        weft_device_bring(band->input + block * bytes,
                          fold->source + (block * fold->folding.nelems + band->first) * elem,
                          bytes);
}

/* Folds [first, first + nelems) of a block of all members' inputs to `to`. */
static void band_fold(const struct fold_band *band, size_t block, size_t first, size_t nelems,
                      char *to) {
    const struct far_fold *fold = band->fold;
    const struct weft_team *team = fold->meets;
    size_t elem = fold->elem_bytes, bytes = nelems * elem;
    const void *parts[team->npes];
    const char *at = band->input + (block * band->nelems + first) * elem;
    for (int member = 0; member < team->npes; member++)
        parts[member] = member_bytes(team, at, bytes, member, band->room + (size_t)member * bytes);
    weft_far_quiet();
    if (nelems > 0)
        weft_elements_fold(to, &fold->folding.reduction, parts, team->npes, nelems);
}

/* The results of all members, side by side. */
static void band_gather(const struct fold_band *band, size_t grain) {
    const struct weft_team *team = band->fold->meets;
    size_t elem = band->fold->elem_bytes;
    for (int member = 0; member < team->npes; member++) {
        size_t begin = weft_split_begin(band->nelems, grain, member, team->npes) * elem;
        size_t end = weft_split_begin(band->nelems, grain, member + 1, team->npes) * elem;
        char *to = band->room + begin;
        const char *from = member_bytes(team, band->output + begin, end - begin, member, to);
        if (from != to)
            memcpy(to, from, end - begin);
    }
    weft_far_quiet();
}

static void band_run(const struct fold_band *band) {
    const struct far_fold *fold = band->fold;
    struct weft_team *team = fold->meets;
    size_t elem = fold->elem_bytes, grain = weft_split_grain(elem);
    band_bring(band);
    weft_sync_barrier(team);
    if (fold->times > 1) {
        band_fold(band, (size_t)team->my_pe, 0, band->nelems, band->output);
    } else {
        size_t begin = weft_split_begin(band->nelems, grain, team->my_pe, team->npes);
        size_t end = weft_split_begin(band->nelems, grain, team->my_pe + 1, team->npes);
        band_fold(band, 0, begin, end - begin, band->output + begin * elem);
    }
    weft_sync_barrier(team);
    if (fold->times == 1)
        band_gather(band, grain);
    weft_device_bring(fold->dest + band->first * elem, fold->times > 1 ? band->output : band->room,
                      band->nelems * elem);
}

static void far_fold_run(const void *arguments) {
    const struct far_fold *fold = arguments;
    size_t nelems = fold->folding.nelems, npes = (size_t)fold->meets->npes;
    size_t capacity = weft_team_workspace_capacity();
    size_t work = capacity < WORK_BYTES ? capacity : WORK_BYTES;
    size_t width = work / ((fold->times + 1) * fold->elem_bytes);
    struct fold_band band = {.fold = fold};
    width = width < nelems ? width : nelems;
    band.room = malloc(npes * width * fold->elem_bytes + 1);
    if (!band.room)
        weft_job_panic("no memory for the parts of %zu members", npes);
    if (weft_team_workspace_commit(fold->meets, (fold->times + 1) * width * fold->elem_bytes))
        weft_job_panic_bare("%s", weft_fail_text());
    band.input = weft_team_workspace_of(fold->meets, fold->meets->my_pe);
    band.output = band.input + fold->times * width * fold->elem_bytes;
    for (; band.first < nelems; band.first += width) {
        band.nelems = nelems - band.first < width ? nelems - band.first : width;
        band_run(&band);
    }
    weft_sync_barrier(fold->meets); /* nobody reads the workspace any more, or the sources */
    free(band.room);
}

/* As near members have it: symmetric memory, or what this PE's GPU reaches. */
static int check_array(const char *argument, const void *p, size_t bytes) {
    void *unused;
    bool reached = bytes > 0 && bytes <= PTRDIFF_MAX && weft_device_reaches(p) &&
                   weft_device_reaches((const char *)p + bytes - 1);
    return reached ? 0 : weft_stream_near(&unused, argument, p, bytes, weft_job.pe);
}

int weft_stream_far_fold(const struct weft_on_stream *on, void *dest, const void *source,
                         const struct weft_stream_folding *folding) {
    struct weft_reduction reduction = folding->reduction;
    struct far_fold fold = {.meets = weft_proxy_team(on->team),
                            .dest = dest,
                            .source = source,
                            .folding = *folding,
                            .elem_bytes = weft_folds[reduction.op][reduction.number].elem_bytes,
                            .times = folding->scatter ? (size_t)on->team->npes : 1};
    struct weft_proxy_task task = {far_fold_run, &fold, sizeof fold};
    size_t bytes = weft_saturated(folding->nelems, fold.elem_bytes);
    int rc = check_array("dest", dest, bytes);
    rc = rc ? rc : check_array("source", source, weft_saturated(bytes, fold.times));
    return rc ? rc : weft_proxy_run(on->team, &task, on->stream);
}
