/* SPDX-License-Identifier: BSD-3-Clause */
/* A meeting, the work, a meeting.
 *
 * Members meet by a kernel or by stream memory operations, on the same words, so each member may
 * choose for itself. A call by copy engines uses no multiprocessor at all, except that the driver
 * copies a member's own part by a kernel: that copy runs beside the call, and no other member waits
 * for it. */
#include "coll/on_stream_meet.h"
#include <errno.h>
#include "transport/gpu_rescue.h"
#include "coll/on_stream_fold.h"
#include "coll/split.h"

/* --- Meeting --------------------------------------------------------------------------------- */

static int meet_by_kernel(const struct weft_on_stream *on, struct weft_array words) {
    return weft_gpu_meet_by_kernel(words, on->team->my_pe, on->team->npes,
                                   weft_device_call(on->team), on->stream);
}

/* Registers the words with the rescue thread, because stream memory operations do not notice the
 * end of the job. */
static int meet_by_engine(const struct weft_on_stream *on, struct weft_array words) {
    int me = on->team->my_pe, n = on->team->npes;
    uint32_t *members[n];
    for (int i = 0; i < n; i++)
        members[i] = (uint32_t *)weft_stream_array_of(on, &words, i);
    int error = weft_gpu_rescue_add(members[me], (size_t)n);
    return error ? error : weft_gpu_meet(weft_device.gpu, members, me, n, on->stream);
}

static int meet_members(const struct weft_on_stream *on, enum weft_gpu_half half,
                        enum weft_copy_engine engine) {
    struct weft_array words;
    int error = on->team->npes > 1 ? weft_device_words(&words, on->team) : 0;
    if (on->team->npes == 1 || error)
        return error;
    words.first += half == WEFT_GPU_READY ? offsetof(struct weft_gpu_team_words, ready)
                                          : offsetof(struct weft_gpu_team_words, done);
    return (engine == WEFT_ENGINE_SM ? meet_by_kernel : meet_by_engine)(on, words);
}

/* --- Pushing --------------------------------------------------------------------------------- */

/* A copy of `bytes` to each member's array; the bytes for member i are at place i of `from`. */
struct push {
    struct weft_stream_arrays to;
    struct weft_array from;
    size_t bytes;
    bool reached; /* by kernels of this PE */
};

static int push_to(const struct weft_on_stream *on, const struct push *push, int member,
                   weft_cu_stream stream) {
    char *to = weft_stream_array_of(on, &push->to.all, member);
    const char *from = weft_array_at(&push->from, member);
    if (to == from)
        return 0;
    int pe = weft_team_world_pe(on->team, member);
    bool staged = push->to.staged && weft_device_staged(pe);
    return weft_stream_transfer(&(struct weft_transfer){to, from, push->bytes, true}, pe, staged,
                                stream);
}

/* Begins with the next member, so that no two members push to the same one at a time. */
static int push_by_engine(const struct weft_on_stream *on, const struct push *push,
                          weft_cu_stream stream) {
    int error = 0;
    for (int distance = 1; error == 0 && distance < on->team->npes; distance++)
        error = push_to(on, push, weft_team_member_after(on->team, distance), stream);
    return error;
}

/* Pushes to all members, including this one. */
static int push_by_kernel(const struct weft_on_stream *on, const struct push *push) {
    return weft_gpu_copy_blocks(push->to.all, push->from, push->bytes, (size_t)on->team->npes,
                                on->stream);
}

/* Copy engines take arrays of any size that kernels do not reach. */
static enum weft_copy_engine engine_of(const struct push *push) {
    return push->reached ? weft_engine_choose(WEFT_TO_PEER, push->bytes) : WEFT_ENGINE_COPY;
}

/* Calls by copy engines do not meet by kernels, which would need a multiprocessor and take longer:
 * 2150 us instead of 2120 for shards of 256 MiB on four H200s. */
