/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_all_to_allv_on_device on a stream: the order of the kernels, or, if some members are far,
 * the work of a thread when the stream has reached the call. */
#include "fused/row_exchange.h"
#include <errno.h>
#include <stdlib.h>
#include "base/size.h"
#include "transport/gpu_kernel.h"
#include "coll/on_stream.h"
#include "coll/row_lists.h"
#include "fused/exchange.h"
#include "fused/fused.h"

/* --- By kernels ------------------------------------------------------------------------------- */

static struct weft_exchange_task task_of(const struct weft_on_stream *on,
                                         const struct weft_fused_rows_exchange *exchange) {
    enum { ALIGNMENT = 16 };
    const weft_row_exchange *shape = exchange->shape;
    size_t entries = (size_t)on->team->npes * shape->nparts;
    return (struct weft_exchange_task){
        .n = on->team->npes,
        .me = on->team->my_pe,
        .nparts = (uint32_t)shape->nparts,
        .source_by_part = shape->source_by_part,
        .dest_by_part = shape->dest_by_part,
        .align = shape->align,
        .row_bytes = shape->cols * weft_element_bytes(shape->dtype),
        .source_rows = shape->source_rows,
        .dest_rows = shape->dest_rows,
        .list_bytes = weft_round_up((1 + entries) * sizeof(uint64_t), ALIGNMENT),
        .dest = exchange->dest,
        .source = exchange->source,
        .splits = exchange->source_splits,
        .offsets = exchange->source_offsets,
        .dest_splits = exchange->dest_splits,
        .dest_offsets = exchange->dest_offsets};
}

/* Finds the members' dests, and makes room for their lists in each half, and for the parts. */
static int open_call(struct weft_fused *f, struct weft_exchange_task *task,
                     const struct weft_on_stream *on) {
    enum { ALIGNMENT = 256 };
    bool alone = task->n == 1;
    size_t bytes = task->dest_rows * task->row_bytes, lists = (size_t)task->n * task->list_bytes;
    size_t parts = weft_round_up((size_t)task->n * task->nparts * sizeof *task->parts, ALIGNMENT);
    struct weft_fused_sizes sizes = {.half = alone ? 0 : lists, .own = parts + (alone ? lists : 0)};
    int error =
        alone ? 0 : weft_on_stream_find(&task->dests, on, "dest", task->dest, bytes ? bytes : 1);
    error = error ? error : weft_fused_open(f, on, &sizes);
    task->parts = (struct weft_exchange_part *)f->own;
    task->halves = f->half.all;
    if (alone)
        task->halves.first = f->own + parts;
    return error || alone ? error : weft_fused_begin_writes(f);
}

/* `threads`: that have work in a block. */
static int launch(enum weft_gpu_kernel kernel, const struct weft_on_stream *on,
                  struct weft_exchange_task *task, size_t blocks, size_t threads) {
    size_t most = (size_t)weft_device.gpu->sms;
    void *arguments[] = {task, NULL};
    return weft_gpu_launch(kernel, (unsigned)(blocks < most ? blocks : most),
                           weft_gpu_warps(threads, WEFT_EXCHANGE_THREADS), on->stream, arguments);
}

/* The host does not know how many rows there are: blocks for the most that source can hold. */
static size_t push_blocks(const struct weft_exchange_task *task) {
    size_t pieces = (size_t)task->n * task->nparts +
                    task->source_rows * task->row_bytes / WEFT_EXCHANGE_PIECE_BYTES;
    return weft_steps_up(pieces, WEFT_EXCHANGE_THREADS / WEFT_GPU_WARP);
}

static int exchange_by_kernels(const struct weft_on_stream *on,
                               const struct weft_fused_rows_exchange *exchange) {
    struct weft_exchange_task task = task_of(on, exchange);
    struct weft_fused f = {.on = on};
    int error = open_call(&f, &task, on);
    size_t entries = (size_t)task.n * task.nparts;
    error = error ? error
                  : launch(WEFT_KERNEL_weftk_exchange_tell, on, &task,
                           weft_steps_up(entries, WEFT_EXCHANGE_THREADS), entries);
    error = error ? error : weft_stream_sync(on->team, on->stream);
    error = error ? error
                  : launch(WEFT_KERNEL_weftk_exchange_place, on, &task, (size_t)task.n, entries);
    error = error ? error
                  : launch(WEFT_KERNEL_weftk_exchange_push, on, &task, push_blocks(&task),
                           WEFT_EXCHANGE_THREADS);
    return error ? error : weft_stream_sync(on->team, on->stream);
}

