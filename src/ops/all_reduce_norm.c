/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_all_reduce_rms_norm: arguments and agreement. For threads, weft_all_reduce and then the rows
 * one by one; on a stream see coll/on_stream_norm.c. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "coll/meeting.h"
#include "coll/narrow.h"
#include "coll/on_stream.h"
#include "ops/check.h"

enum { ROWS, COLS, DTYPE }; /* indices of the facts of an offer */
enum { GROUP_MULTIPLE = 8 };

/* --- Arguments -------------------------------------------------------------------------------- */

static int check_shape(const weft_norm *norm) {
    if (!norm)
        return weft_fail_bare(-EINVAL, "norm is NULL");
    if (norm->dtype != WEFT_F32 && norm->dtype != WEFT_BF16 && norm->dtype != WEFT_F16)
        return weft_fail_bare(-EINVAL, "norm->dtype is %s, not WEFT_F32, WEFT_BF16 or WEFT_F16",
                              weft_element_name(norm->dtype));
    if (norm->rows > INT32_MAX || norm->cols > INT32_MAX ||
        norm->rows * norm->cols > (size_t)PTRDIFF_MAX / sizeof(double))
        return weft_fail_bare(-EINVAL, "norm->rows is %zu and cols %zu: pass less than 2^31",
                              norm->rows, norm->cols);
    if (norm->group > 0 && (norm->group % GROUP_MULTIPLE != 0 || norm->cols % norm->group != 0))
        return weft_fail_bare(-EINVAL,
                              "norm->group is %zu: pass a multiple of 8 that divides the %zu cols",
                              norm->group, norm->cols);
    return 0;
}

/* An array of the call. */
struct given {
    const char *name;
    const void *at;
    size_t bytes;
    bool optional;
};
enum { ARRAYS = 8 };
struct all_given {
    struct given of[ARRAYS];
};

static struct all_given given_of(const void *source, const weft_norm *norm) {
    size_t row = norm->cols * weft_element_bytes(norm->dtype), all = norm->rows * row;
    size_t groups = norm->group > 0 ? norm->rows * (norm->cols / norm->group) : 1;
    size_t narrow = norm->quantized ? norm->rows * norm->cols : 0;
    return (struct all_given){
        {{"source", source, all, false},
         {"norm->bias", norm->bias, row, true},
         {"norm->residual", norm->residual, all, true},
         {"norm->weight", norm->weight, row, true},
         {"norm->residual_out", norm->residual_out, all, false},
         {"norm->out", norm->out, all, false},
         {"norm->quantized", norm->quantized, narrow, true},
         {"norm->scales", norm->scales, narrow > 0 ? groups * sizeof(float) : 0, false}}};
}

/* Checks that all arrays are present that have elements, and with `check` what the caller asks. */
static int check_arrays(const void *source, const weft_norm *norm,
                        int (*check)(const struct given *array)) {
    struct all_given all = given_of(source, norm);
    int error = 0;
    for (int i = 0; i < ARRAYS && error == 0; i++) {
        const struct given *array = &all.of[i];
        if (array->bytes == 0 || (!array->at && array->optional))
            continue;
        error = array->at ? check(array) : weft_fail_bare(-EINVAL, "%s is NULL", array->name);
    }
    return error;
}

static int check_here(const struct given *array) {
    return weft_check_pointer(array->name, array->at, array->bytes, ": pass a stream");
}

/* --- Of the host ------------------------------------------------------------------------------ */

static void widen_or_zero(float *to, const void *from, size_t first, const weft_norm *norm) {
    size_t element = weft_element_bytes(norm->dtype);
    if (from)
        weft_elements_widen(to, (const char *)from + first * element, norm->dtype, norm->cols);
    else
        memset(to, 0, norm->cols * sizeof *to);
}

static void quantize_row(const weft_norm *norm, size_t row, const float *y) {
    size_t group = norm->group > 0 ? norm->group : norm->cols;
    uint8_t *to = (uint8_t *)norm->quantized + row * norm->cols;
    for (size_t begin = 0; begin < norm->cols; begin += group) {
        float *scale = norm->scales, greatest = 0;
        for (size_t i = begin; i < begin + group; i++)
            greatest = fabsf(y[i]) > greatest ? fabsf(y[i]) : greatest;
        if (norm->group > 0) {
            scale += (row * norm->cols + begin) / group;
            *scale = weft_f8e4m3_scale(greatest);
        }
        for (size_t i = begin; i < begin + group; i++)
            to[i] = weft_f8e4m3_of_float(y[i] / *scale);
    }
}

