/* SPDX-License-Identifier: BSD-3-Clause */
/* Macros that define a public routine once, under two names.
 *
 * API(int, my_pe, (void)) { ... } defines pshmem_my_pe as a strong name and shmem_my_pe as a weak
 * name of the same code. So a tool may define shmem_my_pe in the program, in a preloaded library or
 * in a library linked before the static one, and call pshmem_my_pe. Weft's own code calls neither
 * name. The parentheses around names keep the generic macros of shmem.h from expanding them. */
#ifndef WEFT_API_DEFINE_H
#define WEFT_API_DEFINE_H

#include <pshmem.h>
#include "api/check.h"

/* clang-format off */
#define API(RESULT, NAME, PARAMETERS) API_NAMED(RESULT, shmem_##NAME, PARAMETERS)

/* For names that do not begin with shmem_. */
#define API_NAMED(RESULT, NAME, PARAMETERS)                                                        \
    RESULT (p##NAME) PARAMETERS __attribute__((alias(#NAME)));                                     \
    __attribute__((weak)) RESULT (NAME) PARAMETERS

/* Defines shmem_NAME and shmem_ctx_NAME with one body. In both, `pe` is a world number when the
 * body runs. PARAMETERS must contain `int pe`. */
#define PAIR_UNWRAP(...) __VA_ARGS__
#define PAIR(RESULT, NAME, PARAMETERS, ...)                                                        \
    API_NAMED(RESULT, shmem_##NAME, PARAMETERS) { __VA_ARGS__ }                                    \
    API_NAMED(RESULT, shmem_ctx_##NAME, (shmem_ctx_t ctx, PAIR_UNWRAP PARAMETERS)) {               \
        pe = weft_check_pe(__func__, ctx, pe);                                                     \
        __VA_ARGS__                                                                                \
    }
/* clang-format on */

#endif
