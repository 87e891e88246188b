/* SPDX-License-Identifier: BSD-3-Clause */
/* Every message says what the value is and what it should be. */
#include "ops/check.h"
#include <errno.h>
#include <stdio.h>
#include "core/dispatch.h"
#include "ops/matmul.h"

bool weft_wrong_type(char text[WEFT_WRONG_BYTES], weft_dtype dtype, const weft_op *op) {
    text[0] = '\0';
    if (op && (*op < WEFT_SUM || *op > WEFT_PROD))
        snprintf(text, WEFT_WRONG_BYTES, "op is %d, which is no operation", (int)*op);
    else if (weft_element_bytes(dtype) == 0)
        snprintf(text, WEFT_WRONG_BYTES, "dtype is %d, which is no type", (int)dtype);
    else if (op && !weft_element_reduces(dtype, *op))
        snprintf(text, WEFT_WRONG_BYTES, "op is %s, which %s does not have", weft_op_name(*op),
                 weft_element_name(dtype));
    return text[0] != '\0';
}

bool weft_check_type(struct weft_meeting *meeting, weft_dtype dtype, const weft_op *op) {
    char text[WEFT_WRONG_BYTES];
    return !weft_wrong_type(text, dtype, op) || weft_meeting_refuse(meeting, -EINVAL, "%s", text);
}

/* These calls are made by processors. */
static bool is_device(const void *p) {
    return weft_dispatch_of_memory(p, p) != NULL;
}

bool weft_check_pointer(struct weft_meeting *meeting, const char *name, const void *p, size_t bytes,
                        const char *instead) {
    if (!p && bytes > 0)
        weft_meeting_refuse(meeting, -EINVAL, "%s is NULL", name);
    else if (bytes > 0 && is_device(p))
        weft_meeting_refuse(meeting, -ENOTSUP, "%s is in the memory of a GPU%s", name, instead);
    return !weft_meeting_refused(meeting);
}

/* "b[2]." or "a->", in front of what is wrong. */
static const char *name_prefix(char text[32], const char *name, int index) {
    if (index < 0)
        snprintf(text, 32, "%s->", name);
    else
        snprintf(text, 32, "%s[%d].", name, index);
    return text;
}

bool weft_check_matrix(struct weft_meeting *meeting, const char *name, int index,
                       const weft_matrix *matrix) {
    char text[32];
    if (!matrix)
        return weft_meeting_refuse(meeting, -EINVAL, "%s is NULL", name);
    name_prefix(text, name, index);
    size_t element = weft_element_bytes(matrix->dtype);
    if (!element)
        weft_meeting_refuse(meeting, -EINVAL, "%sdtype is %d, which is no type", text,
                            (int)matrix->dtype);
    else if (matrix->ld < matrix->cols)
        weft_meeting_refuse(meeting, -EINVAL, "%sld is %zu, less than its cols %zu", text,
                            matrix->ld, matrix->cols);
    else if (matrix->ld > 0 && matrix->rows > (size_t)PTRDIFF_MAX / element / matrix->ld)
        weft_meeting_refuse(meeting, -EINVAL, "%srows is %zu, more than memory has", text,
                            matrix->rows);
    else if (!matrix->data && matrix->rows > 0 && matrix->cols > 0)
        weft_meeting_refuse(meeting, -EINVAL, "%sdata is NULL", text);
    else if (matrix->data && is_device(matrix->data))
        weft_meeting_refuse(meeting, -ENOTSUP,
                            "%sdata is in the memory of a GPU, which this call "
                            "does not take",
                            text);
    return !weft_meeting_refused(meeting);
}

bool weft_check_equal(struct weft_meeting *meeting, const char *name, int index, const char *what,
                      size_t value, const char *wanted_name, size_t wanted) {
    char text[32];
    return value == wanted ||
           weft_meeting_refuse(meeting, -EINVAL, "%s%s is %zu, but %s is %zu",
                               name_prefix(text, name, index), what, value, wanted_name, wanted);
}

bool weft_check_dtype(struct weft_meeting *meeting, const char *name, int index,
                      const weft_matrix *matrix, weft_dtype wanted) {
    char text[32];
    return matrix->dtype == wanted ||
           weft_meeting_refuse(meeting, -EINVAL, "%sdtype is %s, but that of the others is %s",
                               name_prefix(text, name, index), weft_element_name(matrix->dtype),
                               weft_element_name(wanted));
}

bool weft_check_sum(struct weft_meeting *meeting, weft_op op) {
    return op == WEFT_SUM || op == WEFT_AVG ||
           weft_meeting_refuse(meeting, -EINVAL, "op is %d, neither WEFT_SUM nor WEFT_AVG",
                               (int)op);
}

