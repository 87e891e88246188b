/* SPDX-License-Identifier: BSD-3-Clause */
#include "routines.h"

/* clang-format off */
#define SCALAR(N, T, _)                                                                            \
    static void wait_until_##N(void *ivar, int cmp, const void *value) {                           \
        shmem_##N##_wait_until(ivar, cmp, *(const T *)value);                                      \
    }                                                                                              \
    static int test_##N(void *ivar, int cmp, const void *value) {                                  \
        return shmem_##N##_test(ivar, cmp, *(const T *)value);                                     \
    }                                                                                              \
    static void p_##N(shmem_ctx_t ctx, void *dest, const void *source, int pe) {                   \
        if (ctx == SHMEM_CTX_INVALID)                                                              \
            shmem_##N##_p(dest, *(const T *)source, pe);                                           \
        else                                                                                       \
            shmem_ctx_##N##_p(ctx, dest, *(const T *)source, pe);                                  \
    }
#define ON_SET(N, T, RESULT, VERB)                                                                 \
    static RESULT VERB##_##N(const struct wait_set *set) {                                         \
        return set->vector ? shmem_##N##_##VERB##_vector(set->ivars, set->nelems, set->status,     \
                                                         set->cmp, set->values)                    \
                           : shmem_##N##_##VERB(set->ivars, set->nelems, set->status, set->cmp,    \
                                                *(const T *)set->values);                          \
    }
#define ON_SET_INDICES(N, T, VERB)                                                                 \
    static size_t VERB##_##N(const struct wait_set *set) {                                         \
        return set->vector                                                                         \
                   ? shmem_##N##_##VERB##_vector(set->ivars, set->nelems, set->indices,            \
                                                 set->status, set->cmp, set->values)               \
                   : shmem_##N##_##VERB(set->ivars, set->nelems, set->indices, set->status,        \
                                        set->cmp, *(const T *)set->values);                        \
    }
#define ON_SET_ALL(N, T)                                                                           \
    static void wait_until_all_##N(const struct wait_set *set) {                                   \
        if (set->vector)                                                                           \
            shmem_##N##_wait_until_all_vector(set->ivars, set->nelems, set->status, set->cmp,      \
                                              set->values);                                        \
        else                                                                                       \
            shmem_##N##_wait_until_all(set->ivars, set->nelems, set->status, set->cmp,             \
                                       *(const T *)set->values);                                   \
    }
#define SETS(N, T, _)                                                                              \
    ON_SET_ALL(N, T)                                                                               \
    ON_SET(N, T, size_t, wait_until_any) ON_SET_INDICES(N, T, wait_until_some)                     \
    ON_SET(N, T, int, test_all) ON_SET(N, T, size_t, test_any) ON_SET_INDICES(N, T, test_some)
SHMEM_WAIT_TYPES(SCALAR, _)
SHMEM_SHORTS(SCALAR, _)
SHMEM_WAIT_TYPES(SETS, _)

#define SET_ROW(N, T, _)                                                                           \
    {#N, sizeof(T), (T)-1 < (T)1, wait_until_##N, test_##N, wait_until_all_##N,                    \
     wait_until_any_##N, wait_until_some_##N, test_all_##N, test_any_##N, test_some_##N, p_##N},
#define SHORT_ROW(N, T, _)                                                                         \
    {#N, sizeof(T), (T)-1 < (T)1, wait_until_##N, test_##N, NULL, NULL, NULL, NULL, NULL, NULL,    \
     p_##N},
const struct wait_routines wait_routines[] = {
    SHMEM_WAIT_TYPES(SET_ROW, _) SHMEM_SHORTS(SHORT_ROW, _)
};
/* clang-format on */
const int WAIT_ROWS = sizeof wait_routines / sizeof *wait_routines;
const int WAIT_SET_ROWS = sizeof wait_routines / sizeof *wait_routines - 2;
const int WAIT_UINT64 = 9;
