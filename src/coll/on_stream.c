/* SPDX-License-Identifier: BSD-3-Clause */
/* A call: its team, its arrays, and which way it goes (coll/stream_choice.h).
 *
 * Most go by one kernel of a family. All members come to the same decision: channels are there on
 * all or on none, and the rest is numbers. A family that writes to this member's dest alone takes
 * what memory its GPU reaches; the others write to the device heap, where dest is symmetric. Where
 * only this member's source is out of the kernel's reach, it is copied within reach first. */
#include "coll/on_stream.h"
#include <errno.h>
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

int weft_on_stream_end(const struct weft_on_stream *on, int error) {
    int ended = weft_device_turn_end(on->team, on->stream);
    weft_gpu_leave(on->scope);
    return error ? error : ended;
}

/* --- Arrays ----------------------------------------------------------------------------------- */

/* Two members tell how far apart the places are. */
static void set_array(struct weft_array *all, const struct weft_team *team, char *of_0,
                      char *of_1) {
    int place = weft_team_place(team, 0);
    all->step = team->npes > 1 ? (of_1 - of_0) / (weft_team_place(team, 1) - place) : 0;
    all->first = of_0 - place * all->step;
}

/* Whether kernels of this PE reach the array: what is symmetric, as far as it is; of other memory
 * both ends are looked at. */
static bool is_reached(const void *p, size_t bytes) {
    if (weft_device_near(p, 1, weft_job.pe))
        return weft_device_near(p, bytes, weft_job.pe) && weft_device_reaches(p);
    return bytes <= PTRDIFF_MAX && weft_device_reaches(p) &&
           weft_device_reaches((const char *)p + bytes - 1);
}

/* Kernels may reach symmetric memory of the host on one member and not on another: there a dest is
 * for the general way, which all members take alike. A source would be copied within reach. */
static bool is_reached_alike(const void *dest, size_t bytes) {
    bool host = weft_device_near(dest, 1, weft_job.pe) && !weft_device_holds(dest);
    return !host && is_reached(dest, bytes);
}

/* Of a member that is alone it is any memory that its GPU reaches. */
static int find_array(void **at, const struct weft_on_stream *on, const char *argument,
                      const void *p, size_t bytes, int member) {
    int pe = weft_team_world_pe(on->team, member);
    *at = (void *)p;
    if (on->team->npes == 1 && !weft_device_near(p, 1, pe) && is_reached(p, bytes))
        return 0;
    return weft_stream_near(at, argument, p, bytes, pe);
}

static int find_arrays(struct weft_stream_arrays *arrays, const struct weft_on_stream *on,
                       const char *argument, const void *p, size_t bytes) {
    const struct weft_team *team = on->team;
    void *at, *two[2] = {NULL, NULL};
    *arrays = (struct weft_stream_arrays){.staged = weft_device.staged && weft_device_holds(p)};
    int error = team->npes > 1 ? weft_device_words(&arrays->all, team) : 0;
    for (int i = 0; i < team->npes && error == 0; i++) {
        error = find_array(&at, on, argument, p, bytes, i);
        if (i < 2)
            two[i] = at;
    }
    if (error == 0)
        set_array(&arrays->all, team, two[0], two[1]);
    return error;
}

/* --- By one kernel ---------------------------------------------------------------------------- */

