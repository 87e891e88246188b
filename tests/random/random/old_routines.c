/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics without `atomic` in their names: without contexts, and only blocking. */
#include "amo_bodies.h"

/* clang-format off */
#define INTEGER(N, T, _)                                                                           \
    HEAD(N, T, standard)                                                                           \
        (void)ctx;                                                                                 \
        if (operation == COMPARE_SWAP)                                                             \
            *f = shmem_##N##_cswap(d, cond, value, pe);                                            \
        else if (operation == ADD && form == FETCHING)                                             \
            *f = shmem_##N##_fadd(d, value, pe);                                                   \
        else if (operation == ADD)                                                                 \
            shmem_##N##_add(d, value, pe);                                                         \
        else if (form == FETCHING)                                                                 \
            *f = shmem_##N##_finc(d, pe);                                                          \
        else                                                                                       \
            shmem_##N##_inc(d, pe);                                                                \
    }
#define NUMBER(N, T, _)                                                                            \
    HEAD(N, T, extended)                                                                           \
        (void)ctx, (void)cond, (void)form;                                                         \
        if (operation == SET)                                                                      \
            shmem_##N##_set(d, value, pe);                                                         \
        else if (operation == SWAP)                                                                \
            *f = shmem_##N##_swap(d, value, pe);                                                   \
        else                                                                                       \
            *f = shmem_##N##_fetch(d, pe);                                                         \
    }
SHMEM_OLD_INTEGER_TYPES(INTEGER, _)
SHMEM_OLD_NUMBER_TYPES(NUMBER, _)

#define INTEGER_ROW(N, T, _) {#N, sizeof(T), standard_##N, NULL, extended_##N},
#define REAL_ROW(N, T, _)    {#N, sizeof(T), NULL, NULL, extended_##N},
/* int, long and long long are the first of the words. */
const struct amo_routines old_amo_routines[] = {
    [AMO_BITWISE_ROWS] = SHMEM_OLD_INTEGER_TYPES(INTEGER_ROW, _)
    [AMO_REAL_ROWS] = SHMEM_REALS(REAL_ROW, _)
};
/* clang-format on */
