/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_all_reduce_rms_norm on a stream: one kernel that sums by marked words and normalises, or an
 * all-reduce, and a kernel that normalises. Which of them depends on sizes that are the same on all
 * members. */
#include <errno.h>
#include "base/size.h"
#include "coll/elements.h"
#include "coll/norm.h"
#include "coll/on_stream.h"
#include "coll/same_way.h"

enum { UNIT = 16 }; /* bytes */

static struct weft_norm_task task_of(const void *source, const weft_norm *norm) {
    uintptr_t places = (uintptr_t)source | (uintptr_t)norm->bias | (uintptr_t)norm->residual |
                       (uintptr_t)norm->weight | (uintptr_t)norm->residual_out |
                       (uintptr_t)norm->out;
    return (struct weft_norm_task){.sums = source,
                                   .bias = norm->bias,
                                   .residual = norm->residual,
                                   .weight = norm->weight,
                                   .residual_out = norm->residual_out,
                                   .out = norm->out,
                                   .quantized = norm->quantized,
                                   .scales = norm->scales,
                                   .rows = (uint32_t)norm->rows,
                                   .cols = (uint32_t)norm->cols,
                                   .group = (uint32_t)norm->group,
                                   .aligned = places % UNIT == 0,
                                   .epsilon = norm->epsilon};
}

/* --- By one kernel ---------------------------------------------------------------------------- */

static enum weft_gpu_kernel kernel_for(weft_dtype dtype, int n) {
#define NORMS(name) \
    { WEFT_KERNEL_##name, WEFT_KERNEL_##name##_2, WEFT_KERNEL_##name##_4, WEFT_KERNEL_##name##_8 }
    static const enum weft_gpu_kernel kernels[][4] = {[WEFT_F32] = NORMS(weftk_norm_f32),
                                                      [WEFT_BF16] = NORMS(weftk_norm_bf16),
                                                      [WEFT_F16] = NORMS(weftk_norm_f16)};
#undef NORMS
    return kernels[dtype][(n > 1) + (n > 2) + (n > 4)];
}

/* Returns whether one kernel does all: rows have whole units, and so few bytes that one shot is the
 * fastest sum. With two members, two shots would send as many bytes. */
static bool is_small(const struct weft_on_stream *on, const weft_norm *norm) {
    int n = on->team->npes;
    size_t row = norm->cols * weft_element_bytes(norm->dtype);
    enum weft_stream_way way = n == 2 ? WEFT_WAY_MARKED_TWICE : WEFT_WAY_MARKED;
    size_t most = weft_stream_bytes_max(WEFT_STREAM_ALL_REDUCE, way, n);
    size_t one = weft_stream_bytes_max(WEFT_STREAM_ALL_REDUCE, WEFT_WAY_MARKED, n);
    return row % UNIT == 0 && norm->rows * row <= (most > one ? most : one);
}

/* Sets *rows_each to the rows of a block, or to 0 if the channels have no room. */
static void set_rows(uint32_t *rows_each, const struct weft_gpu_channels *channels,
                     const struct weft_norm_task *task, uint32_t row_units) {
    uint32_t each = (task->rows + channels->blocks_max - 1) / channels->blocks_max;
    *rows_each = (size_t)each * row_units <= channels->slot_units ? each : 0;
}

static int launch_with_sums(const struct weft_on_stream *on,
                            const struct weft_gpu_channels *channels, struct weft_norm_task *task,
                            enum weft_gpu_kernel kernel, uint32_t row_units) {
    struct weft_marked_work work = {
        .from = weft_marked_array_of(task->sums, (size_t)task->rows * row_units * UNIT, 0),
        .chunk = task->rows * row_units,
        .part = task->rows_each * row_units};
    weft_marked_connect(&work, channels);
    void *arguments[] = {&work, task, NULL};
    return weft_gpu_launch(kernel, (unsigned)weft_steps_up(task->rows, task->rows_each),
                           weft_gpu_warps(row_units, WEFT_NORM_THREADS), on->stream, arguments);
}

/* --- After an all-reduce ---------------------------------------------------------------------- */

static int launch(const struct weft_on_stream *on, struct weft_norm_task *task, weft_dtype dtype) {
    size_t most = 4 * (size_t)weft_device.gpu->sms;
    void *arguments[] = {task, NULL};
    return weft_gpu_launch(kernel_for(dtype, 1), (unsigned)(task->rows < most ? task->rows : most),
                           weft_gpu_warps(task->cols, WEFT_NORM_THREADS), on->stream, arguments);
}

static int reduce_first(const struct weft_on_stream *on, const void *source, const weft_norm *norm,
                        struct weft_norm_task *task) {
    struct weft_stream_folding folding = {.reduction =
                                              weft_element_reduction(norm->dtype, WEFT_SUM),
                                          .nelems = norm->rows * norm->cols};
    folding.any = weft_on_stream_folds_any(on, &folding);
    task->sums = norm->out;
    int error = weft_on_stream_fold(on, norm->out, source, &folding);
    return error ? error : launch(on, task, norm->dtype);
}

int weft_on_stream_norm(const struct weft_on_stream *on, const void *source,
                        const weft_norm *norm) {
    struct weft_norm_task task = task_of(source, norm);
    uint32_t row_units = (uint32_t)(norm->cols * weft_element_bytes(norm->dtype) / UNIT);
    struct weft_gpu_channels channels;
    if (on->team->npes == 1)
        return launch(on, &task, norm->dtype);
    int error = -ENOTSUP;
    if (!weft_on_stream_is_apart(on) && is_small(on, norm))
        error = weft_device_channels(&channels, on->team, WEFT_FORM_MARKED);
    if (error == 0)
        set_rows(&task.rows_each, &channels, &task, row_units);
    if (error != 0 && error != -ENOTSUP)
        return error;
    weft_same_way_check(on->team, task.rows_each > 0 ? WEFT_WAY_MARKED : WEFT_WAY_MEET);
    return task.rows_each > 0 ? launch_with_sums(on, &channels, &task,
                                                 kernel_for(norm->dtype, on->team->npes), row_units)
                              : reduce_first(on, source, norm, &task);
}
