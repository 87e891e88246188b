/* SPDX-License-Identifier: BSD-3-Clause */
/* A call: its team, its arrays, and its way (coll/stream_choice.h).
 *
 * Most calls are one kernel of a family. All members make the same decision: channels exist on all
 * members or on none, and otherwise the decision depends on numbers. A family that writes to this
 * member's dest alone takes any memory that its GPU reaches; the other families write to the device
 * heap, where dest is symmetric. A source that the kernel does not reach is copied first. */
#include "coll/on_stream.h"
#include <errno.h>
#include "core/share.h"
#include "coll/ll.h"
#include "coll/marked.h"
#include "coll/on_stream_far.h"
#include "coll/on_stream_meet.h"
#include "coll/push.h"
#include "coll/same_way.h"

int weft_on_stream_begin(struct weft_on_stream *on, shmem_team_t team) {
    on->team = weft_team_find(team);
    if (!on->team)
        return weft_team_refuse(team);
    int error = weft_stream_begin(on->team);
    if (error)
        return error;
    on->scope = weft_gpu_enter(weft_device.gpu);
    error = weft_device_turn_begin(on->team, on->stream);
    if (error)
        weft_gpu_leave(on->scope);
    return error;
}

int weft_on_stream_enter(struct weft_on_stream *on, shmem_team_t team) {
    if (weft_job.npes > 0 && weft_job_aborted())
        weft_job_die_aborted();
    return weft_on_stream_begin(on, team);
}

int weft_on_stream_end(const struct weft_on_stream *on, int error) {
    int ended = weft_device_turn_end(on->team, on->stream);
    weft_gpu_leave(on->scope);
    return error ? error : ended;
}

/* --- Arrays ----------------------------------------------------------------------------------- */

/* Computes the distance between the places from the arrays of members 0 and 1. */
static void set_array(struct weft_array *all, const struct weft_team *team, char *of_0,
                      char *of_1) {
    int place = weft_team_place(team, 0);
    all->step = team->npes > 1 ? (of_1 - of_0) / (weft_team_place(team, 1) - place) : 0;
    all->first = of_0 - place * all->step;
}

/* Returns whether kernels of this PE can access the arrays of all members. Slots of host memory are
 * registered in the order of their addresses until the driver refuses one. */
static bool all_are_reached(const struct weft_array *all, const struct weft_located *own,
                            int npes) {
    if (!own->reached || own->kind != WEFT_LOCATED_HOST || npes == 1)
        return own->reached;
    return weft_device_reaches(weft_array_at(all, all->step < 0 ? 0 : npes - 1));
}

/* Finds the arrays of all members from this member's. A member alone may pass any memory that its
 * GPU reaches. */
static int find_arrays(struct weft_stream_arrays *arrays, const struct weft_on_stream *on,
                       const struct weft_located *own) {
    const struct weft_team *team = on->team;
    void *at[2] = {(void *)own->p, NULL};
    bool any = team->npes == 1 && own->kind == WEFT_LOCATED_PRIVATE && own->reached;
    *arrays = (struct weft_stream_arrays){.staged = weft_device.staged &&
                                                    own->kind == WEFT_LOCATED_DEVICE};
    int error = team->npes > 1 ? weft_device_words(&arrays->all, team) : 0;
    for (int i = 0; !any && i < 2 && i < team->npes && error == 0; i++)
        error = weft_stream_near(&at[i], own->argument, own->p, own->bytes,
                                 weft_team_world_pe(team, i));
    if (error)
        return error;
    set_array(&arrays->all, team, at[0], at[1]);
    arrays->reached = all_are_reached(&arrays->all, own, team->npes);
    return 0;
}

int weft_on_stream_find(struct weft_array *all, const struct weft_on_stream *on,
                        const char *argument, const void *p, size_t bytes) {
    const struct weft_team *team = on->team;
    struct weft_stream_arrays arrays;
    struct weft_located own = weft_stream_locate(argument, p, bytes);
    if (own.kind == WEFT_LOCATED_PRIVATE && own.reached &&
        weft_share_array(all, p, bytes, &team->member_list, team->npes))
        return 0;
    int error = find_arrays(&arrays, on, &own);
    *all = arrays.all;
    return error || arrays.reached
               ? error
               : weft_fail(-ENOTSUP, "argument %s is in memory that this PE's GPU does not reach",
                           argument);
}

