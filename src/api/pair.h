/* SPDX-License-Identifier: BSD-3-Clause */
/* PAIR defines shmem_NAME and shmem_ctx_NAME with one body. In both, `pe` is a world number by the
 * time the body runs. PARAMETERS are in parentheses and contain `int pe`. */
#ifndef WEFT_API_PAIR_H
#define WEFT_API_PAIR_H

#include "api/misuse.h"

/* clang-format off */
#define PAIR_UNWRAP(...) __VA_ARGS__
#define PAIR(RESULT, NAME, PARAMETERS, ...)                                                        \
    RESULT shmem_##NAME(PAIR_UNWRAP PARAMETERS) { __VA_ARGS__ }                                    \
    RESULT shmem_ctx_##NAME(shmem_ctx_t ctx, PAIR_UNWRAP PARAMETERS) {                             \
        pe = weft_check_pe(__func__, ctx, pe);                                                     \
        __VA_ARGS__                                                                                \
    }
/* clang-format on */

#endif