static int exchange_by(const struct weft_on_stream *on, const struct push *push,
                       enum weft_copy_engine engine) {
    int error = meet_members(on, WEFT_GPU_READY, engine);
    if (error == 0 && push)
        error = engine == WEFT_ENGINE_SM ? push_by_kernel(on, push)
                                         : push_by_engine(on, push, on->stream);
    return error ? error : meet_members(on, WEFT_GPU_DONE, engine);
}

/* Exchanges by copy engines, and copies this member's part to itself on a second stream at the same
 * time, because no other member writes there. */
static int exchange_beside(const struct weft_on_stream *on, const struct push *push) {
    weft_cu_stream beside;
    int error = weft_gpu_lane_fork(weft_device.gpu, on->stream, &beside);
    if (error)
        return error;
    error = push_to(on, push, on->team->my_pe, beside);
    error = error ? error : exchange_by(on, push, WEFT_ENGINE_COPY);
    int joined = weft_gpu_lane_join(weft_device.gpu, on->stream);
    return error ? error : joined;
}

/* Engines start some 10 us later than a kernel. So if the library chooses, a kernel pushes the
 * first part while the engines start with the rest: an all-to-all of 64 MiB between two H200s took
 * 190.7 us, and 199.8 by engines alone. Larger teams have not been measured this way. The rest is
 * larger than the first part, because copies of smaller sizes choose a kernel. */
enum { HEAD_BYTES = 8 << 20, HEAD_MEMBERS = 2 };

static bool has_head(const struct weft_on_stream *on, const struct push *push) {
    return weft_engine_get() == WEFT_ENGINE_AUTO && on->team->npes == HEAD_MEMBERS &&
           push->bytes > 2 * HEAD_BYTES && push->reached;
}

static int push_by_both(const struct weft_on_stream *on, const struct push *push) {
    struct push head = *push, rest = *push;
    weft_cu_stream beside;
    head.bytes = HEAD_BYTES;
    rest.bytes -= HEAD_BYTES;
    rest.from.first += HEAD_BYTES;
    rest.to.all.first += HEAD_BYTES;
    int error = weft_gpu_lane_fork(weft_device.gpu, on->stream, &beside);
    if (error)
        return error;
    error = push_by_engine(on, &rest, beside);
    error = error ? error : push_by_kernel(on, &head);
    error = error ? error : push_to(on, &rest, on->team->my_pe, on->stream);
    int joined = weft_gpu_lane_join(weft_device.gpu, on->stream);
    return error ? error : joined;
}

static int exchange_by_both(const struct weft_on_stream *on, const struct push *push) {
    int error = meet_members(on, WEFT_GPU_READY, WEFT_ENGINE_SM);
    error = error ? error : push_by_both(on, push);
    return error ? error : meet_members(on, WEFT_GPU_DONE, WEFT_ENGINE_SM);
}

/* `push` is NULL on a member that only receives. */
static int exchange_pushes(const struct weft_on_stream *on, const struct push *push,
                           enum weft_copy_engine engine) {
    if (engine == WEFT_ENGINE_SM || !push)
        return exchange_by(on, push, engine);
    if (has_head(on, push))
        return exchange_by_both(on, push);
    bool has_own = weft_stream_array_of(on, &push->to.all, on->team->my_pe) !=
                   weft_array_at(&push->from, on->team->my_pe);
    return has_own ? exchange_beside(on, push) : exchange_by(on, push, engine);
}

int weft_stream_meet_copy(const struct weft_on_stream *on, const struct weft_plan *plan,
                          const struct weft_stream_arrays *to, const void *source) {
    int me = on->team->my_pe;
    struct push push = {.to = *to,
                        .from = {(char *)source, plan->source_block, NULL},
                        .bytes = plan->pieces.bytes,
                        .reached = !to->staged && to->reached && weft_device_reaches(source)};
    push.to.all.first += me * plan->dest_block;
    return exchange_pushes(on, weft_plan_sends(plan, me) ? &push : NULL, engine_of(&push));
}

