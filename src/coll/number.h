/* SPDX-License-Identifier: BSD-3-Clause */
/* What is folded, and how: names that the library and its kernels share. */
#ifndef WEFT_COLL_NUMBER_H
#define WEFT_COLL_NUMBER_H

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

#endif
