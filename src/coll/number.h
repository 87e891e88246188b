/* SPDX-License-Identifier: BSD-3-Clause */
/* What is folded, and how: names and a layout that the library and its kernels share. */
#ifndef WEFT_COLL_NUMBER_H
#define WEFT_COLL_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include "weft/addr.h"

/* What numbers the C types are: several are the same. */
enum weft_number {
    WEFT_NUMBER_I8,
    WEFT_NUMBER_I16,
    WEFT_NUMBER_I32,
    WEFT_NUMBER_I64,
    WEFT_NUMBER_U8,
    WEFT_NUMBER_U16,
    WEFT_NUMBER_U32,
    WEFT_NUMBER_U64,
    WEFT_NUMBER_FLOAT,
    WEFT_NUMBER_DOUBLE,
    WEFT_NUMBER_LONGDOUBLE,
    WEFT_NUMBER_COMPLEXF,
    WEFT_NUMBER_COMPLEXD,
    WEFT_NUMBER_BF16, /* kernels fold 16-bit floats as floats, and round once at the end */
    WEFT_NUMBER_F16,
    WEFT_NUMBERS,
};

/* Of an integer the one of its width without a sign, which has the same bits where a fold does not
 * compare. */
static inline enum weft_number weft_number_unsigned(enum weft_number number) {
    int to_unsigned = WEFT_NUMBER_U8 - WEFT_NUMBER_I8;
    return number <= WEFT_NUMBER_I64 ? (enum weft_number)(number + to_unsigned) : number;
}

enum weft_fold_op {
    WEFT_FOLD_AND,
    WEFT_FOLD_OR,
    WEFT_FOLD_XOR,
    WEFT_FOLD_MAX,
    WEFT_FOLD_MIN,
    WEFT_FOLD_SUM,
    WEFT_FOLD_PROD,
    WEFT_FOLD_OPS,
};

/* What a reduction does to its elements. */
struct weft_reduction {
    enum weft_fold_op op;
    enum weft_number number;
    bool average; /* a sum, divided by how many it is of: of real and complex numbers */
};

/* What the kernels weftk_fold_* do: element i of all destinations becomes the fold of element i of
 * all sources, in their order. A destination may be one of the sources, all of it. */
struct weft_fold_task {
    struct weft_array sources, dests;
    size_t nelems;
    int nsources, ndests;
    int op, number; /* enum weft_fold_op, enum weft_number but long double */
    int divisor;    /* what a sum is divided by; 0: by nothing */
};
enum { WEFT_FOLD_THREADS = 512 };

#endif