/* --- Folding --------------------------------------------------------------------------------- */

/* Returns whether the task also stores much at the peers, and the number of multiprocessors is not
 * set. */
static bool is_large(const struct weft_fold_task *task, size_t most,
                     const struct weft_gpu_channels *channels) {
    enum { BYTES_MIN = 2 << 20 }; /* of a chunk */
    size_t bytes = most * weft_folds[task->op][task->number].elem_bytes;
    return task->ndests > 1 && bytes >= BYTES_MIN && channels->blocks_max == WEFT_GPU_CHANNELS;
}

/* With two members a large task needs more blocks than there are channels: an all-reduce of 64 MiB
 * by two H200s took 209 us with them, and 226 with the meetings in the kernel; of 2 MiB 13.0
 * and 12.6. With several peers many blocks delay each other: on four H100s 64 MiB took 363 us with
 * all multiprocessors and 333 with 16, in place 359 and 325, 256 MiB in place 1299 and 1272. */
enum { BLOCKS_OF_MANY = 16 };

/* The meetings are in the kernel; or before and after it, if there are no channels, or if two
 * members have much to fold. */
int weft_stream_fold_between(const struct weft_on_stream *on, const struct weft_fold_task *task,
                             size_t most) {
    struct weft_gpu_channels channels;
    bool alone = on->team->npes == 1;
    int error = alone ? 0 : weft_device_channels(&channels, on->team, WEFT_FORM_LL);
    bool large = error == 0 && !alone && is_large(task, most, &channels);
    if (large && on->team->npes > 2)
        channels.blocks_max = BLOCKS_OF_MANY;
    if (error == 0 && !(large && on->team->npes == 2))
        return weft_fold_launch(alone ? NULL : &channels, task, most, on->stream);
    if (error && error != -ENOTSUP)
        return error;
    error = meet_members(on, WEFT_GPU_READY, WEFT_ENGINE_SM);
    error = error ? error : weft_fold_launch(NULL, task, most, on->stream);
    return error ? error : meet_members(on, WEFT_GPU_DONE, WEFT_ENGINE_SM);
}

/* Returns the task of folding all members' whole sources into all members' dests. */
static struct weft_fold_task task_of(const struct weft_on_stream *on,
                                     const struct weft_stream_reduced *reduced) {
    int n = on->team->npes;
    struct weft_reduction reduction = reduced->reduction;
    return (struct weft_fold_task){.sources = reduced->from.all,
                                   .dests = reduced->to.all,
                                   .nelems = reduced->nelems,
                                   .nsources = n,
                                   .ndests = n,
                                   .op = reduction.op,
                                   .number = reduction.number,
                                   .divisor = reduction.average ? n : 0};
}

/* Copies elements [first, first + nelems) of each block of this member's source side by side to
 * `piece`. */
static int copy_piece(const struct weft_on_stream *on, const struct weft_stream_reduced *reduced,
                      char *piece, size_t block_bytes, size_t first, size_t nelems) {
    size_t elem = reduced->elem_bytes;
    const char *source = weft_stream_array_of(on, &reduced->from.all, on->team->my_pe);
    int error = 0;
    for (size_t block = 0; block < reduced->times && error == 0; block++)
        error = weft_gpu_copy(piece + block * block_bytes,
                              source + (block * reduced->nelems + first) * elem, nelems * elem,
                              WEFT_TO_HOST, on->stream);
    return error;
}

/* Folds arrays of GPUs that do not reach each other: each member copies its source to host memory,
 * and folds all members' copies into its own dest. Pieces alternate between two halves of that
 * memory: a member that has reached the next meeting no longer reads the half before. */