/* --- By one kernel ---------------------------------------------------------------------------- */

/* A family of kernels. */
struct family {
    enum weft_gpu_form form;
    bool (*takes)(enum weft_fold_op op, enum weft_number number);  /* NULL: any */
    size_t (*bytes_max)(const struct weft_gpu_channels *channels); /* of a block; NULL: any */
    int (*launch)(const struct weft_gpu_channels *channels, const struct weft_gpu_collective *task,
                  weft_cu_stream stream);
    bool own; /* it reads no other member's source and writes no other member's dest */
};

static const struct family families[WEFT_STREAM_OPERATIONS][WEFT_WAY_MEET] = {
    [WEFT_STREAM_ALL_GATHER] = {[WEFT_WAY_LL] = {WEFT_FORM_LL, NULL, weft_ll_bytes_max,
                                                 weft_ll_exchange, true},
                                [WEFT_WAY_PUSH] = {WEFT_FORM_LL, NULL, NULL, weft_push_exchange,
                                                   false}},
    [WEFT_STREAM_ALL_TO_ALL] = {[WEFT_WAY_LL] = {WEFT_FORM_LL, NULL, weft_ll_bytes_max,
                                                 weft_ll_exchange, true},
                                [WEFT_WAY_PUSH] = {WEFT_FORM_LL, NULL, NULL, weft_push_exchange,
                                                   false}},
    [WEFT_STREAM_BROADCAST] = {[WEFT_WAY_LL] = {WEFT_FORM_DIRECTED, NULL, weft_ll_bytes_max,
                                                weft_ll_broadcast, true},
                               [WEFT_WAY_PUSH] = {WEFT_FORM_LL, NULL, NULL, weft_push_exchange,
                                                  false}},
    [WEFT_STREAM_REDUCE_SCATTER] = {[WEFT_WAY_LL] = {WEFT_FORM_LL, weft_ll_takes, weft_ll_bytes_max,
                                                     weft_ll_reduce, true},
                                    [WEFT_WAY_MARKED] = {WEFT_FORM_MARKED, weft_marked_takes,
                                                         weft_marked_reduce_max, weft_marked_reduce,
                                                         true}},
    [WEFT_STREAM_ALL_REDUCE] =
        {[WEFT_WAY_LL] = {WEFT_FORM_LL, weft_ll_takes, weft_ll_bytes_max, weft_ll_reduce, true},
         [WEFT_WAY_MARKED] = {WEFT_FORM_MARKED, weft_marked_takes, weft_marked_reduce_max,
                              weft_marked_reduce, true},
         [WEFT_WAY_MARKED_TWICE] = {WEFT_FORM_MARKED, weft_marked_takes, weft_marked_all_reduce_max,
                                    weft_marked_all_reduce, true}},
};

/* The family that carries a call, with its channels; NULL: the call takes the general way. */
struct route {
    const struct family *family;
    enum weft_stream_way way;
    struct weft_gpu_channels channels;
};

/* Chooses the first way that can carry the call. */
static int choose_route(struct route *route, const struct weft_on_stream *on,
                        const struct weft_stream_call *call) {
    enum weft_stream_way tries[WEFT_STREAM_TRIES_MAX];
    bool kernels = call->n > 1 && !weft_device.staged;
    int count = kernels ? weft_stream_ways(call, tries) : 0, error = 0;
    route->family = NULL;
    for (int i = 0; i < count && !route->family && error == 0; i++) {
        const struct family *family = &families[call->operation][tries[i]];
        if (!family->launch || (family->takes && !family->takes(call->op, call->number)))
            continue;
        error = weft_device_channels(&route->channels, on->team, family->form);
        if (error == 0 &&
            (!family->bytes_max || call->bytes <= family->bytes_max(&route->channels)))
            route->family = family, route->way = tries[i];
        error = error == -ENOTSUP ? 0 : error;
    }
    return error;
}

