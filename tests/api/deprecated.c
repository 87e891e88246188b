/* SPDX-License-Identifier: BSD-3-Clause */
/* Deprecated routines that are still required: names without the prefix, atomics without `atomic`,
 * waits under old names and on short integers, constants with an underscore. Each is compared with
 * a model, or with a result that needs atomicity or order. */
#include <shmem.h>
#include <string.h>
#include "tap.h"
#include "api/model.h"

#define SAME(NAME) _Static_assert(_##NAME == NAME, #NAME)
SAME(SHMEM_MAJOR_VERSION);
SAME(SHMEM_MINOR_VERSION);
SAME(SHMEM_MAX_NAME_LEN);
SAME(SHMEM_CMP_EQ);
SAME(SHMEM_CMP_NE);
SAME(SHMEM_CMP_GT);
SAME(SHMEM_CMP_GE);
SAME(SHMEM_CMP_LT);
SAME(SHMEM_CMP_LE);
SAME(SHMEM_SYNC_VALUE);
SAME(SHMEM_BARRIER_SYNC_SIZE);
SAME(SHMEM_BCAST_SYNC_SIZE);
SAME(SHMEM_COLLECT_SYNC_SIZE);
SAME(SHMEM_REDUCE_SYNC_SIZE);
SAME(SHMEM_REDUCE_MIN_WRKDATA_SIZE);
_Static_assert(SHMEM_SYNC_SIZE >= SHMEM_BARRIER_SYNC_SIZE &&
                   SHMEM_SYNC_SIZE >= SHMEM_BCAST_SYNC_SIZE &&
                   SHMEM_SYNC_SIZE >= SHMEM_COLLECT_SYNC_SIZE &&
                   SHMEM_SYNC_SIZE >= SHMEM_REDUCE_SYNC_SIZE &&
                   SHMEM_SYNC_SIZE >= SHMEM_ALLTOALL_SYNC_SIZE &&
                   SHMEM_SYNC_SIZE >= SHMEM_ALLTOALLS_SYNC_SIZE,
               "SHMEM_SYNC_SIZE does for every collective");

enum { ROUNDS = 300 };
static int me, npes;

static int right(void) {
    return (me + 1) % npes;
}

static void names(void) {
    EXPECT(_my_pe() == me, "_my_pe is %d", _my_pe());
    EXPECT(_num_pes() == npes, "_num_pes is %d", _num_pes());
    EXPECT(strcmp(_SHMEM_VENDOR_STRING, SHMEM_VENDOR_STRING) == 0, "%s", _SHMEM_VENDOR_STRING);
}

/* Objects correspond: the left neighbour's put arrives. */
static void memory(void) {
    struct random random = random_of(7, 0);
    for (int round = 0; round < 20; round++) {
        size_t count = 1 + random_below(&random, 2000), alignment = (size_t)8 << (round % 12);
        long *plain = shmalloc(count * sizeof *plain), *aligned = shmemalign(alignment, 8);
        EXPECT((uintptr_t)aligned % alignment == 0, "%p for %zu", (void *)aligned, alignment);
        plain[0] = me;
        plain = shrealloc(plain, 2 * count * sizeof *plain);
        EXPECT(plain[0] == me, "%ld after shrealloc", plain[0]);
        shmem_barrier_all();
        shmem_long_p(&plain[2 * count - 1], 100 * round + me, right());
        shmem_long_p(aligned, me, right());
        shmem_barrier_all();
        int left = (me + npes - 1) % npes;
        EXPECT(plain[2 * count - 1] == 100 * round + left, "%ld", plain[2 * count - 1]);
        EXPECT(*aligned == left, "%ld", *aligned);
        shfree(plain);
        shfree(aligned);
    }
    EXPECT(shmalloc(0) == NULL && shmemalign(0, 8) == NULL, "nothing is allocated");
    shfree(NULL);
}

/* clang-format off */
/* A word of each type, which only the left neighbour changes, against a local model of it. Values
 * are below 2^20, so that float represents their sums, too. Plain and generic names alternate. */