static int fold_staged(const struct weft_on_stream *on, const struct weft_stream_reduced *reduced) {
    struct weft_device_area area;
    int me = on->team->my_pe, error = weft_device_area(&area, on->team);
    size_t elem = reduced->elem_bytes, half = area.bytes / 2;
    size_t block = half / reduced->times / 128 * 128, step = block / elem;
    char *own = weft_stream_array_of(on, &area.all, me),
         *dest = weft_stream_array_of(on, &reduced->to.all, me);
    struct weft_fold_task task = task_of(on, reduced);
    task.ndests = 1;
    for (size_t first = 0, turn = 0; first < reduced->nelems && error == 0; first += step, turn++) {
        task.nelems = reduced->nelems - first < step ? reduced->nelems - first : step;
        task.sources = area.all;
        task.sources.first += turn % 2 * half + (reduced->times > 1 ? (size_t)me * block : 0);
        task.dests = (struct weft_array){.first = dest + first * elem};
        error = copy_piece(on, reduced, own + turn % 2 * half, block, first, task.nelems);
        error = error ? error : weft_stream_sync(on->team, on->stream);
        error = error ? error : weft_fold_launch(NULL, &task, task.nelems, on->stream);
    }
    return error ? error : weft_stream_sync(on->team, on->stream);
}

/* Copies this member's block to host memory, piece by piece; after each meeting every member copies
 * all members' pieces from there. The two halves take turns as in fold_staged. */
int weft_stream_gather_staged(const struct weft_on_stream *on, char *dest, const char *source,
                              size_t bytes) {
    struct weft_device_area area;
    int n = on->team->npes, error = weft_device_area(&area, on->team);
    size_t half = area.bytes / 2;
    for (size_t first = 0, turn = 0; first < bytes && error == 0; first += half, turn++) {
        size_t piece = bytes - first < half ? bytes - first : half;
        struct weft_array pieces = area.all;
        pieces.first += turn % 2 * half;
        error = weft_gpu_copy(weft_stream_array_of(on, &pieces, on->team->my_pe), source + first,
                              piece, WEFT_TO_HOST, on->stream);
        error = error ? error : weft_stream_sync(on->team, on->stream);
        for (int member = 0; member < n && error == 0; member++)
            error = weft_gpu_copy(dest + (size_t)member * bytes + first,
                                  weft_stream_array_of(on, &pieces, member), piece, WEFT_FROM_HOST,
                                  on->stream);
    }
    return error ? error : weft_stream_sync(on->team, on->stream);
}

/* Reduces the task to this member's share: a chunk that it folds for all members, or its own block.
 * Returns the number of elements of the largest share. */
static size_t take_share(struct weft_fold_task *task, const struct weft_on_stream *on,
                         const struct weft_stream_reduced *reduced) {
    size_t elem = reduced->elem_bytes, nelems = reduced->nelems, grain = weft_split_grain(elem);
    int me = on->team->my_pe, npes = on->team->npes;
    bool scatter = reduced->times > 1;
    size_t first = scatter ? nelems * (size_t)me : weft_split_begin(nelems, grain, me, npes);
    task->sources.first += first * elem;
    if (scatter) {
        task->dests = (struct weft_array){.first = weft_stream_array_of(on, &reduced->to.all, me)};
        task->ndests = 1;
        return nelems;
    }
    task->dests.first += first * elem;
    task->nelems = weft_split_begin(nelems, grain, me + 1, npes) - first;
    return weft_split_most(nelems, grain, npes);
}

int weft_stream_meet_fold(const struct weft_on_stream *on,
                          const struct weft_stream_reduced *reduced) {
    if (reduced->to.staged || reduced->from.staged)
        return fold_staged(on, reduced);
    if (!reduced->to.reached || !reduced->from.reached)
        return weft_fail(-ENOTSUP,
                         "%s does not reach host memory: use arrays of SHMEMX_SPACE_DEVICE",
                         weft_device.gpu->name);
    struct weft_fold_task task = task_of(on, reduced);
    size_t most = take_share(&task, on, reduced);
    return weft_stream_fold_between(on, &task, most);
}
