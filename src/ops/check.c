/* SPDX-License-Identifier: BSD-3-Clause */
/* Every text contains the value and the condition that it violates. */
#include "ops/check.h"
#include <errno.h>
#include <stdio.h>
#include "fused/fused.h"
#include "ops/matmul.h"

int weft_check_fail_named(int error) {
    return weft_fail(error, "%s", weft_fail_text());
}

int weft_check_type(weft_dtype dtype, const weft_op *op) {
    if (op && (*op < WEFT_SUM || *op > WEFT_PROD))
        return weft_fail_bare(-EINVAL, "op is %d, which is not an operation", (int)*op);
    if (weft_element_bytes(dtype) == 0)
        return weft_fail_bare(-EINVAL, "dtype is %d, which is not a type", (int)dtype);
    if (op && !weft_element_reduces(dtype, *op))
        return weft_fail_bare(-EINVAL, "op is %s, which %s does not have", weft_op_name(*op),
                              weft_element_name(dtype));
    return 0;
}

/* Processors do the work of these calls. */
static bool is_device(const void *p) {
    return weft_dispatch_of_memory(p, p) != NULL;
}

int weft_check_pointer(const char *name, const void *p, size_t bytes, const char *instead) {
    if (!p && bytes > 0)
        return weft_fail_bare(-EINVAL, "%s is NULL", name);
    if (bytes > 0 && is_device(p))
        return weft_fail_bare(-ENOTSUP, "%s is in GPU memory%s", name, instead);
    return 0;
}

int weft_check_reached(const char *name, const void *p, size_t bytes) {
    weft_matrix whole = {(void *)p, 1, bytes, bytes, WEFT_U8, false};
    if (!p && bytes > 0)
        return weft_fail_bare(-EINVAL, "%s is NULL", name);
    if (bytes == 0 || weft_fused_reaches(&whole))
        return 0;
    return weft_fail_bare(
        -ENOTSUP, "%s is in host memory that this PE's GPU does not reach: use GPU memory", name);
}

/* The name of an argument as it precedes that of a member: "b[2]." or "a->". */
struct name_prefix {
    char text[32];
};

static struct name_prefix prefix_of(const struct weft_matrix_argument *argument) {
    struct name_prefix prefix;
    if (argument->index < 0)
        snprintf(prefix.text, sizeof prefix.text, "%s->", argument->name);
    else
        snprintf(prefix.text, sizeof prefix.text, "%s[%d].", argument->name, argument->index);
    return prefix;
}

int weft_check_fail(const struct weft_matrix_argument *argument, int error, const char *what) {
    return weft_fail_bare(error, "%s%s", prefix_of(argument).text, what);
}

/* Checks a matrix of either orientation. */
static int check_layout(const struct weft_matrix_argument *argument) {
    const weft_matrix *m = argument->matrix;
    if (!m)
        return weft_fail_bare(-EINVAL, "%s is NULL", argument->name);
    struct name_prefix prefix = prefix_of(argument);
    size_t element = weft_element_bytes(m->dtype);
    if (!element)
        return weft_fail_bare(-EINVAL, "%sdtype is %d, which is not a type", prefix.text,
                              (int)m->dtype);
    weft_matrix lines = m->transposed ? weft_matrix_transpose(m) : *m;
    if (lines.ld < lines.cols)
        return weft_fail_bare(-EINVAL, "%sld is %zu, less than its %s %zu", prefix.text, lines.ld,
                              m->transposed ? "rows" : "cols", lines.cols);
    if (lines.ld > 0 && lines.rows > (size_t)PTRDIFF_MAX / element / lines.ld)
        return weft_fail_bare(-EINVAL, "%s%s is %zu, more than memory has", prefix.text,
                              m->transposed ? "cols" : "rows", lines.rows);
    if (!m->data && m->rows > 0 && m->cols > 0)
        return weft_fail_bare(-EINVAL, "%sdata is NULL", prefix.text);
    if (m->data && !argument->gpu && is_device(m->data))
        return weft_fail_bare(-ENOTSUP,
                              "%sdata is in GPU memory: pass a stream, whose GPU does the work",
                              prefix.text);
    return 0;
}

int weft_check_matrix(const struct weft_matrix_argument *argument) {
    if (!argument->matrix || !argument->matrix->transposed)
        return check_layout(argument);
    return weft_fail_bare(
        -EINVAL,
        "%stransposed is true, but only a_shard, a and b may be transposed: pass a "
        "row-major matrix",
        prefix_of(argument).text);
}

int weft_check_equal(const struct weft_matrix_argument *argument, const char *what, size_t value,
                     const char *wanted_name, size_t wanted) {
    return value == wanted
               ? 0
               : weft_fail_bare(-EINVAL, "%s%s is %zu, but %s is %zu", prefix_of(argument).text,
                                what, value, wanted_name, wanted);
}