/* Normalises a row whose sum is in out. `z`, `more` and `weight` have room for a row; weight is
 * set. */
static void norm_row(const weft_norm *norm, size_t row, float *z, float *more,
                     const float *weight) {
    size_t first = row * norm->cols, element = weft_element_bytes(norm->dtype);
    char *out = (char *)norm->out + first * element,
         *residual = (char *)norm->residual_out + first * element;
    double squares = 0;
    weft_elements_widen(z, out, norm->dtype, norm->cols);
    if (norm->bias) {
        widen_or_zero(more, norm->bias, 0, norm);
        for (size_t i = 0; i < norm->cols; i++)
            z[i] += more[i];
    }
    if (norm->residual) {
        widen_or_zero(more, norm->residual, first, norm);
        for (size_t i = 0; i < norm->cols; i++)
            z[i] += more[i];
    }
    weft_elements_narrow(residual, norm->dtype, z, norm->cols);
    weft_elements_widen(z, residual, norm->dtype, norm->cols);
    for (size_t i = 0; i < norm->cols; i++)
        squares += (double)z[i] * z[i];
    float factor = 1.0f / sqrtf((float)(squares / (double)norm->cols) + norm->epsilon);
    for (size_t i = 0; i < norm->cols; i++)
        z[i] = norm->weight ? z[i] * factor * weight[i] : z[i] * factor;
    weft_elements_narrow(out, norm->dtype, z, norm->cols);
    if (norm->quantized)
        quantize_row(norm, row, z);
}

static void norm_rows(const weft_norm *norm, float *room) {
    float *z = room, *more = room + norm->cols, *weight = room + 2 * norm->cols;
    widen_or_zero(weight, norm->weight, 0, norm);
    for (size_t row = 0; row < norm->rows; row++)
        norm_row(norm, row, z, more, weight);
}

static int check_all(const void *source, const weft_norm *norm) {
    int error = check_shape(norm);
    return error ? error : check_arrays(source, norm, check_here);
}

static int agree(shmem_team_t team, const void *source, const weft_norm *norm, float **room) {
    struct weft_meeting meeting;
    int error = weft_meeting_open(&meeting, team, WEFT_CALL_ALL_REDUCE_RMS_NORM, WEFT_STREAM_HOST);
    error = error ? error : check_all(source, norm);
    if (!error) {
        enum { THREE = 3 }; /* rows of floats */
        *room = malloc(THREE * (norm->cols + 1) * sizeof **room);
        if (!*room)
            error =
                weft_fail_bare(-ENOMEM, "there is no memory for rows of %zu floats", norm->cols);
        meeting.mine.facts[ROWS] = norm->rows;
        meeting.mine.facts[COLS] = norm->cols;
        meeting.mine.facts[DTYPE] = (uint64_t)norm->dtype;
    }
    weft_meeting_post(&meeting, error);
    return weft_meeting_close(&meeting, weft_meeting_agree(&meeting));
}

static int norm_here(shmem_team_t team, const void *source, const weft_norm *norm) {
    float *room = NULL;
    int error = agree(team, source, norm, &room);
    if (!error)
        error = weft_all_reduce(team, norm->out, source, norm->rows * norm->cols, norm->dtype,
                                WEFT_SUM, WEFT_STREAM_HOST);
    if (!error)
        norm_rows(norm, room);
    free(room);
    return error;
}

/* --- On a stream ------------------------------------------------------------------------------ */

static int check_reached(const struct given *array) {
    return weft_check_reached(array->name, array->at, array->bytes);
}

static int norm_on_stream(shmem_team_t team, const void *source, const weft_norm *norm,
                          weft_stream stream) {
    struct weft_on_stream on = {.stream = (weft_cu_stream)stream};
    int error = check_shape(norm);
    if (error)
        return weft_check_fail_named(error);
    error = weft_on_stream_enter(&on, team);
    if (error)
        return error;
    error = check_arrays(source, norm, check_reached);
    if (error)
        error = weft_check_fail_named(error);
    else if (norm->rows * norm->cols > 0)
        error = weft_on_stream_norm(&on, source, norm);
    return weft_on_stream_end(&on, error);
}

int weft_all_reduce_rms_norm(shmem_team_t team, const void *source, const weft_norm *norm,
                             weft_stream stream) {
    WEFT_IN_CALL(__func__);
    return stream == WEFT_STREAM_HOST ? norm_here(team, source, norm)
                                      : norm_on_stream(team, source, norm, stream);
}
