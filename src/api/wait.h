/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for and testing words: the code shared by the routines of all types. */
#ifndef WEFT_API_WAIT_H
#define WEFT_API_WAIT_H

#include "core/awaited.h"
#include "core/view.h"
#include "api/check.h"
#include "api/checked.h"

#define WEFT_IVAR_TYPE(T) ((struct weft_ivar_type){sizeof(T), (T)-1 < (T)1})

/* Ends the job unless `nelems` words of the type are symmetric. */
static inline void weft_check_ivars(const char *argument, const void *ivars,
                                    struct weft_ivar_type type, size_t nelems, int cmp) {
    size_t bytes = weft_check_bytes(nelems, type.bytes);
    weft_check_cmp(weft_current_call, cmp);
    if (weft_checked())
        weft_checked_access(&(struct weft_access){argument, NULL, ivars, NULL, bytes, 0, type.bytes,
                                                  weft_job.pe, false});
    if (!weft_dispatch_symmetric(ivars, bytes, weft_job.pe))
        weft_misuse_access(weft_current_call, argument, ivars, bytes, weft_job.pe);
}

static inline void weft_api_wait_until(const char *call, struct weft_ivar_type type,
                                       const void *ivar, int cmp, const void *cmp_value) {
    WEFT_ENTER(call);
    weft_check_ivars("ivar", ivar, type, 1, cmp);
    uint64_t bound = weft_ivar_key(type, cmp_value);
    WEFT_WAIT_FOR(WEFT_AWAITED_IVARS(
                      (&(const struct weft_ivars){type, ivar, 1, NULL, cmp_value, false, cmp}), 0),
                  weft_ivar_compare(weft_view_key(type, ivar), cmp, bound));
}

/* Tests a word in the cases outside the fast path: it may be a GPU's, checked mode is on, PEs share
 * processors, or the test failed after the end of the job. */
WEFT_COLD int weft_api_test_slow(const char *call, struct weft_ivar_type type, const void *ivar,
                                 int cmp, const void *cmp_value);

/* A failed test checks whether the job is over, because programs test in loops. */
static inline int weft_api_test(const char *call, struct weft_ivar_type type, const void *ivar,
                                int cmp, const void *cmp_value) {
    if (weft_fetch_is_slow())
        return weft_api_test_slow(call, type, ivar, cmp, cmp_value);
    weft_check_cmp(call, cmp);
    if (__builtin_expect(!weft_near(ivar, type.bytes, weft_job.pe), 0))
        weft_misuse_access(call, "ivar", ivar, type.bytes, weft_job.pe);
    bool met = weft_ivar_compare(weft_ivar_key(type, ivar), cmp, weft_ivar_key(type, cmp_value));
    if (!met && weft_job_aborted())
        return weft_api_test_slow(call, type, ivar, cmp, cmp_value);
    return met;
}

void weft_api_wait_until_all(const char *call, const struct weft_ivars *set);
size_t weft_api_wait_until_any(const char *call, const struct weft_ivars *set);
size_t weft_api_wait_until_some(const char *call, const struct weft_ivars *set, size_t *indices);
int weft_api_test_all(const char *call, const struct weft_ivars *set);
size_t weft_api_test_any(const char *call, const struct weft_ivars *set);
size_t weft_api_test_some(const char *call, const struct weft_ivars *set, size_t *indices);

/* clang-format off */
/* Defines a routine over a set, and its variant with a value for each word. RETURN is `return` or
 * nothing. */
#define WEFT_SET(T, VALUES, VECTOR)                                                                \
    &(struct weft_ivars) { WEFT_IVAR_TYPE(T), ivars, nelems, status, VALUES, VECTOR, cmp }
#define WEFT_ON_SET(N, T, RESULT, RETURN, VERB)                                                    \
    API(RESULT, N##_##VERB,                                                                        \
        (T *ivars, size_t nelems, const int *status, int cmp, T cmp_value)) {                      \
        RETURN weft_api_##VERB(__func__, WEFT_SET(T, &cmp_value, false));                          \
    }                                                                                              \
    API(RESULT, N##_##VERB##_vector,                                                               \
        (T *ivars, size_t nelems, const int *status, int cmp, const T *cmp_values)) {              \
        RETURN weft_api_##VERB(__func__, WEFT_SET(T, cmp_values, true));                           \
    }
#define WEFT_ON_SET_INDICES(N, T, VERB)                                                            \
    API(size_t, N##_##VERB,                                                                        \
        (T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T cmp_value)) {     \
        return weft_api_##VERB(__func__, WEFT_SET(T, &cmp_value, false), indices);                 \
    }                                                                                              \
    API(size_t, N##_##VERB##_vector,                                                               \
        (T *ivars, size_t nelems, size_t *indices, const int *status, int cmp,                     \
         const T *cmp_values)) {                                                                   \
        return weft_api_##VERB(__func__, WEFT_SET(T, cmp_values, true), indices);                  \
    }
/* Defines all routines that wait for words of one type, for a file that includes api/define.h. */
#define WEFT_WAITS(N, T, _)                                                                        \
    API(void, N##_wait_until, (T *ivar, int cmp, T cmp_value)) {                                   \
        weft_api_wait_until(__func__, WEFT_IVAR_TYPE(T), ivar, cmp, &cmp_value);                   \
    }                                                                                              \
    API(int, N##_test, (T *ivar, int cmp, T cmp_value)) {                                          \
        return weft_api_test(__func__, WEFT_IVAR_TYPE(T), ivar, cmp, &cmp_value);                  \
    }                                                                                              \
    WEFT_ON_SET(N, T, void, , wait_until_all)                                                      \
    WEFT_ON_SET(N, T, size_t, return, wait_until_any)                                              \
    WEFT_ON_SET_INDICES(N, T, wait_until_some)                                                     \
    WEFT_ON_SET(N, T, int, return, test_all)                                                       \
    WEFT_ON_SET(N, T, size_t, return, test_any)                                                    \
    WEFT_ON_SET_INDICES(N, T, test_some)
/* clang-format on */

#endif