/* Returns whether the kernel carries the call in the end; `any`: dest may be private memory. */
static bool uses_kernel(const struct route *route, const struct weft_on_stream *on,
                        const struct weft_located *dest, bool any) {
    bool goes = any || (route->family && dest->kind == WEFT_LOCATED_DEVICE);
    if (on->team->npes > 1)
        weft_same_way_check(on->team, goes ? route->way : WEFT_WAY_MEET);
    return goes;
}

/* Returns whether the kernel can write to this dest, wherever the peers' are. Kernels may reach
 * symmetric host memory on one member and not on another: such a dest takes the general way,
 * as all members decide. A source would be copied within reach. */
static bool takes_any(const struct route *route, const struct weft_located *dest) {
    return route->family && route->family->own && dest->kind != WEFT_LOCATED_HOST && dest->reached;
}

/* *source <- a copy that kernels reach, in the order of the stream. */
static int copy_source(const char **source, const struct weft_on_stream *on, size_t bytes) {
    void *copy;
    int error = weft_device_channels_copy(&copy, on->team, bytes);
    error = error ? error : weft_gpu_copy(copy, *source, bytes, WEFT_FROM_HOST, on->stream);
    *source = copy;
    return error;
}

/* `copied`: bytes of this member's source, if kernels do not reach it, or 0. */
static int run_kernel(const struct route *route, const struct weft_on_stream *on,
                      struct weft_gpu_collective *task, size_t copied) {
    int error = copied > 0 ? copy_source(&task->source, on, copied) : 0;
    return error ? error : route->family->launch(&route->channels, task, on->stream);
}

/* Forms that the GPUs do not support, or that do not fit into memory, are left out: no call uses
 * them.
 */
int weft_on_stream_reserve(const struct weft_team *team) {
    struct weft_gpu_channels channels;
    int error = 0;
    if (!weft_device.open || team->npes == 1 || team->npes > WEFT_GPU_MEMBERS_MAX)
        return 0;
    if (team->far)
        return weft_proxy_begin(team);
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    for (int form = 0; form < WEFT_FORMS && (error == 0 || error == -ENOTSUP); form++)
        error = weft_device_channels(&channels, team, (enum weft_gpu_form)form);
    weft_gpu_leave(scope);
    return error == -ENOTSUP ? 0 : error;
}

/* --- Copies ----------------------------------------------------------------------------------- */

static enum weft_stream_operation operation_of(const struct weft_plan *plan) {
    if (plan->sender != WEFT_SENDERS_ALL)
        return WEFT_STREAM_BROADCAST;
    return plan->source_block ? WEFT_STREAM_ALL_TO_ALL : WEFT_STREAM_ALL_GATHER;
}

int weft_on_stream_copy(const struct weft_on_stream *on, const struct weft_plan *plan, void *dest,
                        const void *source) {
    size_t bytes = plan->pieces.bytes, npes = (size_t)on->team->npes;
    size_t dest_bytes = weft_saturated(bytes, plan->dest_block ? npes : 1);
    struct weft_stream_call call = {
        .operation = operation_of(plan), .n = on->team->npes, .bytes = bytes};
    struct weft_stream_arrays to = {.staged = false};
    struct route route;
    if (bytes == 0)
        return 0;
    if (on->team->far)
        return weft_stream_far_move(on, plan, dest, source);
    struct weft_located own = weft_stream_locate("dest", dest, dest_bytes);
    int error = choose_route(&route, on, &call);
    bool any = takes_any(&route, &own);
    error = error || any ? error : find_arrays(&to, on, &own);
    if (error)
        return error;
    if (!uses_kernel(&route, on, &own, any))
        return weft_stream_meet_copy(on, plan, &to, source);
    struct weft_gpu_collective task = {.source = source,
                                       .dest = dest,
                                       .dests = to.all,
                                       .bytes = bytes,
                                       .source_step = (size_t)plan->source_block,
                                       .dest_step = (size_t)plan->dest_block,
                                       .root = plan->sender};
    bool copies = weft_plan_sends(plan, on->team->my_pe) && !weft_device_reaches(source);
    return run_kernel(&route, on, &task, copies ? bytes * (plan->source_block ? npes : 1) : 0);
}

