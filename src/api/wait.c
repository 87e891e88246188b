/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point synchronisation: waiting for, and testing, one word or a set of words.
 *
 * What returns satisfied has acquired: everything that the writer ordered before the word is
 * visible. An empty set is satisfied at once, and none of its pointers is looked at. */
#include "api/wait.h"
#include "api/define.h"

/* Whether there is anything to wait for. */
static bool check_set(const char *call, const struct weft_ivars *set) {
    if (weft_ivars_empty(set))
        return false;
    weft_check_ivars(call, "ivars", set->ivars, set->type, set->nelems, set->cmp);
    weft_check_local(call, "cmp_values", set->cmp_values, set->nelems);
    return true;
}

/* One after the other: what has been met once counts as met, as the specification has it. */
static void wait_until_all(const char *call, const struct weft_ivars *set) {
    WEFT_ENTER(call);
    if (!check_set(call, set))
        return;
    for (size_t i = 0; i < set->nelems; i++)
        if (!set->status || set->status[i] == 0)
            WEFT_WAIT_UNTIL(weft_ivars_met(set, i), call);
}

static size_t wait_until_any(const char *call, const struct weft_ivars *set) {
    WEFT_ENTER(call);
    size_t found = SIZE_MAX;
    if (check_set(call, set))
        WEFT_WAIT_UNTIL((found = weft_ivars_any(set)) != SIZE_MAX, call);
    return found;
}

static size_t wait_until_some(const char *call, const struct weft_ivars *set, size_t *indices) {
    WEFT_ENTER(call);
    size_t found = 0;
    if (!check_set(call, set))
        return 0;
    weft_check_local(call, "indices", indices, set->nelems);
    WEFT_WAIT_UNTIL((found = weft_ivars_some(set, indices)) != 0, call);
    return found;
}

static int test_all(const char *call, const struct weft_ivars *set) {
    WEFT_ENTER(call);
    bool met = !check_set(call, set) || weft_ivars_all(set);
    weft_api_end_test(call, met);
    return met;
}

static size_t test_any(const char *call, const struct weft_ivars *set) {
    WEFT_ENTER(call);
    if (!check_set(call, set))
        return SIZE_MAX;
    size_t found = weft_ivars_any(set);
    weft_api_end_test(call, found != SIZE_MAX);
    return found;
}

static size_t test_some(const char *call, const struct weft_ivars *set, size_t *indices) {
    WEFT_ENTER(call);
    if (!check_set(call, set))
        return 0;
    weft_check_local(call, "indices", indices, set->nelems);
    size_t found = weft_ivars_some(set, indices);
    weft_api_end_test(call, found != 0);
    return found;
}

/* clang-format off */
/* A routine over a set, and its twin with a value for each word. RETURN is `return` or nothing. */
#define SET(T, VALUES, VECTOR)                                                                     \
    &(struct weft_ivars) { WEFT_IVAR_TYPE(T), ivars, nelems, status, VALUES, VECTOR, cmp }
#define ON_SET(N, T, RESULT, RETURN, VERB)                                                         \
    API(RESULT, N##_##VERB,                                                                        \
        (T *ivars, size_t nelems, const int *status, int cmp, T cmp_value)) {                      \
        RETURN VERB(__func__, SET(T, &cmp_value, false));                                          \
    }                                                                                              \
    API(RESULT, N##_##VERB##_vector,                                                               \
        (T *ivars, size_t nelems, const int *status, int cmp, const T *cmp_values)) {              \
        RETURN VERB(__func__, SET(T, cmp_values, true));                                           \
    }
#define ON_SET_INDICES(N, T, VERB)                                                                 \
    API(size_t, N##_##VERB,                                                                        \
        (T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T cmp_value)) {     \
        return VERB(__func__, SET(T, &cmp_value, false), indices);                                 \
    }                                                                                              \
    API(size_t, N##_##VERB##_vector,                                                               \
        (T *ivars, size_t nelems, size_t *indices, const int *status, int cmp,                     \
         const T *cmp_values)) {                                                                   \
        return VERB(__func__, SET(T, cmp_values, true), indices);                                  \
    }
#define WAITS(N, T, _)                                                                             \
    API(void, N##_wait_until, (T *ivar, int cmp, T cmp_value)) {                                   \
        weft_api_wait_until(__func__, WEFT_IVAR_TYPE(T), ivar, cmp, &cmp_value);                   \
    }                                                                                              \
    API(int, N##_test, (T *ivar, int cmp, T cmp_value)) {                                          \
        return weft_api_test(__func__, WEFT_IVAR_TYPE(T), ivar, cmp, &cmp_value);                  \
    }                                                                                              \
    ON_SET(N, T, void, , wait_until_all)                                                           \
    ON_SET(N, T, size_t, return, wait_until_any)                                                   \
    ON_SET_INDICES(N, T, wait_until_some)                                                          \
    ON_SET(N, T, int, return, test_all)                                                            \
    ON_SET(N, T, size_t, return, test_any)                                                         \
    ON_SET_INDICES(N, T, test_some)

SHMEM_WAIT_TYPES(WAITS, _)
