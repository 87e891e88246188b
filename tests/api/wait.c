/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting and testing: every type and comparison against C's own, every form of set with random
 * status against a plain loop, fairness of `any`, and waits that really wait for another PE. */
#include <shmem.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include "tap.h"
#include "api/model.h"

enum { MOST = 24 };

static const int comparisons[] = {SHMEM_CMP_EQ, SHMEM_CMP_NE, SHMEM_CMP_GT,
                                  SHMEM_CMP_GE, SHMEM_CMP_LT, SHMEM_CMP_LE};
static int me, npes;

/* The routines of a type over numbers; `values` holds one or nelems of them. */
struct set {
    size_t nelems;
    const int *status;
    int cmp;
    bool vector;
    const int64_t *values;
};
struct type {
    const char *name;
    bool (*compare)(int64_t a, int cmp, int64_t b);
    int (*test)(int64_t word, int cmp, int64_t value); /* and wait_until where it is true */
    void (*store)(const int64_t *numbers, size_t nelems, int pe);
    int (*test_all)(const struct set *set);
    size_t (*test_any)(const struct set *set);
    size_t (*test_some)(const struct set *set, size_t *indices);
    void (*wait_all)(const struct set *set);
    size_t (*wait_any)(const struct set *set);
    size_t (*wait_some)(const struct set *set, size_t *indices);
};

/* clang-format off */
#define SCALAR(N, T, _)                                                                            \
    static T word_##N;                                                                             \
    static bool compare_##N(int64_t x, int cmp, int64_t y) {                                       \
        T a = (T)x, b = (T)y;                                                                      \
        return cmp == SHMEM_CMP_EQ ? a == b : cmp == SHMEM_CMP_NE ? a != b                         \
             : cmp == SHMEM_CMP_GT ? a > b : cmp == SHMEM_CMP_GE ? a >= b                          \
             : cmp == SHMEM_CMP_LT ? a < b : a <= b;                                               \
    }                                                                                              \
    static int test_##N(int64_t word, int cmp, int64_t value) {                                    \
        word_##N = (T)word;                                                                        \
        int met = shmem_##N##_test(&word_##N, cmp, (T)value);                                      \
        if (met)                                                                                   \
            shmem_##N##_wait_until(&word_##N, cmp, (T)value);                                      \
        return met;                                                                                \
    }
#define VALUES(T)                                                                                  \
    T values[MOST];                                                                                \
    for (size_t i = 0; i < (set->vector ? set->nelems : 1); i++)                                   \
        values[i] = (T)set->values[i]
#define ON_SET(N, T, RESULT, RETURN, SHORT, VERB)                                                  \
    static RESULT SHORT##_##N(const struct set *set) {                                             \
        VALUES(T);                                                                                 \
        if (set->vector)                                                                           \
            RETURN shmem_##N##_##VERB##_vector(ivars_##N, set->nelems, set->status, set->cmp,      \
                                               values);                                            \
        else                                                                                       \
            RETURN shmem_##N##_##VERB(ivars_##N, set->nelems, set->status, set->cmp, values[0]);   \
    }
#define ON_SET_INDICES(N, T, SHORT, VERB)                                                          \
    static size_t SHORT##_##N(const struct set *set, size_t *indices) {                            \
        VALUES(T);                                                                                 \
        if (set->vector)                                                                           \
            return shmem_##N##_##VERB##_vector(ivars_##N, set->nelems, indices, set->status,       \
                                               set->cmp, values);                                  \
        return shmem_##N##_##VERB(ivars_##N, set->nelems, indices, set->status, set->cmp,          \
                                  values[0]);                                                      \
    }
#define SETS(N, T, _)                                                                              \
    static T ivars_##N[MOST];                                                                      \
    static void store_##N(const int64_t *numbers, size_t nelems, int pe) {                         \
        for (size_t i = 0; i < nelems; i++)                                                        \
            shmem_##N##_atomic_set(&ivars_##N[i], (T)numbers[i], pe);                              \
    }                                                                                              \
    ON_SET(N, T, int, return, all, test_all)                                                       \
    ON_SET(N, T, size_t, return, any, test_any)                                                    \
    ON_SET_INDICES(N, T, some, test_some)                                                          \
    ON_SET(N, T, void, , wait_all, wait_until_all)                                                 \
    ON_SET(N, T, size_t, return, wait_any, wait_until_any)                                         \
    ON_SET_INDICES(N, T, wait_some, wait_until_some)
