/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics under the names with types. */
#define EITHER(N, NAME, ...)                                    \
    (ctx == SHMEM_CTX_INVALID ? shmem_##N##_##NAME(__VA_ARGS__) \
                              : shmem_ctx_##N##_##NAME(ctx, __VA_ARGS__))
#include "amo_bodies.h"

/* clang-format off */
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
_Static_assert(AMO_BITWISE_ROWS == 0 SHMEM_AMO_BITWISE_TYPES(ONE_ROW, _), "bitwise rows");
