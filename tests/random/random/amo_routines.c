/* SPDX-License-Identifier: BSD-3-Clause */
#include "routines.h"
#include <string.h>

/* clang-format off */
#define EITHER(NAME, ...)                                                                          \
    (ctx == SHMEM_CTX_INVALID ? shmem_##NAME(__VA_ARGS__) : shmem_ctx_##NAME(ctx, __VA_ARGS__))
#define BY_FORM(N, OP, ...)                                                                        \
    do {                                                                                           \
        if (form == SILENT)                                                                        \
            EITHER(N##_atomic_##OP, d, __VA_ARGS__);                                               \
        else if (form == FETCHING)                                                                 \
            *f = EITHER(N##_atomic_fetch_##OP, d, __VA_ARGS__);                                    \
        else                                                                                       \
            EITHER(N##_atomic_fetch_##OP##_nbi, f, d, __VA_ARGS__);                                \
    } while (0)
#define HEAD(N, T, KIND)                                                                           \
    static void KIND##_##N(shmem_ctx_t ctx, enum amo_operation operation, enum amo_form form,      \
                           void *fetch, void *dest, uint64_t cond_bits, uint64_t value_bits,       \
                           int pe) {                                                               \
        T *d = dest, *f = fetch, cond, value;                                                      \
        memcpy(&cond, &cond_bits, sizeof cond);                                                    \
        memcpy(&value, &value_bits, sizeof value);
#define STANDARD(N, T, _)                                                                          \
    HEAD(N, T, standard)                                                                           \
        if (operation == ADD)                                                                      \
            BY_FORM(N, add, value, pe);                                                            \
        else if (operation == INC)                                                                 \
            BY_FORM(N, inc, pe);                                                                   \
        else if (form == NBI)                                                                      \
            EITHER(N##_atomic_compare_swap_nbi, f, d, cond, value, pe);                            \
        else                                                                                       \
            *f = EITHER(N##_atomic_compare_swap, d, cond, value, pe);                              \
    }
#define BITWISE(N, T, _)                                                                           \
    HEAD(N, T, bitwise)                                                                            \
        (void)cond;                                                                                \
        if (operation == AND)                                                                      \
            BY_FORM(N, and, value, pe);                                                            \
        else if (operation == OR)                                                                  \
            BY_FORM(N, or, value, pe);                                                             \
        else                                                                                       \
            BY_FORM(N, xor, value, pe);                                                            \
    }
#define EXTENDED(N, T, _)                                                                          \
    HEAD(N, T, extended)                                                                           \
        (void)cond;                                                                                \
        if (operation == SET)                                                                      \
            EITHER(N##_atomic_set, d, value, pe);                                                  \
        else if (operation == SWAP && form == NBI)                                                 \
            EITHER(N##_atomic_swap_nbi, f, d, value, pe);                                          \
        else if (operation == SWAP)                                                                \
            *f = EITHER(N##_atomic_swap, d, value, pe);                                            \
        else if (form == NBI)                                                                      \
            EITHER(N##_atomic_fetch_nbi, f, d, pe);                                                \
        else                                                                                       \
            *f = EITHER(N##_atomic_fetch, d, pe);                                                  \
    }
SHMEM_AMO_TYPES(STANDARD, _)
SHMEM_AMO_BITWISE_TYPES(BITWISE, _)
SHMEM_AMO_EXTENDED_TYPES(EXTENDED, _)

#define WORD_ROW(N, T, _)    {#N, sizeof(T), standard_##N, NULL, extended_##N},
#define BITWISE_ROW(N, T, _) {#N, sizeof(T), standard_##N, bitwise_##N, extended_##N},
#define REAL_ROW(N, T, _)    {#N, sizeof(T), NULL, NULL, extended_##N},
const struct amo_routines amo_routines[] = {
    SHMEM_AMO_BITWISE_TYPES(BITWISE_ROW, _) SHMEM_AMO_TYPES(WORD_ROW, _) SHMEM_REALS(REAL_ROW, _)
};
/* clang-format on */
const int AMO_ROWS = sizeof amo_routines / sizeof *amo_routines;
const int AMO_UINT64 = 6;
#define ONE_ROW(N, T, _) +1
_Static_assert(AMO_BITWISE_ROWS == 0 SHMEM_AMO_BITWISE_TYPES(ONE_ROW, _), "bitwise rows");