#define TURN(GENERIC, TYPED) (random_next(&random) & 1 ? (GENERIC) : (TYPED))
#define TURN_VOID(GENERIC, TYPED) do { if (random_next(&random) & 1) GENERIC; else TYPED; } while (0)
#define VALUE ((random_next(&random) & 0xFFFFF))
#define NUMBER(N, T, _)                                                                            \
    static T word_##N;                                                                             \
    static void number_##N(void) {                                                                 \
        struct random random = random_of(11, me);                                                  \
        T model = 0, value, before;                                                                \
        for (int round = 0; round < ROUNDS; round++) {                                             \
            value = (T)VALUE;                                                                      \
            before = TURN(shmem_fetch(&word_##N, right()), shmem_##N##_fetch(&word_##N, right())); \
            EXPECT(before == model, #N " fetch in round %d", round);                               \
            TURN_VOID(shmem_set(&word_##N, value, right()),                                        \
                      shmem_##N##_set(&word_##N, value, right()));                                 \
            model = value;                                                                         \
            value = (T)VALUE;                                                                      \
            before = TURN(shmem_swap(&word_##N, value, right()),                                   \
                          shmem_##N##_swap(&word_##N, value, right()));                            \
            EXPECT(before == model, #N " swap in round %d", round);                                \
            model = value;                                                                         \
        }                                                                                          \
    }
#define INTEGER(N, T, _)                                                                           \
    static T ticket_##N, sum_##N, gate_##N;                                                        \
    static void integer_##N(void) {                                                                \
        struct random random = random_of(13, me);                                                  \
        T model = shmem_fetch(&word_##N, right()), value, cond, before;                            \
        for (int round = 0; round < ROUNDS; round++) {                                             \
            value = (T)VALUE;                                                                      \
            cond = random_next(&random) & 1 ? model : (T)VALUE;                                    \
            before = TURN(shmem_cswap(&word_##N, cond, value, right()),                            \
                          shmem_##N##_cswap(&word_##N, cond, value, right()));                     \
            EXPECT(before == model, #N " cswap in round %d", round);                               \
            model = before == cond ? value : model;                                                \
            before = TURN(shmem_finc(&word_##N, right()), shmem_##N##_finc(&word_##N, right()));   \
            EXPECT(before == model++, #N " finc in round %d", round);                              \
            TURN_VOID(shmem_inc(&word_##N, right()), shmem_##N##_inc(&word_##N, right()));         \
            model++;                                                                               \
            before = TURN(shmem_fadd(&word_##N, value, right()),                                   \
                          shmem_##N##_fadd(&word_##N, value, right()));                            \
            EXPECT(before == model, #N " fadd in round %d", round);                                \
            model += value;                                                                        \
            TURN_VOID(shmem_add(&word_##N, value, right()),                                        \
                      shmem_##N##_add(&word_##N, value, right()));                                 \
            model += value;                                                                        \
        }                                                                                          \
    }                                                                                              \
    /* All PEs at once on the words of PE 0: tickets and sums, and a lock from cswap and swap. */  \
    static void contended_##N(void) {                                                              \
        static T guarded_##N;                                                                      \
        for (int round = 0; round < ROUNDS; round++) {                                             \
            T ticket = shmem_##N##_finc(&ticket_##N, 0);                                           \
            shmem_##N##_add(&sum_##N, ticket, 0);                                                  \
            while (shmem_##N##_cswap(&gate_##N, 0, 1, 0) != 0)                                     \
                ;                                                                                  \
            shmem_##N##_p(&guarded_##N, shmem_##N##_g(&guarded_##N, 0) + 1, 0);                    \
            shmem_quiet();                                                                         \
            EXPECT(shmem_##N##_swap(&gate_##N, 0, 0) == 1, "the gate was open");                   \
        }                                                                                          \
        shmem_barrier_all();                                                                       \
        T all = (T)(npes * ROUNDS);                                                                \
        if (me == 0) {                                                                             \
            EXPECT(ticket_##N == all, #N " tickets");                                              \
            EXPECT(sum_##N == all * (all - 1) / 2, #N " sum");                                     \
            EXPECT(guarded_##N == all, #N " behind the gate");                                     \
        }                                                                                          \
        shmem_barrier_all();                                                                       \
    }
#define NUMBERS(X)  X(int, int, _) X(long, long, _) X(longlong, long long, _)                      \
                    X(float, float, _) X(double, double, _)
#define INTEGERS(X) X(int, int, _) X(long, long, _) X(longlong, long long, _)
NUMBERS(NUMBER)
INTEGERS(INTEGER)

/* A token goes around; each PE waits for it with `WAIT` and passes it on. Data put before the token
 * must arrive no later. */
#define ROUND_TRIP(ID, T, PUT, WAIT)                                                               \
    static void trip_##ID(void) {                                                                  \
        static T token;                                                                            \
        static int payload;                                                                        \
        for (T lap = 1; lap <= 30; lap++) {                                                        \
            if (me != 0 || npes == 1) {                                                            \
                if (npes == 1) {                                                                   \
                    payload = lap;                                                                 \
                    token = lap;                                                                   \
                }                                                                                  \
                WAIT;                                                                              \
                EXPECT(token == lap && payload == (int)lap, #ID " lap %d", (int)lap);              \
            }                                                                                      \
            if (npes > 1) {                                                                        \
                shmem_int_p(&payload, (int)lap, right());                                          \
                shmem_fence();                                                                     \
                PUT(&token, lap, right());                                                         \
            }                                                                                      \
            if (me == 0 && npes > 1) {                                                             \
                WAIT;                                                                              \
                EXPECT(token == lap && payload == (int)lap, #ID " lap %d", (int)lap);              \
            }                                                                                      \
        }                                                                                          \
        shmem_barrier_all();                                                                       \
    }
ROUND_TRIP(short_wait_until, short, shmem_short_p, shmem_short_wait_until(&token, SHMEM_CMP_EQ, lap))
ROUND_TRIP(short_wait, short, shmem_short_p, shmem_short_wait(&token, lap - 1))
ROUND_TRIP(int_wait, int, shmem_int_p, shmem_int_wait(&token, lap - 1))
ROUND_TRIP(long_wait, long, shmem_long_p, shmem_long_wait(&token, lap - 1))
ROUND_TRIP(longlong_wait, long long, shmem_longlong_p, shmem_longlong_wait(&token, lap - 1))
ROUND_TRIP(wait, long, shmem_long_p, shmem_wait(&token, lap - 1))
ROUND_TRIP(wait_until, long, shmem_long_p, (shmem_wait_until)(&token, SHMEM_CMP_GE, lap))
ROUND_TRIP(short_test, short, shmem_short_p, while (!shmem_short_test(&token, SHMEM_CMP_EQ, lap)))
ROUND_TRIP(ushort_test, unsigned short, shmem_ushort_p,
           while (!shmem_ushort_test(&token, SHMEM_CMP_GT, (unsigned short)(lap - 1))))
ROUND_TRIP(ushort_wait_until, unsigned short, shmem_ushort_p,
           shmem_ushort_wait_until(&token, _SHMEM_CMP_NE, (unsigned short)(lap - 1)))
/* clang-format on */

static void atomics(void) {
    number_int();
    number_long();
    number_longlong();
    number_float();
    number_double();
    integer_int();
    integer_long();
    integer_longlong();
    shmem_barrier_all();
}

static void contention(void) {
    contended_int();
    contended_long();
    contended_longlong();
}

static void waits(void) {
    trip_short_wait_until();
    trip_short_wait();
    trip_int_wait();
    trip_long_wait();
    trip_longlong_wait();
    trip_wait();
    trip_wait_until();
    trip_short_test();
    trip_ushort_test();
    trip_ushort_wait_until();
}

/* The comparison respects the type's sign. */
static void signs(void) {
    static short below;
    static unsigned short high;
    shmem_short_p(&below, -1, me);
    shmem_ushort_p(&high, 0xFFFF, me);
    EXPECT(shmem_short_test(&below, SHMEM_CMP_LT, 0), "short is %d", below);
    EXPECT(!shmem_ushort_test(&high, SHMEM_CMP_LT, 1), "ushort is %d", high);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    tap_case("names and constants");
    names();
    tap_case("memory management");
    memory();
    tap_case("atomics, against a model");
    atomics();
    tap_case("atomics, all PEs at once");
    contention();
    tap_case("waiting");
    waits();
    tap_case("signs of short integers");
    signs();
    shmem_finalize();
    return tap_finish();
}