int weft_check_dtype(const struct weft_matrix_argument *argument, weft_dtype wanted) {
    weft_dtype dtype = argument->matrix->dtype;
    return dtype == wanted
               ? 0
               : weft_fail_bare(-EINVAL, "%sdtype is %s, but the other matrices have %s",
                                prefix_of(argument).text, weft_element_name(dtype),
                                weft_element_name(wanted));
}

int weft_check_sum(weft_op op) {
    bool right = op == WEFT_SUM || op == WEFT_AVG;
    return right ? 0 : weft_fail_bare(-EINVAL, "op is %d, neither WEFT_SUM nor WEFT_AVG", (int)op);
}

static bool is_narrow(weft_dtype dtype) {
    return dtype == WEFT_F8E4M3 || dtype == WEFT_F8E5M2;
}

int weft_check_multiplied(weft_dtype dtype, bool scaled) {
    bool right = scaled ? is_narrow(dtype) : dtype >= WEFT_F32 && dtype <= WEFT_F16;
    return right ? 0
                 : weft_fail_bare(-EINVAL, "dtype is %s, which this call does not multiply",
                                  weft_element_name(dtype));
}

int weft_check_matmul(weft_dtype dtype, bool scaled) {
    int error = weft_check_multiplied(dtype, scaled);
    return error ? error : weft_matmul_supports(dtype);
}

/* --- Scaled products ------------------------------------------------------------------------- */

static int fail_dtype(const struct weft_matrix_argument *argument, const char *wanted) {
    return weft_fail_bare(-EINVAL, "%sdtype is %s, not %s", prefix_of(argument).text,
                          weft_element_name(argument->matrix->dtype), wanted);
}

static int check_narrow(const struct weft_matrix_argument *factor) {
    int error = check_layout(factor);
    return error || is_narrow(factor->matrix->dtype)
               ? error
               : fail_dtype(factor, "WEFT_F8E4M3 or WEFT_F8E5M2");
}

/* Scales are one for all, or one for each row or column. */
static int check_scale(const struct weft_matrix_argument *argument, size_t rows, size_t cols) {
    const weft_matrix *scale = argument->matrix;
    int error = weft_check_matrix(argument);
    if (error)
        return error;
    if (scale->dtype != WEFT_F32)
        return fail_dtype(argument, "WEFT_F32");
    if ((scale->rows == 1 && scale->cols == 1) || (scale->rows == rows && scale->cols == cols))
        return 0;
    return weft_fail_bare(-EINVAL, "%srows x cols is %zu x %zu, not 1 x 1 or %zu x %zu",
                          prefix_of(argument).text, scale->rows, scale->cols, rows, cols);
}

/* Checks a result or a bias. */
static int check_float(const struct weft_matrix_argument *argument) {
    int error = weft_check_matrix(argument);
    if (error)
        return error;
    weft_dtype dtype = argument->matrix->dtype;
    bool right = dtype == WEFT_F32 || dtype == WEFT_BF16 || dtype == WEFT_F16;
    return right ? 0 : fail_dtype(argument, "WEFT_F32, WEFT_BF16 or WEFT_F16");
}

static int check_bias(const struct weft_matrix_argument *argument, size_t cols) {
    const weft_matrix *bias = argument->matrix;
    if (!bias || bias->cols == 0)
        return 0;
    int error = check_float(argument);
    error = error
                ? error
                : weft_check_equal(argument, "rows", bias->rows, "the number of rows of a bias", 1);
    return error ? error
                 : weft_check_equal(argument, "cols", bias->cols, "the number of columns of its b",
                                    cols);
}

int weft_check_left(const struct weft_matrix_argument *a, const struct weft_scales *scales) {
    if (!scales)
        return check_layout(a);
    int error = check_narrow(a);
    struct weft_matrix_argument scale = {"a_scale", -1, scales->a, a->gpu};
    return error ? error : check_scale(&scale, a->matrix->rows, 1);
}

static int check_right_scaled(const struct weft_scales *scales,
                              const struct weft_matrix_argument *b) {
    size_t j = b->index < 0 ? 0 : (size_t)b->index;
    struct weft_matrix_argument scale = {"b_scale", b->index, scales->b ? &scales->b[j] : NULL,
                                         b->gpu};
    struct weft_matrix_argument bias = {"bias", b->index, scales->bias ? &scales->bias[j] : NULL,
                                        b->gpu};
    int error = check_narrow(b);
    error = error ? error : check_scale(&scale, 1, b->matrix->cols);
    return error ? error : check_bias(&bias, b->matrix->cols);
}

int weft_check_right(weft_dtype dtype, const struct weft_scales *scales,
                     const struct weft_matrix_argument *b, const struct weft_matrix_argument *c) {
    if (scales) {
        int error = check_right_scaled(scales, b);
        return error ? error : check_float(c);
    }
    int error = check_layout(b);
    error = error ? error : weft_check_matrix(c);
    error = error ? error : weft_check_dtype(b, dtype);
    return error ? error : weft_check_dtype(c, dtype);
}