SHMEM_WAIT_TYPES(SCALAR, _)
SHMEM_SHORTS(SCALAR, _)
SHMEM_WAIT_TYPES(SETS, _)
#define ROW(N, T, _)                                                                               \
    {#N, compare_##N, test_##N, store_##N, all_##N, any_##N, some_##N, wait_all_##N, wait_any_##N, \
     wait_some_##N},
#define SHORT_ROW(N, T, _) {.name = #N, .compare = compare_##N, .test = test_##N},
static const struct type types[] = {SHMEM_WAIT_TYPES(ROW, _) SHMEM_SHORTS(SHORT_ROW, _)};
/* clang-format on */
enum { TYPES = sizeof types / sizeof *types };

/* Numbers around zero, at the ends of the types, and different for signed and unsigned types. */
static const int64_t numbers[] = {0,         1,         -1,        2,         -2,        INT16_MAX,
                                  INT16_MIN, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 77};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static void every_comparison(const struct type *type) {
    for (int c = 0; c < 6; c++)
        for (int i = 0; i < NUMBERS; i++)
            for (int j = 0; j < NUMBERS; j++) {
                int met = type->test(numbers[i], comparisons[c], numbers[j]);
                bool expected = type->compare(numbers[i], comparisons[c], numbers[j]);
                EXPECT(met == expected, "%s: %lld comparison %d with %lld: %d", type->name,
                       (long long)numbers[i], comparisons[c], (long long)numbers[j], met);
            }
}

/* Finds the indices that count and satisfy their condition, by a plain loop. */
static size_t met_by_loop(const struct type *type, const struct set *set, const int64_t *words,
                          bool *met, bool *all) {
    size_t count = 0;
    *all = true;
    for (size_t i = 0; i < set->nelems; i++) {
        int64_t value = set->values[set->vector ? i : 0];
        bool counts = !set->status || !set->status[i];
        met[i] = counts && type->compare(words[i], set->cmp, value);
        count += met[i];
        *all = *all && (!counts || met[i]);
    }
    return count;
}

static void check_set(const struct type *type, const struct set *set, const int64_t *words) {
    bool met[MOST], all;
    size_t indices[MOST], count = met_by_loop(type, set, words, met, &all);
    EXPECT(type->test_all(set) == all, "%s: test_all is not %d", type->name, all);
    size_t any = type->test_any(set);
    EXPECT(count ? any < set->nelems && met[any] : any == SIZE_MAX, "%s: test_any %zu of %zu",
           type->name, any, set->nelems);
    size_t some = type->test_some(set, indices);
    EXPECT(some == count, "%s: test_some %zu, not %zu", type->name, some, count);
    for (size_t i = 0; i < some; i++)
        EXPECT(met[indices[i]] && (i == 0 || indices[i] != indices[i - 1]), "%s: index %zu",
               type->name, indices[i]);
    if (all)
        type->wait_all(set);
    if (count == 0)
        return;
    any = type->wait_any(set);
    EXPECT(any < set->nelems && met[any], "%s: wait_until_any %zu", type->name, any);
    EXPECT(type->wait_some(set, indices) == count, "%s: wait_until_some", type->name);
}

static void random_sets(const struct type *type, uint64_t seed) {
    struct random random = random_of(seed, me);
    for (int round = 0; round < 200; round++) {
        int64_t words[MOST], values[MOST];
        int status[MOST];
        struct set set = {.nelems = random_below(&random, MOST + 1),
                          .status = random_below(&random, 3) ? status : NULL,
                          .cmp = comparisons[random_below(&random, 6)],
                          .vector = random_below(&random, 2),
                          .values = values};
        for (size_t i = 0; i < MOST; i++) {
            words[i] = numbers[random_below(&random, 4)];
            values[i] = numbers[random_below(&random, 4)];
            status[i] = random_below(&random, 2) ? 0 : -(int)random_below(&random, 3);
        }
        type->store(words, set.nelems, me);
        check_set(type, &set, words);
    }
}

/* An empty set returns at once, and no pointer is used. */
static void empty_sets(void) {
    static int all_out[3] = {1, -1, 5};
    static long ivars[3] = {1, 2, 3};
    size_t indices[3];
    EXPECT(shmem_long_test_all(NULL, 0, NULL, SHMEM_CMP_EQ, 0) == 1, "test_all");
    EXPECT(shmem_long_test_any(NULL, 0, NULL, SHMEM_CMP_EQ, 0) == SIZE_MAX, "test_any");
    EXPECT(shmem_long_test_some(NULL, 0, NULL, NULL, SHMEM_CMP_EQ, 0) == 0, "test_some");
    shmem_long_wait_until_all(NULL, 0, NULL, SHMEM_CMP_EQ, 0);
    EXPECT(shmem_long_wait_until_any(NULL, 0, NULL, SHMEM_CMP_EQ, 0) == SIZE_MAX, "any");
    EXPECT(shmem_long_wait_until_some_vector(NULL, 0, NULL, NULL, SHMEM_CMP_EQ, NULL) == 0, "some");
    EXPECT(shmem_long_test_all(ivars, 3, all_out, SHMEM_CMP_EQ, 9) == 1, "test_all, all out");
    EXPECT(shmem_long_wait_until_any(ivars, 3, all_out, SHMEM_CMP_EQ, 9) == SIZE_MAX, "all out");
    EXPECT(shmem_long_wait_until_some(ivars, 3, indices, all_out, SHMEM_CMP_EQ, 9) == 0, "all out");
    shmem_long_wait_until_all_vector(ivars, 3, all_out, SHMEM_CMP_EQ, ivars);
    EXPECT(all_out[0] == 1 && all_out[1] == -1 && all_out[2] == 5, "status was written");
}

/* Every satisfied element is returned eventually, also to a program that alternates between two
 * sets. */
static void fairness(void) {
    enum { LENGTH = 7 };
    static int first[LENGTH], second[2];
    int seen_first[LENGTH] = {0}, seen_second[2] = {0};
    for (int i = 0; i < 400; i++) {
        seen_first[shmem_int_test_any(first, LENGTH, NULL, SHMEM_CMP_EQ, 0)]++;
        seen_second[shmem_int_wait_until_any(second, 2, NULL, SHMEM_CMP_EQ, 0)]++;
    }
    for (int i = 0; i < LENGTH; i++)
        EXPECT(seen_first[i] > 20, "element %d of 7 came %d times of 400", i, seen_first[i]);
    EXPECT(seen_second[0] > 100 && seen_second[1] > 100, "%d and %d", seen_second[0],
           seen_second[1]);
}

/* Another PE sets the words of one PE, late and one by one; each announces a put before it. */
static void for_another_pe(const struct type *type, uint64_t base) {
    static uint64_t payload[MOST];
    int next = (me + 1) % npes;
    int64_t zeros[MOST] = {0}, ones[MOST];
    for (size_t i = 0; i < MOST; i++)
        ones[i] = 1;
    memset(payload, 0, sizeof payload);
    type->store(zeros, MOST, me);
    shmem_barrier_all();
    for (size_t i = 1; i <= MOST;
         i++) { /* the first i words, so that they are reported one by one */
        if (i % 8 == 0 && npes > 1)
            usleep(200);
        shmem_uint64_p(&payload[i - 1], base + i, next);
        shmem_fence();
        type->store(ones, i, next);
    }
    struct set set = {.nelems = MOST, .cmp = SHMEM_CMP_EQ, .values = ones};
    size_t indices[MOST], any = type->wait_any(&set);
    EXPECT(payload[any] == base + any + 1, "%s: any %zu came before its payload", type->name, any);
    size_t some = type->wait_some(&set, indices);
    for (size_t i = 0; i < some; i++)
        EXPECT(payload[indices[i]] == base + indices[i] + 1, "%s: some %zu", type->name,
               indices[i]);
    type->wait_all(&set);
    for (size_t i = 0; i < MOST; i++)
        EXPECT(payload[i] == base + i + 1, "%s: all %zu", type->name, i);
    shmem_barrier_all();
}

/* A flag goes around, set by p, put and an atomic in turn; each PE waits with another comparison.
 */
static void ping_pong(void) {
    static int flag;
    static short narrow;
    int next = (me + 1) % npes;
    for (int turn = 1; turn <= 300; turn++) {
        if (me == 0)
            shmem_int_p(&flag, turn, next);
        switch (turn % 3) {
        case 0:
            shmem_int_wait_until(&flag, SHMEM_CMP_EQ, turn);
            break;
        case 1:
            shmem_int_wait_until(&flag, SHMEM_CMP_GE, turn);
            break;
        default:
            while (!shmem_int_test(&flag, SHMEM_CMP_NE, turn - 1))
                ;
        }
        EXPECT(flag == turn, "%d in turn %d", flag, turn);
        if (me != 0)
            turn % 2 ? shmem_int_put(&flag, &turn, 1, next)
                     : shmem_int_atomic_set(&flag, turn, next);
    }
    shmem_barrier_all();
    shmem_short_p(&narrow, -3, next);
    shmem_short_wait_until(&narrow, SHMEM_CMP_LT, 0);
    EXPECT(narrow == -3, "%d", narrow);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    tap_case("every type and comparison");
    for (int t = 0; t < TYPES; t++)
        every_comparison(&types[t]);
    tap_case("random sets of every type");
    for (int t = 0; t < TYPES; t++)
        if (types[t].store)
            random_sets(&types[t], (uint64_t)t);
    tap_case("empty sets");
    empty_sets();
    tap_case("fairness of any");
    fairness();
    tap_case("words that another PE sets");
    for (int t = 0; t < TYPES; t++)
        if (types[t].store)
            for_another_pe(&types[t], (uint64_t)t << 32);
    tap_case("a flag that goes around");
    ping_pong();
    shmem_barrier_all();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
