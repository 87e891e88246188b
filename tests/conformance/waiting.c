/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting and testing in typical programs (pitfalls 17, 54, 55): data that a satisfied wait has
 * acquired, whatever operation set its word; sets that a program processes by status; large sets;
 * empty sets; signedness. All types and forms on random sets are in tests/api/wait.c. */
#include <shmem.h>
#include <limits.h>
#include <string.h>
#include "conformance/ring.h"
#include "tap.h"
#include "api/model.h"

enum { PES_MAX = 64, LANES = 5 };

/* All operations that raise a flag; the reader is ordered only by its wait. */
static long flag;
static uint64_t sig;

static void raise_flag(int way, long turn) {
    long *there;
    switch (way) {
    case 0:
        shmem_long_p(&flag, turn, next);
        break;
    case 1:
        shmem_long_put(&flag, &turn, 1, next);
        break;
    case 2:
        shmem_putmem(&flag, &turn, sizeof turn, next);
        break;
    case 3:
        shmem_long_iput(&flag, &turn, 1, 1, 1, next);
        break;
    case 4:
        shmem_long_atomic_set(&flag, turn, next);
        break;
    case 5:
        shmem_long_atomic_inc(&flag, next);
        break;
    case 6:
        shmem_long_atomic_swap(&flag, turn, next);
        break;
    case 7:
        shmem_long_atomic_compare_swap(&flag, turn - 1, turn, next);
        break;
    case 8:
        shmem_put64(&flag, &turn, 1, next);
        break;
    case 9:
        shmem_long_put_signal(&flag, &turn, 1, &sig, (uint64_t)turn, SHMEM_SIGNAL_SET, next);
        break;
    default:
        there = shmem_ptr(&flag, next);
        if (there)
            __atomic_store_n(there, turn, __ATOMIC_RELAXED); /* after the fence */
        else
            shmem_long_p(&flag, turn, next);
    }
}

static void await_flag(int how, long turn) {
    size_t index;
    long value = turn;
    switch (how) {
    case 0:
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, turn);
        break;
    case 1:
        shmem_long_wait_until(&flag, SHMEM_CMP_GT, turn - 1);
        break;
    case 2:
        shmem_wait_until(&flag, SHMEM_CMP_NE, turn - 1);
        break;
    case 3:
        while (!shmem_long_test(&flag, SHMEM_CMP_GE, turn))
            ;
        break;
    case 4:
        shmem_long_wait_until_all(&flag, 1, NULL, SHMEM_CMP_EQ, turn);
        break;
    case 5:
        EXPECT(shmem_long_wait_until_any(&flag, 1, NULL, SHMEM_CMP_EQ, turn) == 0, "any");
        break;
    case 6:
        EXPECT(shmem_long_wait_until_some(&flag, 1, &index, NULL, SHMEM_CMP_EQ, turn) == 1, "some");
        break;
    case 7:
        while (!shmem_long_test_all_vector(&flag, 1, NULL, SHMEM_CMP_EQ, &value))
            ;
        break;
    case 8:
        while (shmem_long_test_any(&flag, 1, NULL, SHMEM_CMP_EQ, turn) == SIZE_MAX)
            ;
        break;
    default:
        while (shmem_long_test_some_vector(&flag, 1, &index, NULL, SHMEM_CMP_EQ, &value) == 0)
            ;
    }
}

static void acquire(void) {
    static long payload[100];
    static uint64_t taken;
    long values[100];
    for (long turn = 1; turn <= 440; turn++) {
        for (int i = 0; i < 100; i++)
            values[i] = turn + i + me;
        shmem_long_put_nbi(payload, values, 100, next);
        shmem_fence();
        raise_flag((int)(turn % 11), turn);
        await_flag((int)(turn / 11 % 10), turn);
        for (int i = 0; i < 100; i++)
            EXPECT(payload[i] == turn + i + before, "way %ld, wait %ld, element %d: %ld", turn % 11,
                   turn / 11 % 10, i, payload[i]);
        shmem_quiet();
        shmem_signal_set(&taken, (uint64_t)turn, before);
        shmem_signal_wait_until(&taken, SHMEM_CMP_GE, (uint64_t)turn);
    }
    shmem_barrier_all();
}

/* Every PE sets a word of every other PE. The receiver processes the words that have arrived,
 * excludes them by status, and waits for the rest, with each of the routines that return
 * indices. */
