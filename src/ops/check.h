/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of arguments. Each returns 0, or -errno with text that names the argument and its value,
 * but not the call, which weft_meeting_agree adds. */
#ifndef WEFT_OPS_CHECK_H
#define WEFT_OPS_CHECK_H

#include <weft.h>
#include "coll/scaling.h"

/* A matrix, with its name in texts: "b[2]", or "a" if `index` is negative. */
struct weft_matrix_argument {
    const char *name;
    int index;
    const weft_matrix *matrix;
    bool gpu; /* a GPU takes it, which needs checks of its own; otherwise a processor */
};

/* Returns `error`, with the text "b[2].WHAT". */
int weft_check_fail(const struct weft_matrix_argument *argument, int error, const char *what);

/* Adds the name of the call to the text of a failed check, where there is no meeting. Returns
 * `error`. */
int weft_check_fail_named(int error);

/* Checks a type and, unless `op` is NULL, a reduction of its elements. */
int weft_check_type(weft_dtype dtype, const weft_op *op);

/* Checks that an argument of `bytes` is present, and in memory that this call takes. `instead` says
 * what to do with GPU memory. */
int weft_check_pointer(const char *name, const void *p, size_t bytes, const char *instead);

/* The same on a stream: checks that kernels of this PE's GPU reach the argument. Called between
 * weft_on_stream_begin and _end. */
int weft_check_reached(const char *name, const void *p, size_t bytes);

/* Checks that a matrix can be read or written: present, row-major, of a known type, ld >= cols,
 * with data unless it is empty. */
int weft_check_matrix(const struct weft_matrix_argument *argument);

/* Check a size, or the type, of a matrix; texts such as "b[1].rows is 3, but a_shard->cols is 4".
 */
int weft_check_equal(const struct weft_matrix_argument *argument, const char *what, size_t value,
                     const char *wanted_name, size_t wanted);
int weft_check_dtype(const struct weft_matrix_argument *argument, weft_dtype wanted);

/* Checks that op is WEFT_SUM or WEFT_AVG. */
int weft_check_sum(weft_op op);

/* Checks that matrices of this type can be multiplied, `scaled` or not; weft_check_matmul also
 * checks that there is a library for processors. */
int weft_check_multiplied(weft_dtype dtype, bool scaled);
int weft_check_matmul(weft_dtype dtype, bool scaled);

/* Checks the first factor of a product, which may be transposed, and its scales if `scales` is not
 * NULL. */
int weft_check_left(const struct weft_matrix_argument *a, const struct weft_scales *scales);

/* Checks the second factor and the result, with the b_scale and the bias of b's index. Without
 * scales both must have `dtype`, the type of the first factor. */
int weft_check_right(weft_dtype dtype, const struct weft_scales *scales,
                     const struct weft_matrix_argument *b, const struct weft_matrix_argument *c);

#endif
