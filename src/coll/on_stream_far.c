/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies are pushed to the members, as in the general way of near members, so only dest has to be
 * symmetric. A reduction passes through the workspaces of the second team (coll/hosts_vector.h):
 * this GPU copies source there, and the results from there to dest. */
#include "coll/on_stream_far.h"
#include "coll/hosts_vector.h"

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
    int error = weft_stream_near(&unused, "dest", dest, weft_saturated(plan->pieces.bytes, blocks),
                                 weft_job.pe);
    return error ? error : weft_proxy_run(on->team, &task, on->stream);
}

/* --- Through the workspaces ------------------------------------------------------------------- */

struct far_vector {
    struct weft_hosts_vector vector;
    struct weft_reduction reduction; /* if `reduces` */
    bool reduces;
};

static void far_vector_run(const void *arguments) {
    const struct far_vector *far = arguments;
    struct weft_hosts_vector vector = far->vector;
    vector.reduction = far->reduces ? &far->reduction : NULL;
    if (weft_team_workspace_commit(vector.team, weft_hosts_vector_workspace(&vector)))
        weft_job_panic_bare("%s", weft_fail_text());
    weft_hosts_vector_move(&vector);
}

/* Checks that an array is symmetric, or memory that this PE's GPU reaches, as in near teams. */
static int check_array(const char *argument, const void *p, size_t bytes) {
    void *unused;
    return weft_stream_locate(argument, p, bytes).reached
               ? 0
               : weft_stream_near(&unused, argument, p, bytes, weft_job.pe);
}

int weft_stream_far_gather(const struct weft_on_stream *on, void *dest, const void *source,
                           size_t bytes) {
    struct far_vector far = {.vector = {.team = weft_proxy_team(on->team),
                                        .plan = weft_plan_fcollect(bytes),
                                        .dest = dest,
                                        .source = source,
                                        .nelems = bytes,
                                        .elem_bytes = 1,
                                        .copy = weft_device_copy}};
    struct weft_proxy_task task = {far_vector_run, &far, sizeof far};
    return weft_proxy_run(on->team, &task, on->stream);
}

int weft_stream_far_fold(const struct weft_on_stream *on, void *dest, const void *source,
                         const struct weft_stream_folding *folding) {
    struct weft_reduction reduction = folding->reduction;
    size_t elem = weft_folds[reduction.op][reduction.number].elem_bytes;
    size_t bytes = weft_saturated(folding->nelems, elem);
    struct far_vector far = {.reduction = reduction,
                             .reduces = true,
                             .vector = {.team = weft_proxy_team(on->team),
                                        .plan = folding->scatter ? weft_plan_reduce_scatter(bytes)
                                                                 : weft_plan_reduce(bytes),
                                        .dest = dest,
                                        .source = source,
                                        .nelems = folding->nelems,
                                        .elem_bytes = elem,
                                        .copy = weft_device_copy}};
    struct weft_proxy_task task = {far_vector_run, &far, sizeof far};
    size_t blocks = folding->scatter ? (size_t)on->team->npes : 1;
    int error = check_array("dest", dest, bytes);
    error = error ? error : check_array("source", source, weft_saturated(bytes, blocks));
    return error ? error : weft_proxy_run(on->team, &task, on->stream);
}
