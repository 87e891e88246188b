/* SPDX-License-Identifier: BSD-3-Clause */
/* NVSHMEM's calls that wait for this PE's words, or test them. A word that satisfies the comparison
 * was loaded with acquire order, so everything stored before it was set is visible. If the job is
 * over, waits return although their condition does not hold. */
#ifndef WEFT_NVSHMEM_WAIT_CUH
#define WEFT_NVSHMEM_WAIT_CUH

#include "weft/nvshmem/device/state.cuh"

/* No index. It is SIZE_MAX, which nvrtc does not have. */
#define WEFT_NVSHMEM_NONE ((size_t)-1)

/* The condition of a call: words of one type, except those whose status is not 0, each compared
 * with `value`, or with its own entry in `values`. bytes and is_signed are compile-time constants.
 */
struct weft_nvshmem_words {
    const char *function; /* the call's name */
    const char *first;
    size_t bytes;
    int is_signed;
    size_t nelems;
    const int *status;
    int cmp;
    const char *values;
    uint64_t value;
};

/* Loads a word; a word of 2 bytes is part of one of 4. */
WEFT_DEVICE uint64_t weft_nvshmem_look(const char *word, size_t bytes) {
    if (bytes == 8)
        return weft_ld_acquire_sys_u64((const uint64_t *)word);
    uintptr_t within = (uintptr_t)word % 4;
    return weft_ld_acquire_sys_u32((const uint32_t *)(word - within)) >> (8 * within);
}

/* Extends the word to 64 bits, so that comparisons give the same result as for its type. */
WEFT_DEVICE uint64_t weft_nvshmem_widen(uint64_t bits, size_t bytes, int is_signed) {
    unsigned unused = (unsigned)(64 - 8 * bytes);
    if (is_signed)
        return (uint64_t)((int64_t)(bits << unused) >> unused);
    return bits << unused >> unused;
}

WEFT_DEVICE int weft_nvshmem_counts(const struct weft_nvshmem_words *w, size_t i) {
    return !w->status || w->status[i] == 0;
}

/* Return word i, and the value to compare it with. */
WEFT_DEVICE uint64_t weft_nvshmem_found(const struct weft_nvshmem_words *w, size_t i) {
    uint64_t found = weft_nvshmem_look(w->first + i * w->bytes, w->bytes);
    return weft_nvshmem_widen(found, w->bytes, w->is_signed);
}
WEFT_DEVICE uint64_t weft_nvshmem_value(const struct weft_nvshmem_words *w, size_t i) {
    uint64_t value = w->values ? weft_nvshmem_bits(w->values + i * w->bytes, w->bytes) : w->value;
    return weft_nvshmem_widen(value, w->bytes, w->is_signed);
}

WEFT_DEVICE int weft_nvshmem_holds(const struct weft_nvshmem_words *w, size_t i) {
    uint64_t found = weft_nvshmem_found(w, i), value = weft_nvshmem_value(w, i);
    int cmp = weft_nvshmem_cmp(w->cmp);
    return w->is_signed ? weft_compares_i64(cmp, (int64_t)found, (int64_t)value)
                        : weft_compares_u64(cmp, found, value);
}

/* --- Tests ------------------------------------------------------------------------------------ */

/* Returns 1 if all words satisfy the comparison. */
WEFT_DEVICE int weft_nvshmem_test_all(const struct weft_nvshmem_words *w) {
    for (size_t i = 0; i < w->nelems; i++)
        if (weft_nvshmem_counts(w, i) && !weft_nvshmem_holds(w, i))
            return 0;
    return 1;
}

/* Returns the index of a word that satisfies the comparison, or WEFT_NVSHMEM_NONE; sets *counted if
 * any word counts. */
WEFT_DEVICE size_t weft_nvshmem_test_any(const struct weft_nvshmem_words *w, int *counted) {
    for (size_t i = 0; i < w->nelems; i++)
        if (weft_nvshmem_counts(w, i)) {
            *counted = 1;
            if (weft_nvshmem_holds(w, i))
                return i;
        }
    return WEFT_NVSHMEM_NONE;
}

/* Returns the number of words that satisfy the comparison, and stores their indices. */
WEFT_DEVICE size_t weft_nvshmem_test_some(const struct weft_nvshmem_words *w, size_t *indices,
                                          int *counted) {
    size_t some = 0;
    for (size_t i = 0; i < w->nelems; i++)
        if (weft_nvshmem_counts(w, i)) {
            *counted = 1;
            if (weft_nvshmem_holds(w, i))
                indices[some++] = i;
        }
    return some;
}

/* --- Waits ------------------------------------------------------------------------------------ */

/* Split a number of the words' type into sign and magnitude, for printf's %s%llu. */
WEFT_DEVICE const char *weft_nvshmem_sign(const struct weft_nvshmem_words *w, uint64_t number) {
    return w->is_signed && (int64_t)number < 0 ? "-" : "";
}
WEFT_DEVICE unsigned long long weft_nvshmem_amount(const struct weft_nvshmem_words *w,
                                                   uint64_t number) {
    return w->is_signed && (int64_t)number < 0 ? 0 - number : number;
}