/* What a family of kernels can do, and how it is launched. */
struct family {
    enum weft_gpu_form form;
    bool (*takes)(enum weft_fold_op op, enum weft_number number);  /* NULL: any */
    size_t (*bytes_max)(const struct weft_gpu_channels *channels); /* of a block; NULL: any */
    int (*launch)(const struct weft_gpu_channels *channels, const struct weft_gpu_collective *task,
                  weft_cu_stream stream);
    bool own; /* it reads this member's source and writes its dest, and nothing of the others' */
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

/* The family that carries a call, with its channels; NULL: it goes by meetings. */
struct route {
    const struct family *family;
    enum weft_stream_way way;
    struct weft_gpu_channels channels;
};

/* The first way that can carry the call. */
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

/* Whether the kernel carries the call in the end; `any`: it takes any arrays that it reaches, and
 * these it does. */
static bool goes_by_kernel(const struct route *route, const struct weft_on_stream *on,
                           const void *dest, bool any) {
    bool goes = any || (route->family && weft_device_holds(dest));
    if (on->team->npes > 1)
        weft_same_way_check(on->team, goes ? route->way : WEFT_WAY_MEET);
    return goes;
}

/* Whether the arrays may be any that the kernel reaches. */
static bool takes_any(const struct route *route) {
    return route->family && route->family->own;
}

/* *source <- a copy that kernels reach, in the order of the stream, if they do not reach it. */
static int bring_source(const char **source, const struct weft_on_stream *on, size_t bytes) {
    void *copy;
    if (weft_device_reaches(*source))
        return 0;
    int error = weft_device_channels_copy(&copy, on->team, bytes);
    error = error ? error : weft_gpu_copy(copy, *source, bytes, WEFT_FROM_HOST, on->stream);
    *source = copy;
    return error;
}

/* `source_bytes`: of this member's whole source; 0: it has none. */
static int go_by_kernel(const struct route *route, const struct weft_on_stream *on,
                        struct weft_gpu_collective *task, size_t source_bytes) {
    int error = source_bytes > 0 ? bring_source(&task->source, on, source_bytes) : 0;
    return error ? error : route->family->launch(&route->channels, task, on->stream);
}

/* Forms that no GPU has, or that have no room, are for no call. */
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

/* --- What moves ------------------------------------------------------------------------------- */

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
    int error = choose_route(&route, on, &call);
    bool any = takes_any(&route) && is_reached_alike(dest, dest_bytes);
    error = error || any ? error : find_arrays(&to, on, "dest", dest, dest_bytes);
    if (error)
        return error;
    if (!goes_by_kernel(&route, on, dest, any))
        return weft_stream_meet_copy(on, plan, &to, source);
    struct weft_gpu_collective task = {.source = source,
                                       .dest = dest,
                                       .dests = to.all,
                                       .bytes = bytes,
                                       .source_step = (size_t)plan->source_block,
                                       .dest_step = (size_t)plan->dest_block,
                                       .root = plan->sender};
    bool sends = weft_plan_sends(plan, on->team->my_pe);
    return go_by_kernel(&route, on, &task, sends ? bytes * (plan->source_block ? npes : 1) : 0);
}

/* --- Reductions ------------------------------------------------------------------------------- */

static int find_reduced(struct weft_stream_reduced *reduced, const struct weft_on_stream *on,
                        void *dest, const void *source) {
    size_t bytes = weft_saturated(reduced->nelems, reduced->elem_bytes);
    int error = find_arrays(&reduced->to, on, "dest", dest, bytes);
    return error ? error
                 : find_arrays(&reduced->from, on, "source", source,
                               weft_saturated(bytes, reduced->times));
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
    size_t bytes = weft_saturated(reduced.nelems, reduced.elem_bytes);
    size_t source_bytes = weft_saturated(bytes, reduced.times);
    struct weft_stream_call call = {.operation = folding->scatter ? WEFT_STREAM_REDUCE_SCATTER
                                                                  : WEFT_STREAM_ALL_REDUCE,
                                    .op = reduction.op,
                                    .number = reduction.number,
                                    .n = npes,
                                    .bytes = bytes};
    struct route route;
    if (folding->nelems == 0)
        return 0;
    if (on->team->far)
        return weft_stream_far_fold(on, dest, source, folding);
    int error = choose_route(&route, on, &call);
    bool any =
        takes_any(&route) && is_reached_alike(dest, bytes) && is_reached(source, source_bytes);
    error = error || any ? error : find_reduced(&reduced, on, dest, source);
    if (error)
        return error;
    if (!goes_by_kernel(&route, on, dest, any))
        return weft_stream_meet_fold(on, &reduced);
    struct weft_gpu_collective task = {.source = source,
                                       .dest = dest,
                                       .dests = reduced.to.all,
                                       .bytes = bytes,
                                       .source_step = folding->scatter ? bytes : 0,
                                       .op = reduction.op,
                                       .number = reduction.number,
                                       .divisor = reduction.average ? npes : 0};
    return go_by_kernel(&route, on, &task, source_bytes);
}