/* --- By a thread ------------------------------------------------------------------------------ */

struct far_exchange {
    struct weft_team *meets;
    weft_row_exchange shape;
    struct weft_fused_rows_exchange given;
};

static void push_rows(const struct weft_group *group, const struct far_exchange *far,
                      struct weft_row_lists *lists) {
    size_t nparts = far->shape.nparts;
    size_t row_bytes = far->shape.cols * weft_element_bytes(far->shape.dtype);
    for (int distance = 0; distance < group->npes; distance++) {
        int member = weft_group_member(group, distance);
        weft_row_lists_place(lists, member);
        for (size_t k = 0; k < nparts; k++) {
            size_t rows = weft_row_lists_split(lists, group->me, member, k);
            size_t to = lists->places[(size_t)group->me * nparts + k];
            size_t from = lists->froms[(size_t)member * nparts + k];
            if (rows > 0)
                weft_mover_device.push(group, far->given.dest + to * row_bytes,
                                       far->given.source + from * row_bytes, rows * row_bytes,
                                       member);
        }
    }
}

/* Reads this member's numbers, which are in memory of its GPU, and shows its list. */
static int show_list(struct weft_row_lists *lists, const struct far_exchange *far, int64_t *splits,
                     int64_t *offsets) {
    const struct weft_fused_rows_exchange *given = &far->given;
    size_t bytes = lists->entries * sizeof *splits;
    weft_device_copy(splits, given->source_splits, bytes);
    if (!given->source_offsets)
        return weft_row_lists_show(lists, splits, NULL);
    weft_device_copy(offsets, given->source_offsets, bytes);
    return weft_row_lists_show(lists, splits, offsets);
}

static void far_exchange_run(const void *arguments) {
    const struct far_exchange *far = arguments;
    struct weft_group group = weft_group_of(far->meets);
    struct weft_row_lists lists;
    int error = weft_row_lists_open(&lists, far->meets, &far->shape);
    int64_t *splits = calloc(lists.entries, sizeof *splits),
            *offsets = calloc(lists.entries, sizeof *offsets);
    if (!error && (!splits || !offsets))
        error = weft_fail(-ENOMEM, "there is no memory for %zu numbers", lists.entries);
    error = error ? error : show_list(&lists, far, splits, offsets);
    if (error)
        weft_job_panic("%s", weft_fail_text());
    weft_mover_meet(&weft_mover_device, &group);
    weft_row_lists_read(&lists);
    if (weft_row_lists_check(&lists))
        weft_job_panic_bare("%s", weft_fail_text());
    push_rows(&group, far, &lists);
    weft_row_lists_receive(&lists, splits, offsets);
    weft_device_copy(far->given.dest_splits, splits, lists.entries * sizeof *splits);
    weft_device_copy(far->given.dest_offsets, offsets, lists.entries * sizeof *offsets);
    weft_mover_meet(&weft_mover_device, &group);
    weft_row_lists_close(&lists);
    free(splits);
    free(offsets);
}

static int exchange_by_thread(const struct weft_on_stream *on,
                              const struct weft_fused_rows_exchange *exchange) {
    if (!on->team->far)
        return weft_fail(-ENOTSUP, "the members' GPUs do not reach each other's memory: pass "
                                   "WEFT_STREAM_HOST and host memory");
    struct far_exchange far = {weft_proxy_team(on->team), *exchange->shape, *exchange};
    struct weft_proxy_task task = {far_exchange_run, &far, sizeof far};
    return weft_proxy_run(on->team, &task, on->stream);
}

int weft_fused_exchange_rows(const struct weft_on_stream *on,
                             const struct weft_fused_rows_exchange *exchange) {
    return weft_on_stream_is_apart(on) ? exchange_by_thread(on, exchange)
                                       : exchange_by_kernels(on, exchange);
}