/* Does one turn of an unfinished wait for word i, and perhaps others; 0 if the kernel must give up.
 * `what` is the beginning of the report's format, with the two arguments after `it`. */
#define WEFT_NVSHMEM_TURN(w, i, what, it, ...)                               \
    (weft_spin(&spin, weft_abort_of(WEFT_NVSHMEM_WORLD)) &&                  \
     WEFT_CHECK_TURN(check, WEFT_NVSHMEM_WORLD, (w)->function,               \
                     what " to be %s %s%llu: " it " is %s%llu", __VA_ARGS__, \
                     weft_check_comparison(weft_nvshmem_cmp((w)->cmp)),      \
                     weft_nvshmem_sign(w, weft_nvshmem_value(w, i)),         \
                     weft_nvshmem_amount(w, weft_nvshmem_value(w, i)),       \
                     weft_nvshmem_sign(w, weft_nvshmem_found(w, i)),         \
                     weft_nvshmem_amount(w, weft_nvshmem_found(w, i))))
#define WEFT_NVSHMEM_TURN_OF_ANY(w)                                      \
    WEFT_NVSHMEM_TURN(w, 0, "one of %llu words from %p on", "the first", \
                      (unsigned long long)(w)->nelems, (const void *)(w)->first)

WEFT_DEVICE void weft_nvshmem_wait_all(const struct weft_nvshmem_words *w) {
    WEFT_CHECK_WAIT(check);
    struct weft_spin spin = {0, 0, 0, 0};
    for (size_t i = 0; i < w->nelems; i++)
        while (weft_nvshmem_counts(w, i) && !weft_nvshmem_holds(w, i))
            if (!WEFT_NVSHMEM_TURN(w, i, "the word at %p", "it",
                                   (const void *)(w->first + i * w->bytes)))
                return;
}

/* Returns WEFT_NVSHMEM_NONE if no word counts, or if the job is over. */
WEFT_DEVICE size_t weft_nvshmem_wait_any(const struct weft_nvshmem_words *w) {
    WEFT_CHECK_WAIT(check);
    struct weft_spin spin = {0, 0, 0, 0};
    int counted = 0;
    size_t any = weft_nvshmem_test_any(w, &counted);
    while (any == WEFT_NVSHMEM_NONE && counted && WEFT_NVSHMEM_TURN_OF_ANY(w))
        any = weft_nvshmem_test_any(w, &counted);
    return any;
}

WEFT_DEVICE size_t weft_nvshmem_wait_some(const struct weft_nvshmem_words *w, size_t *indices) {
    WEFT_CHECK_WAIT(check);
    struct weft_spin spin = {0, 0, 0, 0};
    int counted = 0;
    size_t some = weft_nvshmem_test_some(w, indices, &counted);
    while (some == 0 && counted && WEFT_NVSHMEM_TURN_OF_ANY(w))
        some = weft_nvshmem_test_some(w, indices, &counted);
    return some;
}
#undef WEFT_NVSHMEM_TURN_OF_ANY
#undef WEFT_NVSHMEM_TURN

/* --- Names ------------------------------------------------------------------------------------ */

#define WEFT_NVSHMEM_ONE(T)                                                  \
    struct weft_nvshmem_words words = {                                      \
        __func__, (const char *)ivar, sizeof(T), (T)-1 < (T)1, 1, NULL, cmp, \
        NULL,     (uint64_t)cmp_value}
#define WEFT_NVSHMEM_MANY(T)                                                         \
    struct weft_nvshmem_words words = {                                              \
        __func__, (const char *)ivars, sizeof(T), (T)-1 < (T)1, nelems, status, cmp, \
        NULL,     (uint64_t)cmp_value}
#define WEFT_NVSHMEM_VECTOR(T)                                                       \
    struct weft_nvshmem_words words = {                                              \
        __func__, (const char *)ivars,      sizeof(T), (T)-1 < (T)1, nelems, status, \
        cmp,      (const char *)cmp_values, 0}