bool weft_check_matmul(struct weft_meeting *meeting, weft_dtype dtype, bool scaled) {
    bool narrow = dtype == WEFT_F8E4M3 || dtype == WEFT_F8E5M2;
    bool right = scaled ? narrow : dtype >= WEFT_F32 && dtype <= WEFT_F16;
    if (!right)
        return weft_meeting_refuse(meeting, -EINVAL,
                                   "dtype is %s, which this call does not multiply",
                                   weft_element_name(dtype));
    int error = weft_matmul_supports(dtype);
    return error == 0 || weft_meeting_refuse(meeting, error, "%s", weft_fail_text());
}

/* --- Scaled products ------------------------------------------------------------------------- */

static bool refuse_dtype(struct weft_meeting *meeting, const char *name, int index,
                         const weft_matrix *matrix, const char *wanted) {
    char text[32];
    return weft_meeting_refuse(meeting, -EINVAL, "%sdtype is %s, not %s",
                               name_prefix(text, name, index), weft_element_name(matrix->dtype),
                               wanted);
}

static bool check_factor(struct weft_meeting *meeting, const char *name, int index,
                         const weft_matrix *factor) {
    if (!weft_check_matrix(meeting, name, index, factor))
        return false;
    bool right = factor->dtype == WEFT_F8E4M3 || factor->dtype == WEFT_F8E5M2;
    return right || refuse_dtype(meeting, name, index, factor, "WEFT_F8E4M3 or WEFT_F8E5M2");
}

static bool check_scale(struct weft_meeting *meeting, const char *name, int index,
                        const weft_matrix *scale, size_t rows, size_t cols) {
    char text[32];
    if (!weft_check_matrix(meeting, name, index, scale))
        return false;
    if (scale->dtype != WEFT_F32)
        return refuse_dtype(meeting, name, index, scale, "WEFT_F32");
    bool one = scale->rows == 1 && scale->cols == 1;
    bool each = scale->rows == rows && scale->cols == cols;
    return one || each ||
           weft_meeting_refuse(
               meeting, -EINVAL, "%srows x cols is %zu x %zu, not 1 x 1 or %zu x %zu",
               name_prefix(text, name, index), scale->rows, scale->cols, rows, cols);
}

static bool is_float(weft_dtype dtype) {
    return dtype == WEFT_F32 || dtype == WEFT_BF16 || dtype == WEFT_F16;
}

static bool check_bias(struct weft_meeting *meeting, int index, const weft_matrix *bias,
                       size_t cols) {
    if (!bias || bias->cols == 0)
        return true;
    if (!weft_check_matrix(meeting, "bias", index, bias))
        return false;
    if (!is_float(bias->dtype))
        return refuse_dtype(meeting, "bias", index, bias, "WEFT_F32, WEFT_BF16 or WEFT_F16");
    return weft_check_equal(meeting, "bias", index, "rows", bias->rows, "that of a bias", 1) &&
           weft_check_equal(meeting, "bias", index, "cols", bias->cols, "that of its b", cols);
}

static bool check_result(struct weft_meeting *meeting, const char *name, int index,
                         const weft_matrix *result) {
    return weft_check_matrix(meeting, name, index, result) &&
           (is_float(result->dtype) ||
            refuse_dtype(meeting, name, index, result, "WEFT_F32, WEFT_BF16 or WEFT_F16"));
}

bool weft_check_left(struct weft_meeting *meeting, const char *name, const weft_matrix *a,
                     const struct weft_scales *scales) {
    if (!scales)
        return weft_check_matrix(meeting, name, -1, a);
    return check_factor(meeting, name, -1, a) &&
           check_scale(meeting, "a_scale", -1, scales->a, a->rows, 1);
}

bool weft_check_right(struct weft_meeting *meeting, weft_dtype dtype,
                      const struct weft_scales *scales, const struct weft_right *r) {
    int index = r->index;
    if (!scales)
        return weft_check_matrix(meeting, "b", index, r->b) &&
               weft_check_matrix(meeting, r->c_name, index, r->c) &&
               weft_check_dtype(meeting, "b", index, r->b, dtype) &&
               weft_check_dtype(meeting, r->c_name, index, r->c, dtype);
    size_t j = index < 0 ? 0 : (size_t)index;
    const weft_matrix *bias = scales->bias ? &scales->bias[j] : NULL;
    const weft_matrix *scale = scales->b ? &scales->b[j] : NULL;
    return check_factor(meeting, "b", index, r->b) &&
           check_scale(meeting, "b_scale", index, scale, 1, r->b->cols) &&
           check_bias(meeting, index, bias, r->b->cols) &&
           check_result(meeting, r->c_name, index, r->c);
}
