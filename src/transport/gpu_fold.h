/* SPDX-License-Identifier: BSD-3-Clause */
/* The reductions that kernels implement: one kernel for each operation and type, so that each is
 * small and uses only the registers that it needs. Bitwise operations, and sums and products of
 * integers, do not depend on the sign: one kernel for unsigned types serves both. */
#ifndef WEFT_TRANSPORT_GPU_FOLD_H
#define WEFT_TRANSPORT_GPU_FOLD_H

/* Lists of Y(X, family, op, number, OP, NUMBER): a kernel's name is family_op_number; OP and NUMBER
 * name the values of enum weft_fold_op and enum weft_number (coll/number.h). */

/* clang-format off */
#define WEFT_GPU_FOLDS_UNSIGNED(Y, X, family, op, OP) \
    Y(X, family, op, u8, OP, U8)   Y(X, family, op, u16, OP, U16) \
    Y(X, family, op, u32, OP, U32) Y(X, family, op, u64, OP, U64)
#define WEFT_GPU_FOLDS_SIGNED(Y, X, family, op, OP) \
    Y(X, family, op, i8, OP, I8)   Y(X, family, op, i16, OP, I16) \
    Y(X, family, op, i32, OP, I32) Y(X, family, op, i64, OP, I64)
#define WEFT_GPU_FOLDS_REAL(Y, X, family, op, OP) \
    Y(X, family, op, f32, OP, FLOAT) Y(X, family, op, f64, OP, DOUBLE) \
    Y(X, family, op, bf16, OP, BF16) Y(X, family, op, f16, OP, F16)
#define WEFT_GPU_FOLDS_COMPLEX(Y, X, family, op, OP) \
    Y(X, family, op, c64, OP, COMPLEXF) Y(X, family, op, c128, OP, COMPLEXD)

#define WEFT_GPU_FOLDS_AND(Y, X, family)  WEFT_GPU_FOLDS_UNSIGNED(Y, X, family, and, AND)
#define WEFT_GPU_FOLDS_OR(Y, X, family)   WEFT_GPU_FOLDS_UNSIGNED(Y, X, family, or, OR)
#define WEFT_GPU_FOLDS_XOR(Y, X, family)  WEFT_GPU_FOLDS_UNSIGNED(Y, X, family, xor, XOR)
#define WEFT_GPU_FOLDS_MAX(Y, X, family)  WEFT_GPU_FOLDS_ORDERED(Y, X, family, max, MAX)
#define WEFT_GPU_FOLDS_MIN(Y, X, family)  WEFT_GPU_FOLDS_ORDERED(Y, X, family, min, MIN)
#define WEFT_GPU_FOLDS_SUM(Y, X, family)  WEFT_GPU_FOLDS_ARITHMETIC(Y, X, family, sum, SUM)
#define WEFT_GPU_FOLDS_PROD(Y, X, family) WEFT_GPU_FOLDS_ARITHMETIC(Y, X, family, prod, PROD)
#define WEFT_GPU_FOLDS_ORDERED(Y, X, family, op, OP) \
    WEFT_GPU_FOLDS_SIGNED(Y, X, family, op, OP)      \
    WEFT_GPU_FOLDS_UNSIGNED(Y, X, family, op, OP)    \
    WEFT_GPU_FOLDS_REAL(Y, X, family, op, OP)
#define WEFT_GPU_FOLDS_ARITHMETIC(Y, X, family, op, OP) \
    WEFT_GPU_FOLDS_UNSIGNED(Y, X, family, op, OP)       \
    WEFT_GPU_FOLDS_REAL(Y, X, family, op, OP)           \
    WEFT_GPU_FOLDS_COMPLEX(Y, X, family, op, OP)

/* All reductions. */
#define WEFT_GPU_FOLDS(Y, X, family)                                   \
    WEFT_GPU_FOLDS_AND(Y, X, family) WEFT_GPU_FOLDS_OR(Y, X, family)   \
    WEFT_GPU_FOLDS_XOR(Y, X, family) WEFT_GPU_FOLDS_MAX(Y, X, family)  \
    WEFT_GPU_FOLDS_MIN(Y, X, family) WEFT_GPU_FOLDS_SUM(Y, X, family)  \
    WEFT_GPU_FOLDS_PROD(Y, X, family)
/* clang-format on */

/* X(name) for each kernel. */
#define WEFT_GPU_FOLD_NAME(X, family, op, number, OP, NUMBER) X(family##_##op##_##number)

#endif
