/* SPDX-License-Identifier: BSD-3-Clause */
/* The atomics of all types with one signature (`amo`), whose head is HEAD. The including file
 * defines EITHER(N, NAME, ...): a call of NAME for type N, with or without the context `ctx`. */
#include <string.h>
#include "routines.h"

/* clang-format off */
#define HEAD(N, T, KIND)                                                                           \
    static void KIND##_##N(shmem_ctx_t ctx, enum amo_operation operation, enum amo_form form,      \
                           void *fetch, void *dest, uint64_t cond_bits, uint64_t value_bits,       \
                           int pe) {                                                               \
        T *d = dest, *f = fetch, cond, value;                                                      \
        memcpy(&cond, &cond_bits, sizeof cond);                                                    \
        memcpy(&value, &value_bits, sizeof value);
#define BY_FORM(N, OP, ...)                                                                        \
    do {                                                                                           \
        if (form == SILENT)                                                                        \
            EITHER(N, atomic_##OP, d, __VA_ARGS__);                                                \
        else if (form == FETCHING)                                                                 \
            *f = EITHER(N, atomic_fetch_##OP, d, __VA_ARGS__);                                     \
        else                                                                                       \
            EITHER(N, atomic_fetch_##OP##_nbi, f, d, __VA_ARGS__);                                 \
    } while (0)
#define STANDARD(N, T, _)                                                                          \
    HEAD(N, T, standard)                                                                           \
        if (operation == ADD)                                                                      \
            BY_FORM(N, add, value, pe);                                                            \
        else if (operation == INC)                                                                 \
            BY_FORM(N, inc, pe);                                                                   \
        else if (form == NBI)                                                                      \
            EITHER(N, atomic_compare_swap_nbi, f, d, cond, value, pe);                             \
        else                                                                                       \
            *f = EITHER(N, atomic_compare_swap, d, cond, value, pe);                               \
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
            EITHER(N, atomic_set, d, value, pe);                                                   \
        else if (operation == SWAP && form == NBI)                                                 \
            EITHER(N, atomic_swap_nbi, f, d, value, pe);                                           \
        else if (operation == SWAP)                                                                \
            *f = EITHER(N, atomic_swap, d, value, pe);                                             \
        else if (form == NBI)                                                                      \
            EITHER(N, atomic_fetch_nbi, f, d, pe);                                                 \
        else                                                                                       \
            *f = EITHER(N, atomic_fetch, d, pe);                                                   \
    }
/* clang-format on */
