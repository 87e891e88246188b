/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point synchronisation: waiting for, and testing, one word or a set of words.
 *
 * What returns satisfied has acquired: everything that the writer ordered before the word is
 * visible. An empty set is satisfied at once, and none of its pointers is looked at. */
#include "core/wait.h"
#include <sched.h>
#include "core/ivar.h"
#include "core/window.h"
#include "api/misuse.h"

static inline void check(const char *call, const char *argument, const void *ivars, size_t bytes,
                         int cmp) {
    weft_check_cmp(call, cmp);
    if (__builtin_expect(!weft_near(ivars, bytes, weft_job.pe), 0))
        weft_misuse_access(call, argument, ivars, bytes, weft_job.pe);
}

static inline void wait_until(const char *call, struct weft_ivar_type type, const void *ivar,
                              int cmp, const void *cmp_value) {
    check(call, "ivar", ivar, type.bytes, cmp);
    uint64_t bound = weft_ivar_key(type, cmp_value);
    WEFT_WAIT_UNTIL(weft_ivar_compare(weft_ivar_key(type, ivar), cmp, bound), call);
}

/* The end of a test. Programs test in loops: where PEs share processors, the one that is waited for
 * may need this one (a flag 300 times round 4 PEs on 2 cores: 4.4 s without the yield, 0.1 s with
 * it). */
static inline void end_test(bool met) {
    if (!met && weft_job.oversubscribed)
        sched_yield();
    atomic_thread_fence(memory_order_acquire);
}

static inline int test(const char *call, struct weft_ivar_type type, const void *ivar, int cmp,
                       const void *cmp_value) {
    check(call, "ivar", ivar, type.bytes, cmp);
    bool met = weft_ivar_compare(weft_ivar_key(type, ivar), cmp, weft_ivar_key(type, cmp_value));
    end_test(met);
    return met;
}

/* Whether there is anything to wait for. */
static bool check_set(const char *call, const struct weft_ivars *set) {
    weft_check_running(call);
    if (weft_ivars_empty(set))
        return false;
    check(call, "ivars", set->ivars, weft_check_bytes(set->nelems, set->type.bytes), set->cmp);
    weft_check_local(call, "cmp_values", set->cmp_values, set->nelems);
    return true;
}

/* One after the other: what has been met once counts as met, as the specification has it. */
static void wait_until_all(const char *call, const struct weft_ivars *set) {
    if (!check_set(call, set))
        return;
    for (size_t i = 0; i < set->nelems; i++)
        if (!set->status || set->status[i] == 0)
            WEFT_WAIT_UNTIL(weft_ivars_met(set, i), call);
}

static size_t wait_until_any(const char *call, const struct weft_ivars *set) {
    size_t found = SIZE_MAX;
    if (check_set(call, set))
        WEFT_WAIT_UNTIL((found = weft_ivars_any(set)) != SIZE_MAX, call);
    return found;
}

static size_t wait_until_some(const char *call, const struct weft_ivars *set, size_t *indices) {
    size_t found = 0;
    if (!check_set(call, set))
        return 0;
    weft_check_local(call, "indices", indices, set->nelems);
    WEFT_WAIT_UNTIL((found = weft_ivars_some(set, indices)) != 0, call);
    return found;
}

static int test_all(const char *call, const struct weft_ivars *set) {
    bool met = !check_set(call, set) || weft_ivars_all(set);
    end_test(met);
    return met;
}

static size_t test_any(const char *call, const struct weft_ivars *set) {
    if (!check_set(call, set))
        return SIZE_MAX;
    size_t found = weft_ivars_any(set);
    end_test(found != SIZE_MAX);
    return found;
}

static size_t test_some(const char *call, const struct weft_ivars *set, size_t *indices) {
    if (!check_set(call, set))
        return 0;
    weft_check_local(call, "indices", indices, set->nelems);
    size_t found = weft_ivars_some(set, indices);
    end_test(found != 0);
    return found;
}

/* clang-format off */
#define TYPE(T) ((struct weft_ivar_type){sizeof(T), (T)-1 < (T)1})
#define SCALAR(N, T, _)                                                                            \
    void shmem_##N##_wait_until(T *ivar, int cmp, T cmp_value) {                                   \
        wait_until(__func__, TYPE(T), ivar, cmp, &cmp_value);                                      \
    }                                                                                              \
    int shmem_##N##_test(T *ivar, int cmp, T cmp_value) {                                          \
        return test(__func__, TYPE(T), ivar, cmp, &cmp_value);                                     \
    }

/* A routine over a set, and its twin with a value for each word. RETURN is `return` or nothing. */
#define SET(T, VALUES, VECTOR)                                                                     \
    &(struct weft_ivars) { TYPE(T), ivars, nelems, status, VALUES, VECTOR, cmp }
#define ON_SET(N, T, RESULT, RETURN, VERB)                                                         \
    RESULT shmem_##N##_##VERB(T *ivars, size_t nelems, const int *status, int cmp, T cmp_value) {  \
        RETURN VERB(__func__, SET(T, &cmp_value, false));                                          \
    }                                                                                              \
    RESULT shmem_##N##_##VERB##_vector(T *ivars, size_t nelems, const int *status, int cmp,        \
                                       const T *cmp_values) {                                      \
        RETURN VERB(__func__, SET(T, cmp_values, true));                                           \
    }
#define ON_SET_INDICES(N, T, VERB)                                                                 \
    size_t shmem_##N##_##VERB(T *ivars, size_t nelems, size_t *indices, const int *status,         \
                              int cmp, T cmp_value) {                                              \
        return VERB(__func__, SET(T, &cmp_value, false), indices);                                 \
    }                                                                                              \
    size_t shmem_##N##_##VERB##_vector(T *ivars, size_t nelems, size_t *indices,                   \
                                       const int *status, int cmp, const T *cmp_values) {          \
        return VERB(__func__, SET(T, cmp_values, true), indices);                                  \
    }
#define SETS(N, T, _)                                                                              \
    ON_SET(N, T, void, , wait_until_all)                                                           \
    ON_SET(N, T, size_t, return, wait_until_any)                                                   \
    ON_SET_INDICES(N, T, wait_until_some)                                                          \
    ON_SET(N, T, int, return, test_all)                                                            \
    ON_SET(N, T, size_t, return, test_any)                                                         \
    ON_SET_INDICES(N, T, test_some)

SHMEM_WAIT_SCALAR_TYPES(SCALAR, _)
SHMEM_WAIT_TYPES(SETS, _)
