/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of arguments. A check that fails makes the meeting refuse, with text that names the
 * argument and its value, and returns false, so that checks chain with &&. */
#ifndef WEFT_OPS_CHECK_H
#define WEFT_OPS_CHECK_H

#include <stdbool.h>
#include <weft.h>
#include "coll/meeting.h"
#include "ops/scaling.h"

/* What is wrong with a type or, where there is an op, with a reduction of its elements, in `text`;
 * false: nothing. */
enum { WEFT_WRONG_BYTES = 64 };
bool weft_wrong_type(char text[WEFT_WRONG_BYTES], weft_dtype dtype, const weft_op *op);
bool weft_check_type(struct weft_meeting *meeting, weft_dtype dtype, const weft_op *op);

/* An argument of so many bytes: present, and in memory that this call takes. `instead` says what to
 * do with memory of a GPU. */
bool weft_check_pointer(struct weft_meeting *meeting, const char *name, const void *p, size_t bytes,
                        const char *instead);

/* A matrix that can be read or written: present, of a known type, ld >= cols, with data unless it
 * is empty. `index` >= 0 belongs to the name: b[2]. */
bool weft_check_matrix(struct weft_meeting *meeting, const char *name, int index,
                       const weft_matrix *matrix);

/* Equality of something of two arguments; texts such as "b[1].rows is 3, but a_shard->cols is 4".
 * `index` < 0 is no index, and then the name is followed by "->". */
bool weft_check_equal(struct weft_meeting *meeting, const char *name, int index, const char *what,
                      size_t value, const char *wanted_name, size_t wanted);
bool weft_check_dtype(struct weft_meeting *meeting, const char *name, int index,
                      const weft_matrix *matrix, weft_dtype wanted);

/* op is WEFT_SUM or WEFT_AVG. */
bool weft_check_sum(struct weft_meeting *meeting, weft_op op);

/* Matrices of this type can be multiplied, `scaled` or not, and there is a library for it. */
bool weft_check_matmul(struct weft_meeting *meeting, weft_dtype dtype, bool scaled);

/* The first factor of a product, called `name`, and its scales where there are any. */
bool weft_check_left(struct weft_meeting *meeting, const char *name, const weft_matrix *a,
                     const struct weft_scales *scales);

/* The second one and the result, with the b_scale and the bias of this index: unscaled, of the type
 * of the first one. */
struct weft_right {
    const weft_matrix *b, *c;
    const char *c_name;
    int index; /* as above */
};
bool weft_check_right(struct weft_meeting *meeting, weft_dtype dtype,
                      const struct weft_scales *scales, const struct weft_right *right);

#endif
