/* SPDX-License-Identifier: BSD-3-Clause */
/* Mixtures of experts on a stream: the arguments are checked here, and fused enqueues the work.
 *
 * As for the other calls on streams (ops/vector.c), the members do not compare their arguments. */
#include "ops/moe_on_stream.h"
#include <errno.h>
#include "coll/on_stream.h"
#include "ops/check.h"

/* Checks that the GPU reaches an array, which may be NULL if it is optional. */
static int check_array(const char *name, const void *p, size_t bytes, bool optional) {
    return !p && optional ? 0 : weft_check_reached(name, p, bytes);
}

/* Arrays of a combine may end with its last row, which the host does not know; without rows data
 * and sources may be NULL. */
static int check_rows(const struct weft_fused_experts *e, size_t experts_each) {
    const weft_moe_rows *rows = e->rows;
    size_t most = e->combines ? 1 : e->shape->rows_max, word = sizeof(int32_t);
    if (!rows)
        return weft_fail_bare(-EINVAL, "rows is NULL");
    int error = check_array("rows->data", rows->data,
                            most * e->shape->cols * weft_element_bytes(e->dtype), e->combines);
    error = error ? error : check_array("rows->sources", rows->sources, most * word, e->combines);
    error = error ? error
                  : check_array("rows->offsets", rows->offsets, (experts_each + 1) * word, false);
    error = error ? error : check_array("rows->weights", rows->weights, most * word, true);
    return error ? error
                 : check_array("rows->scales", rows->scales, most * e->shape->scale_cols * word,
                               true);
}

static int check_call(const struct weft_moe_handle *moe, const struct weft_fused_experts *e) {
    size_t slots = e->ntokens * e->shape->top_k, word = sizeof(int32_t);
    int error = weft_moe_check_sizes(moe, e->dtype, e->ntokens);
    error = error ? error
                  : check_array("tokens", e->tokens,
                                e->ntokens * e->shape->cols * weft_element_bytes(e->dtype), false);
    error = error ? error : check_array("experts", e->experts, slots * word, false);
    error = error ? error : check_array("weights", e->weights, slots * word, true);
    error = error
                ? error
                : check_array("scales", e->scales, e->ntokens * e->shape->scale_cols * word, true);
    error = error ? error : check_array("factors", e->factors, word, true);
    return error ? error : check_rows(e, moe->route.experts_each);
}

typedef int enqueue(const struct weft_on_stream *on, const struct weft_fused_experts *e);

static int run(const struct weft_moe_handle *moe, const struct weft_fused_experts *given,
               weft_stream stream, enqueue *function) {
    struct weft_on_stream on = {.stream = (weft_cu_stream)stream};
    struct weft_fused_experts e = *given;
    if (!moe)
        return weft_fail(-EINVAL, "moe is NULL");
    e.shape = &moe->route.shape;
    int error = weft_on_stream_enter(&on, moe->team);
    if (error)
        return error;
    error = check_call(moe, &e);
    return weft_on_stream_end(&on, error ? weft_check_fail_named(error) : function(&on, &e));
}

int weft_moe_dispatch_on_stream(const struct weft_moe_handle *moe,
                                const struct weft_fused_experts *e, weft_stream stream) {
    return run(moe, e, stream, weft_fused_dispatch);
}

int weft_moe_combine_on_stream(const struct weft_moe_handle *moe,
                               const struct weft_fused_experts *e, weft_stream stream) {
    if (moe && (e->dtype < WEFT_F32 || e->dtype > WEFT_F16))
        return weft_fail(-EINVAL, "dtype is %s, which this call does not add",
                         weft_element_name(e->dtype));
    return run(moe, e, stream, weft_fused_combine);
}