int weft_on_stream_gather(const struct weft_on_stream *on, const struct weft_array *dests,
                          const void *source, size_t bytes, bool ready, bool *done) {
    struct weft_stream_call call = {
        .operation = WEFT_STREAM_ALL_GATHER, .n = on->team->npes, .bytes = bytes};
    struct route route;
    char *dest = weft_array_at(dests, on->team->my_pe);
    *done = weft_on_stream_is_apart(on);
    if (*done)
        return on->team->far ? weft_stream_far_gather(on, dest, source, bytes)
                             : weft_stream_gather_staged(on, dest, source, bytes);
    int error = choose_route(&route, on, &call);
    *done = error == 0 && route.family;
    if (error == 0)
        weft_same_way_check(on->team, route.family ? route.way : WEFT_WAY_MEET);
    if (!*done)
        return error;
    struct weft_gpu_collective task = {.source = source,
                                       .dest = dest,
                                       .dests = *dests,
                                       .bytes = bytes,
                                       .dest_step = bytes,
                                       .ready = ready};
    return run_kernel(&route, on, &task, 0);
}

/* --- Reductions ------------------------------------------------------------------------------- */

static struct weft_stream_call call_of(const struct weft_on_stream *on,
                                       const struct weft_stream_folding *folding) {
    struct weft_reduction reduction = folding->reduction;
    size_t elem_bytes = weft_folds[reduction.op][reduction.number].elem_bytes;
    return (struct weft_stream_call){.operation = folding->scatter ? WEFT_STREAM_REDUCE_SCATTER
                                                                   : WEFT_STREAM_ALL_REDUCE,
                                     .op = reduction.op,
                                     .number = reduction.number,
                                     .n = on->team->npes,
                                     .bytes = weft_saturated(folding->nelems, elem_bytes)};
}

bool weft_on_stream_folds_any(const struct weft_on_stream *on,
                              const struct weft_stream_folding *folding) {
    struct weft_stream_call call = call_of(on, folding);
    struct route route;
    if (weft_on_stream_is_apart(on))
        return true;
    return folding->nelems > 0 && choose_route(&route, on, &call) == 0 && route.family &&
           route.family->own;
}

/* If data passes through host memory, no other member accesses `any` arrays. */
static int find_folded(struct weft_stream_arrays *arrays, const struct weft_on_stream *on,
                       const struct weft_located *own, bool any) {
    if (!any || !weft_on_stream_is_apart(on))
        return find_arrays(arrays, on, own);
    *arrays =
        (struct weft_stream_arrays){.all.first = (char *)own->p, .staged = true, .reached = true};
    return 0;
}

int weft_on_stream_fold(const struct weft_on_stream *on, void *dest, const void *source,
                        const struct weft_stream_folding *folding) {
    struct weft_reduction reduction = folding->reduction;
    int npes = on->team->npes;
    struct weft_stream_reduced reduced = {.nelems = folding->nelems,
                                          .elem_bytes =
                                              weft_folds[reduction.op][reduction.number].elem_bytes,
                                          .times = folding->scatter ? (size_t)npes : 1,
                                          .reduction = reduction};
    struct weft_stream_call call = call_of(on, folding);
    size_t bytes = call.bytes;
    struct route route;
    if (folding->nelems == 0)
        return 0;
    if (on->team->far)
        return weft_stream_far_fold(on, dest, source, folding);
    struct weft_located to = weft_stream_locate("dest", dest, bytes),
                        from = weft_stream_locate("source", source,
                                                  weft_saturated(bytes, reduced.times));
    int error = choose_route(&route, on, &call);
    bool any = takes_any(&route, &to) && from.reached;
    error = error || any ? error : find_folded(&reduced.to, on, &to, folding->any);
    error = error || any ? error : find_folded(&reduced.from, on, &from, folding->any);
    if (error)
        return error;
    if (!uses_kernel(&route, on, &to, any))
        return weft_stream_meet_fold(on, &reduced);
    struct weft_gpu_collective task = {.source = source,
                                       .dest = dest,
                                       .dests = reduced.to.all,
                                       .bytes = bytes,
                                       .source_step = folding->scatter ? bytes : 0,
                                       .op = reduction.op,
                                       .number = reduction.number,
                                       .divisor = reduction.average ? npes : 0};
    return run_kernel(&route, on, &task, from.reached ? 0 : from.bytes);
}