static void work_off(int how) {
    static int words[PES_MAX * LANES];
    int status[PES_MAX * LANES] = {0}, seen[PES_MAX * LANES] = {0}, values[PES_MAX * LANES];
    size_t nelems = (size_t)(npes * LANES), left = nelems, indices[PES_MAX * LANES];
    memset(words, 0, sizeof words);
    for (size_t i = 0; i < nelems; i++)
        values[i] = (int)i + 1;
    shmem_barrier_all();
    for (int lane = 0; lane < LANES; lane++)
        for (int distance = 0; distance < npes; distance++)
            shmem_int_atomic_set(&words[me * LANES + lane], me * LANES + lane + 1,
                                 (me + distance) % npes);
    while (left > 0) {
        size_t found = 1;
        if (how == 0)
            indices[0] = shmem_int_wait_until_any(words, nelems, status, SHMEM_CMP_NE, 0);
        else if (how == 1)
            found = shmem_int_wait_until_some(words, nelems, indices, status, SHMEM_CMP_GT, 0);
        else if (how == 2)
            indices[0] =
                shmem_int_wait_until_any_vector(words, nelems, status, SHMEM_CMP_EQ, values);
        else if (how == 3)
            found = shmem_int_wait_until_some_vector(words, nelems, indices, status, SHMEM_CMP_GE,
                                                     values);
        else if (how == 4)
            found = (indices[0] = shmem_int_test_any(words, nelems, status, SHMEM_CMP_NE, 0)) !=
                    SIZE_MAX;
        else
            found = shmem_int_test_some(words, nelems, indices, status, SHMEM_CMP_NE, 0);
        EXPECT(found <= left && (found > 0 || how > 3), "%zu of %zu left", found, left);
        for (size_t i = 0; i < found; i++) {
            EXPECT(indices[i] < nelems && !status[indices[i]], "index %zu again", indices[i]);
            EXPECT(words[indices[i]] == values[indices[i]], "word %zu is %d", indices[i],
                   words[indices[i]]);
            seen[indices[i]]++;
            status[indices[i]] = (int)indices[i] % 2 ? 1 : -1;
        }
        left -= found;
    }
    for (size_t i = 0; i < nelems; i++)
        EXPECT(seen[i] == 1, "routine %d: word %zu %d times", how, i, seen[i]);
    EXPECT(shmem_int_test_any(words, nelems, status, SHMEM_CMP_NE, 0) == SIZE_MAX, "all are out");
    EXPECT(shmem_int_test_some(words, nelems, indices, status, SHMEM_CMP_NE, 0) == 0, "all out");
    EXPECT(shmem_int_test_all(words, nelems, status, SHMEM_CMP_EQ, -5) == 1, "all are out");
    EXPECT(shmem_int_wait_until_any(words, nelems, status, SHMEM_CMP_EQ, -5) == SIZE_MAX,
           "all out");
    EXPECT(shmem_int_wait_until_some(words, nelems, indices, status, SHMEM_CMP_EQ, -5) == 0, "out");
    shmem_int_wait_until_all(words, nelems, status, SHMEM_CMP_EQ, -5);
    shmem_barrier_all();
}

/* A set of a hundred thousand words in the heap, of which one, some, or all except the excluded
 * ones meet the condition. */
static void large_sets(void) {
    enum { NELEMS = 100000 };
    uint64_t *words = shmem_calloc(NELEMS, sizeof *words);
    static int status[NELEMS];
    static size_t indices[NELEMS];
    size_t wanted = (size_t)before * 7919 % NELEMS, mine = (size_t)me * 7919 % NELEMS;
    shmem_uint64_atomic_set(&words[mine], UINT64_MAX, next);
    EXPECT(shmem_uint64_wait_until_any(words, NELEMS, NULL, SHMEM_CMP_GT, 0) == wanted, "any");
    size_t found = shmem_uint64_wait_until_some(words, NELEMS, indices, NULL, SHMEM_CMP_NE, 0);
    EXPECT(found == 1 && indices[0] == wanted, "some: %zu", found);
    EXPECT(!shmem_uint64_test_all(words, NELEMS, NULL, SHMEM_CMP_EQ, 0), "all");
    status[wanted] = 1;
    EXPECT(shmem_uint64_test_all(words, NELEMS, status, SHMEM_CMP_EQ, 0), "all but one");
    shmem_uint64_wait_until_all(words, NELEMS, status, SHMEM_CMP_EQ, 0);
    status[wanted] = 0;
    found = shmem_uint64_test_some(words, NELEMS, indices, NULL, SHMEM_CMP_EQ, 0);
    EXPECT(found == NELEMS - 1, "%zu", found);
    shmem_barrier_all();
    shmem_free(words);
}

/* The routine waits for a word that already has its value, and for one that the caller stores
 * itself. */
static void own_words(void) {
    static short narrow = -1;
    static unsigned short unsigned_narrow = USHRT_MAX;
    static int word = INT_MIN;
    static unsigned unsigned_word = UINT_MAX;
    static uint64_t own_signal = UINT64_MAX;
    static size_t size = SIZE_MAX;
    static ptrdiff_t difference = PTRDIFF_MIN;
    shmem_short_wait_until(&narrow, SHMEM_CMP_LT, 0);
    shmem_ushort_wait_until(&unsigned_narrow, SHMEM_CMP_GT, 0);
    shmem_int_wait_until(&word, SHMEM_CMP_LE, INT_MIN);
    shmem_uint_wait_until(&unsigned_word, SHMEM_CMP_GT, INT_MAX);
    shmem_size_wait_until(&size, SHMEM_CMP_GE, 1);
    shmem_ptrdiff_wait_until(&difference, SHMEM_CMP_LT, -1);
    EXPECT(shmem_signal_wait_until(&own_signal, SHMEM_CMP_GT, INT64_MAX) == UINT64_MAX, "signal");
    EXPECT(!shmem_int_test(&word, SHMEM_CMP_GT, 0) &&
               !shmem_uint_test(&unsigned_word, SHMEM_CMP_LT, 1),
           "signedness");
    word = 5;
    shmem_int_wait_until(&word, SHMEM_CMP_EQ, 5);
    own_signal = 3;
    EXPECT(shmem_signal_fetch(&own_signal) == 3, "%llu", (unsigned long long)own_signal);
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    ring_start();
    tap_case("17: a satisfied wait has acquired, whatever set the word");
    acquire();
    tap_case("54: sets that are worked off by status");
    for (int how = 0; how < 6; how++)
        work_off(how);
    tap_case("54: large sets");
    large_sets();
    tap_case("55: signed and unsigned, and words that are there already");
    own_words();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
