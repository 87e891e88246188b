/* SPDX-License-Identifier: BSD-3-Clause */
/* The deprecated collectives on active sets (pitfalls 38, 41): every routine and type, on sets with
 * strides, sets side by side and overlapping sets, while other PEs do something else. The work
 * arrays keep their values; a broadcast does not write the root's dest. */
#include <mpp/shmem.h>
#include <complex.h>
#include <stdbool.h>
#include <string.h>
#include "reach.h"
#include "tap.h"
#include "api/model.h"

enum { N = 40, PES_MAX = 64, SYNCS = 4 };

static int me, npes;

struct set {
    int start, log_stride, size;
};

static int world_of(const struct set *set, int rank) {
    return set->start + (rank << set->log_stride);
}

static int rank_in(const struct set *set) {
    for (int rank = 0; rank < set->size; rank++)
        if (world_of(set, rank) == me)
            return rank;
    return -1;
}

/* Work arrays, used in turn; every PE counts, whether it is in the set or not. */
static long sync_arrays[SYNCS][SHMEM_SYNC_SIZE];
static unsigned calls;

static long *next_sync(void) {
    return sync_arrays[calls++ % SYNCS];
}

static void check_syncs(const char *routine) {
    int wrong = 0;
    for (int i = 0; i < SYNCS; i++)
        for (int j = 0; j < SHMEM_SYNC_SIZE; j++)
            wrong += sync_arrays[i][j] != SHMEM_SYNC_VALUE;
    EXPECT(wrong == 0, "%s: %d words of pSync are not what they were", routine, wrong);
}

#define SET set->start, set->log_stride, set->size

static uint64_t value(uint64_t seed, int world, int i) {
    return seed * UINT64_C(1000003) + (uint64_t)world * 4096 + (uint64_t)i;
}

