/* SPDX-License-Identifier: BSD-3-Clause */
/* Types and operations of folds, and a layout, shared by the library and its kernels. */
#ifndef WEFT_COLL_NUMBER_H
#define WEFT_COLL_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include "weft/addr.h"

/* The number formats of C types; several types have the same. */
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

/* Returns for a signed integer the unsigned one of its width, which has the same bits unless a fold
 * compares. */
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

/* The operation and type of a reduction. */
struct weft_reduction {
    enum weft_fold_op op;
    enum weft_number number;
    bool average; /* a sum that is divided by the number of its sources; of real and complex numbers
                   */
};

/* A task of the kernels weftk_fold_*: element i of all destinations becomes the fold of element i
 * of all sources, in their order. A destination may be exactly one of the sources. */
struct weft_fold_task {
    struct weft_array sources, dests;
    size_t nelems;
    int nsources, ndests;
    int op, number; /* enum weft_fold_op; enum weft_number without long double */
    int divisor;    /* of a sum; 0: it is not divided */
};
enum { WEFT_FOLD_THREADS = 512 };

#endif
