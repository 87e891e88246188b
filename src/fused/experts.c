/* SPDX-License-Identifier: BSD-3-Clause */
/* Mixtures of experts on a stream: the layout of a half, and the order of the kernels
 * (fused/experts_dispatch.cu, experts_combine.cu). A member alone sends to itself. */
#include "fused/experts.h"
#include <errno.h>
#include "base/size.h"
#include "transport/gpu_kernel.h"
#include "fused/exchange.h"
#include "fused/fused.h"

enum { WARPS = WEFT_EXPERTS_THREADS / WEFT_GPU_WARP, ALIGNMENT = 16 };

static size_t aligned(size_t bytes) {
    return weft_round_up(bytes, ALIGNMENT);
}

/* --- The task --------------------------------------------------------------------------------- */

/* Cuts rows into parts if there are few of them: a warp has a few KiB under way, and a GPU needs
 * many warps to use its memory. */
static void set_parts(struct weft_experts_task *task, size_t nrows) {
    enum { LEAST_BYTES = 2048, WARPS_OF_SM = 32 };
    size_t wanted = weft_steps_up(WARPS_OF_SM * (size_t)weft_device.gpu->sms, nrows);
    size_t most = weft_steps_up(task->row_bytes, LEAST_BYTES);
    task->part_bytes = aligned(weft_steps_up(task->row_bytes, wanted < most ? wanted : most));
    task->parts = (uint32_t)weft_steps_up(task->row_bytes, task->part_bytes);
}

static struct weft_experts_task task_of(const struct weft_on_stream *on,
                                        const struct weft_fused_experts *e) {
    const weft_moe_shape *shape = e->shape;
    size_t slots = shape->tokens_max * shape->top_k,
           row = shape->cols * weft_element_bytes(e->dtype);
    struct weft_experts_task task = {.n = on->team->npes,
                                     .me = on->team->my_pe,
                                     .dtype = (int)e->dtype,
                                     .tokens_max = (uint32_t)shape->tokens_max,
                                     .top_k = (uint32_t)shape->top_k,
                                     .scale_cols = (uint32_t)shape->scale_cols,
                                     .rows_max = (uint32_t)shape->rows_max,
                                     .ntokens = (uint32_t)e->ntokens,
                                     .row_bytes = row,
                                     .row_step = aligned(row),
                                     .record_weights = aligned(row),
                                     .tokens = e->tokens,
                                     .experts = e->experts,
                                     .weights = e->weights,
                                     .scales = e->scales,
                                     .factors = e->factors,
                                     .data = e->rows->data,
                                     .row_weights = e->rows->weights,
                                     .row_scales = e->rows->scales,
                                     .sources = e->rows->sources,
                                     .offsets = e->rows->offsets};
    task.experts_each = (uint32_t)shape->experts / (uint32_t)task.n;
    task.weights_at = sizeof(struct weft_experts_header) + aligned(slots * sizeof(int32_t));
    task.scales_at = task.weights_at + aligned(slots * sizeof(float));
    task.list_step =
        task.scales_at + aligned(shape->tokens_max * shape->scale_cols * sizeof(float));
    task.rows_at = (size_t)task.n * task.list_step;
    task.record_step = task.record_weights + aligned(shape->top_k * sizeof(float));
    set_parts(&task, shape->tokens_max);
    return task;
}

/* Makes room for the members' tokens in each half, and for the rows of all slots. */
static int open_halves(struct weft_fused *f, struct weft_experts_task *task,
                       const struct weft_on_stream *on, size_t half) {
    enum { ROW_OF_ALIGNMENT = 256 };
    bool alone = on->team->npes == 1;
    size_t slots = (size_t)task->n * task->tokens_max * task->top_k;
    size_t row_of = weft_round_up(slots * sizeof *task->row_of, ROW_OF_ALIGNMENT);
    struct weft_fused_sizes sizes = {.half = alone ? 0 : half, .own = row_of + (alone ? half : 0)};
    int error = weft_fused_open(f, on, &sizes);
    task->row_of = (int32_t *)f->own;
    task->halves = f->half.all;
    if (alone)
        task->halves.first = f->own + row_of;
    return error || alone ? error : weft_fused_begin_writes(f);
}

/* --- Kernels ---------------------------------------------------------------------------------- */

/* Launch a kernel in which warps take `pieces`, or the parts of `nrows` rows, in turn. */
static int launch(enum weft_gpu_kernel kernel, const struct weft_fused *f,
                  struct weft_experts_task *task, size_t pieces) {
    size_t blocks = weft_steps_up(pieces > 0 ? pieces : 1, WARPS);
    size_t most = 2 * (size_t)weft_device.gpu->sms;
    void *arguments[] = {task, NULL};
    return weft_gpu_launch(kernel, (unsigned)(blocks < most ? blocks : most), WEFT_EXPERTS_THREADS,
                           f->on->stream, arguments);
}

static int launch_rows(enum weft_gpu_kernel kernel, const struct weft_fused *f,
                       struct weft_experts_task *task, size_t nrows) {
    return launch(kernel, f, task, nrows * task->parts);
}

/* Makes the stores of all members' kernels visible to all members. */
static int meet(const struct weft_fused *f) {
    return f->on->team->npes == 1 ? 0 : weft_stream_sync(f->on->team, f->on->stream);
}

static int refuse_apart(const struct weft_on_stream *on) {
    return weft_on_stream_is_apart(on)
               ? weft_fail(-ENOTSUP,
                           "members are on several hosts, or their GPUs do not reach each "
                           "other's memory: pass WEFT_STREAM_HOST and host memory")
               : 0;
}

int weft_fused_dispatch(const struct weft_on_stream *on, const struct weft_fused_experts *e) {
    struct weft_experts_task task = task_of(on, e);
    size_t tokens = (size_t)task.n * task.tokens_max;
    size_t experts = (size_t)task.experts_each * WARPS; /* a block for each */
    struct weft_fused f;
    int error = refuse_apart(on);
    error = error ? error : open_halves(&f, &task, on, task.rows_at + tokens * task.row_step);
    error = error ? error : launch_rows(WEFT_KERNEL_weftk_experts_send, &f, &task, task.ntokens);
    error = error ? error : meet(&f);
    error = error ? error : launch(WEFT_KERNEL_weftk_experts_place, &f, &task, experts);
    return error ? error : launch_rows(WEFT_KERNEL_weftk_experts_take, &f, &task, tokens);
}

int weft_fused_combine(const struct weft_on_stream *on, const struct weft_fused_experts *e) {
    struct weft_experts_task task = task_of(on, e);
    size_t tokens = (size_t)task.n * task.tokens_max, slots = tokens * task.top_k;
    size_t rows = task.rows_max;
    struct weft_fused f;
    int error = refuse_apart(on);
    error = error ? error : open_halves(&f, &task, on, tokens * task.record_step);
    error =
        error ? error : launch(WEFT_KERNEL_weftk_experts_clear, &f, &task, slots / WEFT_GPU_WARP);
    error =
        error ? error : launch(WEFT_KERNEL_weftk_experts_index, &f, &task, rows / WEFT_GPU_WARP);
    error = error ? error : launch_rows(WEFT_KERNEL_weftk_experts_add, &f, &task, tokens);
    error = error ? error : meet(&f);
    return error ? error : launch_rows(WEFT_KERNEL_weftk_experts_sum, &f, &task, task.ntokens);
}
