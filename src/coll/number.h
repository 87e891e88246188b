/* SPDX-License-Identifier: BSD-3-Clause */
/* What is folded, and how: names and a layout that the library and its kernels share. */
#ifndef WEFT_COLL_NUMBER_H
#define WEFT_COLL_NUMBER_H

#include <stddef.h>
#include "transport/gpu_array.h"

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
    WEFT_NUMBERS,
};

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

/* What kernel weft_fold does: element i of all destinations becomes the fold of element i of all
 * sources, in their order. A destination may be one of the sources, all of it. */
struct weft_fold_task {
    struct weft_gpu_array sources, dests;
    size_t nelems;
    int nsources, ndests;
    int op, number; /* enum weft_fold_op, enum weft_number but long double */
};
enum { WEFT_FOLD_THREADS = 512 };

#endif