/* clang-format off */
#define MOVING(BITS)                                                                               \
    static void moving_##BITS(const struct set *set, uint64_t seed) {                              \
        static uint##BITS##_t dest[PES_MAX * N * 2], source[PES_MAX * N * 2];                      \
        typedef uint##BITS##_t word; long *work, *entry = next_sync();                             \
        int rank = rank_in(set), root = (int)(seed % (uint64_t)set->size), at = 0, wrong = 0;      \
        for (int i = 0; i < PES_MAX * N * 2; i++) {                                                \
            source[i] = (word)value(seed, me, i);                                                  \
            dest[i] = 77;                                                                          \
        }                                                                                          \
        shmem_barrier_all();                                                                       \
        work = next_sync();                                                                        \
        if (rank >= 0)                                                                             \
            shmem_broadcast##BITS(dest, source, N, root, SET, work);                               \
        for (int i = 0; i < N; i++)                                                                \
            wrong += dest[i] != (rank < 0 || rank == root                                          \
                                     ? 77 : (word)value(seed, world_of(set, root), i));            \
        EXPECT(wrong == 0, "broadcast" #BITS ": %d wrong", wrong);                                 \
        shmem_barrier_all();                                                                       \
        work = next_sync();                                                                        \
        if (rank >= 0) {                                                                           \
            shmem_fcollect##BITS(dest, source, N, SET, work);                                      \
            for (int pe = 0; pe < set->size; pe++)                                                 \
                for (int i = 0; i < N; i++)                                                        \
                    wrong += dest[at++] != (word)value(seed, world_of(set, pe), i);                \
            EXPECT(wrong == 0, "fcollect" #BITS ": %d wrong", wrong);                              \
        }                                                                                          \
        shmem_barrier_all();                                                                       \
        work = next_sync();                                                                        \
        if (rank >= 0) {                                                                           \
            at = 0;                                                                                \
            shmem_collect##BITS(dest, source, (size_t)(me * 7 % N), SET, work);                    \
            for (int pe = 0; pe < set->size; pe++)                                                 \
                for (int i = 0; i < world_of(set, pe) * 7 % N; i++)                                \
                    wrong += dest[at++] != (word)value(seed, world_of(set, pe), i);                \
            EXPECT(wrong == 0, "collect" #BITS ": %d wrong", wrong);                               \
        }                                                                                          \
        shmem_barrier_all();                                                                       \
        work = next_sync();                                                                        \
        if (rank >= 0) {                                                                           \
            at = 0;                                                                                \
            shmem_alltoall##BITS(dest, source, N, SET, work);                                      \
            for (int pe = 0; pe < set->size; pe++)                                                 \
                for (int i = 0; i < N; i++)                                                        \
                    wrong += dest[at++] != (word)value(seed, world_of(set, pe), rank * N + i);     \
            EXPECT(wrong == 0, "alltoall" #BITS ": %d wrong", wrong);                              \
        }                                                                                          \
        shmem_barrier_all();                                                                       \
        work = next_sync();                                                                        \
        if (rank >= 0) {                                                                           \
            for (int i = 0; i < PES_MAX * N * 2; i++)                                              \
                dest[i] = 77;                                                                      \
            shmem_sync(SET, entry);                                                                \
            shmem_alltoalls##BITS(dest, source, 2, 1, N, SET, work);                               \
            for (int i = 0; i < set->size * N; i++) {                                              \
                wrong += dest[2 * i] != (word)value(seed, world_of(set, i / N), rank * N + i % N); \
                wrong += dest[2 * i + 1] != 77;                                                    \
            }                                                                                      \
            EXPECT(wrong == 0, "alltoalls" #BITS ": %d wrong", wrong);                             \
        }                                                                                          \
        shmem_barrier_all();                                                                       \
        check_syncs("moving " #BITS);                                                              \
    }
MOVING(32)
MOVING(64)

#define REAL(T, seed, world, i)    ((T)((int)(value(seed, world, i) * 7 % 5) - 2))
#define COMPLEX(T, seed, world, i) ((T)(REAL(double, seed, world, i) + REAL(double, seed, world + 1, i) * _Complex_I))
#define TO_ALL(N_, T, OP, EXPRESSION, MAKE)                                                        \
    static void OP##_##N_(const struct set *set, uint64_t seed) {                                  \
        static T dest[N], source[N]; long *sync = next_sync();                                     \
        static T work[N / 2 + 1 > SHMEM_REDUCE_MIN_WRKDATA_SIZE ? N / 2 + 1                        \
                                                                : SHMEM_REDUCE_MIN_WRKDATA_SIZE];  \
        int nreduce = (int)(seed * 13 % (N + 1)), wrong = 0;                                       \
        T *out = seed % 3 ? dest : source; /* in place is allowed */                               \
        for (int i = 0; i < N; i++) {                                                              \
            dest[i] = (T)9;                                                                        \
            source[i] = MAKE(T, seed, me, i);                                                      \
        }                                                                                          \
        shmem_barrier_all();                                                                       \
        if (rank_in(set) >= 0) {                                                                   \
            shmem_##N_##_##OP##_to_all(out, source, nreduce, SET, work, sync);                     \
            for (int i = 0; i < nreduce; i++) {                                                    \
                T a = MAKE(T, seed, world_of(set, 0), i);                                          \
                for (int pe = 1; pe < set->size; pe++) {                                           \
                    T b = MAKE(T, seed, world_of(set, pe), i);                                     \
                    a = (T)(EXPRESSION);                                                           \
                }                                                                                  \
                wrong += out[i] != a;                                                              \
            }                                                                                      \
            EXPECT(wrong == 0, #N_ "_" #OP "_to_all of %d: %d wrong", nreduce, wrong);             \
        }                                                                                          \
        for (int i = nreduce; i < N; i++)                                                          \
            wrong += dest[i] != (T)9 || source[i] != MAKE(T, seed, me, i);                         \
        EXPECT(wrong == 0, #N_ "_" #OP "_to_all wrote behind its end");                            \
        shmem_barrier_all();                                                                       \
        check_syncs(#N_ "_" #OP "_to_all");                                                        \
    }
#define BITWISE(X, M) X(short, short, M) X(int, int, M) X(long, long, M) X(longlong, long long, M)
#define ORDERED(X, M) BITWISE(X, M) X(float, float, M) X(double, double, M) X(longdouble, long double, M)
#define COMPLEXES(X, M) X(complexf, float _Complex, M) X(complexd, double _Complex, M)
#define DEFINE_BITWISE(N_, T, M) TO_ALL(N_, T, and, a & b, M) TO_ALL(N_, T, or, a | b, M) TO_ALL(N_, T, xor, a ^ b, M)
#define DEFINE_ORDERED(N_, T, M) TO_ALL(N_, T, max, a > b ? a : b, M) TO_ALL(N_, T, min, a < b ? a : b, M)
#define DEFINE_ARITHMETIC(N_, T, M) TO_ALL(N_, T, sum, a + b, M) TO_ALL(N_, T, prod, a * b, M)
BITWISE(DEFINE_BITWISE, REAL)
ORDERED(DEFINE_ORDERED, REAL)
ORDERED(DEFINE_ARITHMETIC, REAL)
COMPLEXES(DEFINE_ARITHMETIC, COMPLEX)
typedef void routine(const struct set *set, uint64_t seed);
#define LIST_BITWISE(N_, T, M) and_##N_, or_##N_, xor_##N_,
#define LIST_ORDERED(N_, T, M) max_##N_, min_##N_,
#define LIST_ARITHMETIC(N_, T, M) sum_##N_, prod_##N_,
static routine *const routines[] = {
    BITWISE(LIST_BITWISE, ) ORDERED(LIST_ORDERED, ) ORDERED(LIST_ARITHMETIC, )
    COMPLEXES(LIST_ARITHMETIC, ) moving_32, moving_64};
/* clang-format on */

/* Makes the sets of a job of this size: all, every other PE, the upper part, every fourth, one
 * alone. */
static int make_sets(struct set *sets) {
    int n = 0;
    sets[n++] = (struct set){0, 0, npes};
    sets[n++] = (struct set){0, 1, (npes + 1) / 2};
    sets[n++] = (struct set){npes / 2, 0, npes - npes / 2};
    sets[n++] = (struct set){npes - 1, 3, 1};
    if (npes > 1)
        sets[n++] = (struct set){1, 1, npes / 2};
    if (npes > 4)
        sets[n++] = (struct set){0, 2, (npes + 3) / 4};
    return n;
}

/* Stores before a sync are visible after it; puts before a barrier are complete after it. */
static void barriers(const struct set *set) {
    static long stored[2], put;
    static long sync_work[SHMEM_SYNC_SIZE], barrier_work[SHMEM_BARRIER_SYNC_SIZE];
    int rank = rank_in(set);
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
        sync_work[i] = SHMEM_SYNC_VALUE;
    for (int i = 0; i < SHMEM_BARRIER_SYNC_SIZE; i++)
        barrier_work[i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    for (long turn = 1; turn <= 50 && rank >= 0; turn++) {
        int next = world_of(set, (rank + 1) % set->size);
        long mine = turn * 3;
        reach_store(&stored[turn % 2], turn, next);
        shmem_long_put_nbi(&put, &mine, 1, next);
        shmem_barrier(SET, barrier_work); /* using one work array repeatedly is allowed here */
        EXPECT(put == turn * 3 && stored[turn % 2] == turn, "%ld %ld in turn %ld", put,
               stored[turn % 2], turn);
        shmem_sync(SET, sync_work);
    }
    shmem_barrier_all();
}

/* Two halves concurrently, each with its own calls, more of them on one side; then all. */
static void side_by_side(void) {
    static long work[2][SHMEM_REDUCE_MIN_WRKDATA_SIZE], sum, mine;
    struct set halves[2] = {{0, 0, (npes + 1) / 2}, {(npes + 1) / 2, 0, npes / 2}};
    const struct set *set = &halves[me >= halves[1].start];
    shmem_barrier_all(); /* all have checked their work arrays */
    for (int turn = 0; turn < (set == halves ? 40 : 11); turn++) {
        long expected = 0;
        mine = me * turn;
        for (int pe = 0; pe < set->size; pe++)
            expected += (long)world_of(set, pe) * turn;
        shmem_sync(SET, next_sync());
        shmem_long_sum_to_all(&sum, &mine, 1, SET, work[turn % 2], next_sync());
        EXPECT(sum == expected, "%ld, not %ld", sum, expected);
        shmem_barrier(SET, next_sync());
    }
    shmem_barrier_all();
    calls = 0; /* the halves have used different numbers of arrays */
    check_syncs("side by side");
    shmem_barrier_all();
}

int main(void) {
    struct set sets[8];
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    for (int i = 0; i < SYNCS; i++)
        for (int j = 0; j < SHMEM_SYNC_SIZE; j++)
            sync_arrays[i][j] = _SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    int nsets = make_sets(sets);
    tap_case("41: barriers and syncs of active sets");
    for (int i = 0; i < nsets; i++)
        barriers(&sets[i]);
    tap_case("38, 41: every routine on every set");
    uint64_t seed = 0;
    for (int i = 0; i < nsets; i++)
        for (size_t j = 0; j < sizeof routines / sizeof *routines; j++)
            for (int round = 0; round < 2; round++)
                routines[j](&sets[i], ++seed);
    tap_case("41: side by side");
    side_by_side();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