#define WEFT_NVSHMEM_WAITS(N, T, _)                                                                \
    WEFT_DEVICE void nvshmem_##N##_wait_until(T *ivar, int cmp, T cmp_value) {                     \
        WEFT_NVSHMEM_ONE(T);                                                                       \
        weft_nvshmem_wait_all(&words);                                                             \
    }                                                                                              \
    WEFT_DEVICE int nvshmem_##N##_test(T *ivar, int cmp, T cmp_value) {                            \
        WEFT_NVSHMEM_ONE(T);                                                                       \
        return weft_nvshmem_test_all(&words);                                                      \
    }                                                                                              \
    WEFT_DEVICE void nvshmem_##N##_wait_until_all(T *ivars, size_t nelems, const int *status,      \
                                                  int cmp, T cmp_value) {                          \
        WEFT_NVSHMEM_MANY(T);                                                                      \
        weft_nvshmem_wait_all(&words);                                                             \
    }                                                                                              \
    WEFT_DEVICE size_t nvshmem_##N##_wait_until_any(T *ivars, size_t nelems, const int *status,    \
                                                    int cmp, T cmp_value) {                        \
        WEFT_NVSHMEM_MANY(T);                                                                      \
        return weft_nvshmem_wait_any(&words);                                                      \
    }                                                                                              \
    WEFT_DEVICE size_t nvshmem_##N##_wait_until_some(T *ivars, size_t nelems, size_t *indices,     \
                                                     const int *status, int cmp, T cmp_value) {    \
        WEFT_NVSHMEM_MANY(T);                                                                      \
        return weft_nvshmem_wait_some(&words, indices);                                            \
    }                                                                                              \
    WEFT_DEVICE int nvshmem_##N##_test_all(T *ivars, size_t nelems, const int *status, int cmp,    \
                                           T cmp_value) {                                          \
        WEFT_NVSHMEM_MANY(T);                                                                      \
        return weft_nvshmem_test_all(&words);                                                      \
    }                                                                                              \
    WEFT_DEVICE size_t nvshmem_##N##_test_any(T *ivars, size_t nelems, const int *status, int cmp, \
                                              T cmp_value) {                                       \
        WEFT_NVSHMEM_MANY(T);                                                                      \
        int counted = 0;                                                                           \
        return weft_nvshmem_test_any(&words, &counted);                                            \
    }                                                                                              \
    WEFT_DEVICE size_t nvshmem_##N##_test_some(T *ivars, size_t nelems, size_t *indices,           \
                                               const int *status, int cmp, T cmp_value) {          \
        WEFT_NVSHMEM_MANY(T);                                                                      \
        int counted = 0;                                                                           \
        return weft_nvshmem_test_some(&words, indices, &counted);                                  \
    }

#define WEFT_NVSHMEM_VECTORS(N, T, _)                                                              \
    WEFT_DEVICE void nvshmem_##N##_wait_until_all_vector(                                          \
        T *ivars, size_t nelems, const int *status, int cmp, T *cmp_values) {                      \
        WEFT_NVSHMEM_VECTOR(T);                                                                    \
        weft_nvshmem_wait_all(&words);                                                             \
    }                                                                                              \
    WEFT_DEVICE size_t nvshmem_##N##_wait_until_any_vector(                                        \
        T *ivars, size_t nelems, const int *status, int cmp, T *cmp_values) {                      \
        WEFT_NVSHMEM_VECTOR(T);                                                                    \
        return weft_nvshmem_wait_any(&words);                                                      \
    }                                                                                              \
    WEFT_DEVICE size_t nvshmem_##N##_wait_until_some_vector(                                       \
        T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T *cmp_values) {     \
        WEFT_NVSHMEM_VECTOR(T);                                                                    \
        return weft_nvshmem_wait_some(&words, indices);                                            \
    }                                                                                              \
    WEFT_DEVICE int nvshmem_##N##_test_all_vector(T *ivars, size_t nelems, const int *status,      \
                                                  int cmp, T *cmp_values) {                        \
        WEFT_NVSHMEM_VECTOR(T);                                                                    \
        return weft_nvshmem_test_all(&words);                                                      \
    }                                                                                              \
    WEFT_DEVICE size_t nvshmem_##N##_test_any_vector(T *ivars, size_t nelems, const int *status,   \
                                                     int cmp, T *cmp_values) {                     \
        WEFT_NVSHMEM_VECTOR(T);                                                                    \
        int counted = 0;                                                                           \
        return weft_nvshmem_test_any(&words, &counted);                                            \
    }                                                                                              \
    WEFT_DEVICE size_t nvshmem_##N##_test_some_vector(T *ivars, size_t nelems, size_t *indices,    \
                                                      const int *status, int cmp, T *cmp_values) { \
        WEFT_NVSHMEM_VECTOR(T);                                                                    \
        int counted = 0;                                                                           \
        return weft_nvshmem_test_some(&words, indices, &counted);                                  \
    }

/* The standard's types of words, and NVSHMEM's types of 2 bytes. */
SHMEM_WAIT_UNTIL_TYPES(WEFT_NVSHMEM_WAITS, _)
SHMEM_WAIT_UNTIL_TYPES(WEFT_NVSHMEM_VECTORS, _)
SHMEM_SHORTS(WEFT_NVSHMEM_WAITS, _)
SHMEM_SHORTS(WEFT_NVSHMEM_VECTORS, _)
#undef WEFT_NVSHMEM_WAITS
#undef WEFT_NVSHMEM_VECTORS
#undef WEFT_NVSHMEM_ONE
#undef WEFT_NVSHMEM_MANY
#undef WEFT_NVSHMEM_VECTOR

#endif
