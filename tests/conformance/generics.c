/* SPDX-License-Identifier: BSD-3-Clause */
/* Every type-generic name of C11, with each base type that it accepts, without a context and with
 * one that counts PEs in reverse: the right routine moves the right data. Also with pointers to
 * const, arrays, elements of structures, and values whose types differ from the pointer's. */
#include <shmem.h>
#include <complex.h>
#include "conformance/ring.h"
#include "tap.h"

static shmem_team_t reversed; /* all PEs, in reverse order */
static shmem_ctx_t ctx;       /* of that team */

static int in_reverse(int pe) {
    return npes - 1 - pe;
}

/* clang-format off */
#define WORDS(X)                                                                                   \
    X(int, int) X(long, long) X(longlong, long long) X(uint, unsigned) X(ulong, unsigned long)     \
    X(ulonglong, unsigned long long)
#define BITWISE(X)                                                                                 \
    X(int, int) X(long, long) X(uint, unsigned) X(ulong, unsigned long)                            \
    X(ulonglong, unsigned long long)
#define REALS(X) X(float, float) X(double, double)
#define NARROW(X)                                                                                  \
    X(schar, signed char) X(uchar, unsigned char) X(short, short) X(ushort, unsigned short)
#define ALL(X)     WORDS(X) REALS(X) NARROW(X) X(char, char) X(longdouble, long double)
#define COMPLEX(X) X(complexf, float _Complex) X(complexd, double _Complex)

/* Both forms of a call: without a context to `next`, and with one to the same PE by its other
 * number. */
#define BOTH(NAME, PE, ...)                                                                        \
    shmem_##NAME(__VA_ARGS__, PE);                                                                 \
    shmem_##NAME(ctx, __VA_ARGS__, in_reverse(PE))

#define RMA(N, T)                                                                                  \
    static void rma_##N(void) {                                                                    \
        static struct { T put[2], nbi[2], iput[2], ibput[2], p[2], sig[2], sig_nbi[2]; } box;      \
        static T from[8];                                                                          \
        static uint64_t signal_word;                                                               \
        const T *source = from;                                                                    \
        T got[8] = {0};                                                                            \
        for (int i = 0; i < 8; i++)                                                                \
            from[i] = (T)(me + i);                                                                 \
        shmem_barrier_all();                                                                       \
        shmem_put(box.put, source, 1, next);                                                       \
        shmem_put(ctx, &box.put[1], from + 1, 1, in_reverse(next));                                \
        shmem_put_nbi(box.nbi, source, 1, next);                                                   \
        shmem_put_nbi(ctx, box.nbi + 1, source + 1, 1, in_reverse(next));                          \
        shmem_iput(box.iput, source, 1, 3, 1, next);                                               \
        shmem_iput(ctx, box.iput + 1, source + 1, 1, 3, 1, in_reverse(next));                      \
        shmem_ibput(box.ibput, source, 1, 1, 1, 1, next);                                          \
        shmem_ibput(ctx, box.ibput + 1, source + 1, 1, 1, 1, 1, in_reverse(next));                 \
        shmem_p(&box.p[0], me, next);                                                              \
        shmem_p(ctx, &box.p[1], (T)(me + 1), in_reverse(next));                                    \
        shmem_put_signal(box.sig, source, 1, &signal_word, 1, SHMEM_SIGNAL_ADD, next);             \
        shmem_put_signal(ctx, box.sig + 1, source + 1, 1, &signal_word, 1, SHMEM_SIGNAL_ADD,       \
                         in_reverse(next));                                                        \
        shmem_put_signal_nbi(box.sig_nbi, source, 1, &signal_word, 1, SHMEM_SIGNAL_ADD, next);     \
        shmem_put_signal_nbi(ctx, box.sig_nbi + 1, source + 1, 1, &signal_word, 1,                 \
                             SHMEM_SIGNAL_ADD, in_reverse(next));                                  \
        shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 4);                                    \
        shmem_ctx_quiet(ctx);                                                                      \
        shmem_barrier_all();                                                                       \
        const T *boxes[] = {box.put, box.nbi, box.iput, box.ibput, box.p, box.sig, box.sig_nbi};   \
        for (int i = 0; i < 7; i++)                                                                \
            EXPECT(boxes[i][0] == (T)before && boxes[i][1] == (T)(before + 1), #N " put %d", i);   \
        shmem_get(got, source, 1, next);                                                           \
        shmem_get(ctx, got + 1, source + 1, 1, in_reverse(next));                                  \
        shmem_get_nbi(got + 2, source + 2, 1, next);                                               \
        shmem_get_nbi(ctx, got + 3, source + 3, 1, in_reverse(next));                              \
        shmem_iget(got + 4, source + 4, 1, 1, 1, next);                                            \
        shmem_iget(ctx, got + 5, source + 5, 1, 1, 1, in_reverse(next));                           \
        shmem_ibget(got + 6, source + 6, 1, 1, 1, 1, next);                                        \
        shmem_ibget(ctx, got + 7, source + 7, 1, 1, 1, 1, in_reverse(next));                       \
        shmem_quiet();                                                                             \
        shmem_ctx_quiet(ctx);                                                                      \
        for (int i = 0; i < 8; i++)                                                                \
            EXPECT(got[i] == (T)(next + i), #N " get %d", i);                                      \
        EXPECT(shmem_g(source, next) == (T)next && shmem_g(&from[1], next) == (T)(next + 1),       \
               "g of " #N);                                                                        \
        EXPECT(shmem_g(ctx, source + 2, in_reverse(next)) == (T)(next + 2), "g of " #N);           \
        shmem_barrier_all();                                                                       \
    }

#define EXTENDED(N, T)                                                                             \
    static void extended_##N(void) {                                                               \
        static T word;                                                                             \
        const T *source = &word;                                                                   \
        T fetched[4] = {0};                                                                        \
        BOTH(atomic_set, next, &word, (T)5);                                                       \
        EXPECT(shmem_atomic_swap(&word, 6, next) == (T)5, "swap of " #N);                          \
        EXPECT(shmem_atomic_swap(ctx, &word, 7, in_reverse(next)) == (T)6, "swap of " #N);         \
        shmem_atomic_swap_nbi(&fetched[0], &word, 8, next);                                        \
        shmem_quiet();                                                                             \
        shmem_atomic_swap_nbi(ctx, &fetched[1], &word, 9, in_reverse(next));                       \
        shmem_ctx_quiet(ctx);                                                                      \
        shmem_atomic_fetch_nbi(&fetched[2], source, next);                                         \
        shmem_atomic_fetch_nbi(ctx, &fetched[3], &word, in_reverse(next));                         \
        shmem_quiet();                                                                             \
        shmem_ctx_quiet(ctx);                                                                      \
        EXPECT(fetched[0] == (T)7 && fetched[1] == (T)8 && fetched[2] == (T)9 &&                   \
               fetched[3] == (T)9, "nbi of " #N);                                                  \
        EXPECT(shmem_atomic_fetch(source, next) == (T)9, "fetch of " #N);                          \
        EXPECT(shmem_atomic_fetch(ctx, &word, in_reverse(next)) == (T)9, "fetch of " #N);          \
        shmem_barrier_all();                                                                       \
    }

#define STANDARD(N, T)                                                                             \
    static void standard_##N(void) {                                                               \
        static T word;                                                                             \
        T fetched[6] = {0};                                                                        \
        BOTH(atomic_add, next, &word, 10);                                                         \
        BOTH(atomic_inc, next, &word);                                                             \
        EXPECT(shmem_atomic_fetch_add(&word, 3, next) == 22, "fetch_add of " #N);                  \
        EXPECT(shmem_atomic_fetch_add(ctx, &word, 3, in_reverse(next)) == 25, "fetch_add of " #N); \
        EXPECT(shmem_atomic_fetch_inc(&word, next) == 28, "fetch_inc of " #N);                     \
        EXPECT(shmem_atomic_fetch_inc(ctx, &word, in_reverse(next)) == 29, "fetch_inc of " #N);    \
        EXPECT(shmem_atomic_compare_swap(&word, 30, 40, next) == 30, "compare_swap of " #N);       \
        EXPECT(shmem_atomic_compare_swap(ctx, &word, 30, 50, in_reverse(next)) == 40, #N);         \
        shmem_atomic_fetch_add_nbi(&fetched[0], &word, 1, next);                                   \
        shmem_quiet();                                                                             \
        shmem_atomic_fetch_add_nbi(ctx, &fetched[1], &word, 1, in_reverse(next));                  \
        shmem_ctx_quiet(ctx);                                                                      \
        shmem_atomic_fetch_inc_nbi(&fetched[2], &word, next);                                      \
        shmem_quiet();                                                                             \
        shmem_atomic_fetch_inc_nbi(ctx, &fetched[3], &word, in_reverse(next));                     \
        shmem_ctx_quiet(ctx);                                                                      \
        shmem_atomic_compare_swap_nbi(&fetched[4], &word, 44, 60, next);                           \
        shmem_quiet();                                                                             \
        shmem_atomic_compare_swap_nbi(ctx, &fetched[5], &word, 60, 70, in_reverse(next));          \
        shmem_ctx_quiet(ctx);                                                                      \
        for (int i = 0; i < 5; i++)                                                                \
            EXPECT(fetched[i] == (T)(40 + i), #N " nbi %d", i);                                    \
        EXPECT(fetched[5] == 60 && shmem_atomic_fetch(&word, next) == 70, #N);                     \
        shmem_barrier_all();                                                                       \
    }

#define BITS(N, T)                                                                                 \
    static void bits_##N(void) {                                                                   \
        static T word;                                                                             \
        T fetched[6] = {0};                                                                        \
        shmem_atomic_or(&word, 0xF0, next);                                                        \
        shmem_atomic_or(ctx, &word, 0x0F, in_reverse(next));                                       \
        shmem_atomic_and(&word, 0x7F, next);                                                       \
        shmem_atomic_and(ctx, &word, 0xFE, in_reverse(next));                                      \
        shmem_atomic_xor(&word, 0x0F, next);                                                       \
        shmem_atomic_xor(ctx, &word, 0xF0, in_reverse(next)); /* 0x7E ^ 0xFF = 0x81 */             \
        EXPECT(shmem_atomic_fetch_or(&word, 2, next) == 0x81, "fetch_or of " #N);                  \
        EXPECT(shmem_atomic_fetch_or(ctx, &word, 4, in_reverse(next)) == 0x83, #N);                \
        EXPECT(shmem_atomic_fetch_and(&word, 0x0F, next) == 0x87, "fetch_and of " #N);             \
        EXPECT(shmem_atomic_fetch_and(ctx, &word, 0xFE, in_reverse(next)) == 7, #N);               \
        EXPECT(shmem_atomic_fetch_xor(&word, 1, next) == 6, "fetch_xor of " #N);                   \
        EXPECT(shmem_atomic_fetch_xor(ctx, &word, 1, in_reverse(next)) == 7, #N);                  \
        shmem_atomic_fetch_or_nbi(&fetched[0], &word, 8, next);                                    \
        shmem_quiet();                                                                             \
        shmem_atomic_fetch_or_nbi(ctx, &fetched[1], &word, 1, in_reverse(next));                   \
        shmem_ctx_quiet(ctx);                                                                      \
        shmem_atomic_fetch_and_nbi(&fetched[2], &word, 7, next);                                   \
        shmem_quiet();                                                                             \
        shmem_atomic_fetch_and_nbi(ctx, &fetched[3], &word, 3, in_reverse(next));                  \
        shmem_ctx_quiet(ctx);                                                                      \
        shmem_atomic_fetch_xor_nbi(&fetched[4], &word, 1, next);                                   \
        shmem_quiet();                                                                             \
        shmem_atomic_fetch_xor_nbi(ctx, &fetched[5], &word, 2, in_reverse(next));                  \
        shmem_ctx_quiet(ctx);                                                                      \
        EXPECT(fetched[0] == 6 && fetched[1] == 14 && fetched[2] == 15 && fetched[3] == 7 &&       \
               fetched[4] == 3 && fetched[5] == 2, #N " nbi");                                     \
        EXPECT(shmem_atomic_fetch(&word, next) == 0, #N);                                          \
        shmem_barrier_all();                                                                       \
    }

#define WAIT(N, T)                                                                                 \
    static void wait_##N(void) {                                                                   \
        static T words[3];                                                                         \
        const T wanted[3] = {1, 2, 3};                                                             \
        size_t some[3];                                                                            \
        int status[3] = {0, 0, 1};                                                                 \
        for (int i = 0; i < 3; i++)                                                                \
            shmem_p(&words[i], i + 1, next);                                                       \
        shmem_wait_until(&words[0], SHMEM_CMP_EQ, 1);                                              \
        shmem_wait_until_all(words, 3, NULL, SHMEM_CMP_GT, 0);                                     \
        shmem_wait_until_all_vector(words, 3, NULL, SHMEM_CMP_EQ, wanted);                         \
        EXPECT(shmem_wait_until_any(words, 3, status, SHMEM_CMP_EQ, 2) == 1, "any of " #N);        \
        EXPECT(shmem_wait_until_any_vector(words, 3, status, SHMEM_CMP_GE, wanted) < 2, #N);       \
        EXPECT(shmem_wait_until_some(words, 3, some, status, SHMEM_CMP_GE, 2) == 1 &&              \
               some[0] == 1, "some of " #N);                                                       \
        EXPECT(shmem_wait_until_some_vector(words, 3, some, NULL, SHMEM_CMP_EQ, wanted) == 3, #N); \
        EXPECT(shmem_test(&words[2], SHMEM_CMP_EQ, 3), "test of " #N);                             \
        EXPECT(!shmem_test_all(words, 3, NULL, SHMEM_CMP_LT, 3), "test_all of " #N);               \
        EXPECT(shmem_test_all_vector(words, 3, status, SHMEM_CMP_EQ, wanted), #N);                 \
        EXPECT(shmem_test_any(words, 3, NULL, SHMEM_CMP_EQ, 9) == SIZE_MAX, "test_any of " #N);    \
        EXPECT(shmem_test_any_vector(words, 3, NULL, SHMEM_CMP_EQ, wanted) < 3, #N);               \
        EXPECT(shmem_test_some(words, 3, some, NULL, SHMEM_CMP_NE, 2) == 2, "test_some of " #N);   \
        EXPECT(shmem_test_some_vector(words, 3, some, status, SHMEM_CMP_LE, wanted) == 2, #N);     \
        shmem_barrier_all();                                                                       \
    }

/* On the team in reverse order: member r is PE npes - 1 - r. */
#define MOVE(N, T)                                                                                 \
    static void move_##N(void) {                                                                   \
        static T dest[5][64], source[64];                                                          \
        const T *from = source;                                                                    \
        for (int i = 0; i < 64; i++)                                                               \
            source[i] = (T)(me + i);                                                               \
        shmem_sync(reversed);                                                                      \
        EXPECT(shmem_broadcast(reversed, dest[0], from, 2, 0) == 0, "broadcast of " #N);           \
        EXPECT(shmem_collect(reversed, dest[1], from, 1) == 0, "collect of " #N);                  \
        EXPECT(shmem_fcollect(reversed, dest[2], source, 1) == 0, "fcollect of " #N);              \
        EXPECT(shmem_alltoall(reversed, dest[3], from, 1) == 0, "alltoall of " #N);                \
        EXPECT(shmem_alltoalls(reversed, dest[4], from, 2, 1, 1) == 0, "alltoalls of " #N);        \
        EXPECT(dest[0][1] == (T)npes, "broadcast of " #N);                                         \
        for (int i = 0; i < npes; i++) {                                                           \
            EXPECT(dest[1][i] == (T)in_reverse(i) && dest[2][i] == (T)in_reverse(i), #N);          \
            EXPECT(dest[3][i] == (T)(in_reverse(i) + in_reverse(me)) &&                            \
                   dest[4][2 * i] == dest[3][i], "alltoall(s) of " #N);                            \
        }                                                                                          \
        shmem_sync(reversed);                                                                      \
    }
#define ORDER(N, T)                                                                                \
    static void order_##N(void) {                                                                  \
        static T dest[2], source;                                                                  \
        source = (T)(me + 1);                                                                      \
        shmem_sync(SHMEM_TEAM_WORLD);                                                              \
        EXPECT(shmem_max_reduce(reversed, &dest[0], &source, 1) == 0 && dest[0] == (T)npes, #N);   \
        EXPECT(shmem_min_reduce(reversed, &dest[1], &source, 1) == 0 && dest[1] == (T)1, #N);      \
        shmem_sync(SHMEM_TEAM_WORLD);                                                              \
    }
#define SUM(N, T)                                                                                  \
    static void sum_##N(void) {                                                                    \
        static T dest[4], source;                                                                  \
        T sum = 0, behind = 0, product = 1;                                                        \
        for (int pe = 0; pe < npes; pe++) {                                                        \
            sum = (T)(sum + (T)(pe + 1));                                                          \
            product = (T)(product * (T)(pe % 2 + 1));                                              \
            if (pe > me) /* PEs before this one in reverse order */                                    \
                behind = (T)(behind + (T)(pe + 1));                                                \
        }                                                                                          \
        source = (T)(me + 1);                                                                      \
        shmem_sync(SHMEM_TEAM_WORLD);                                                              \
        EXPECT(shmem_sum_reduce(reversed, &dest[0], &source, 1) == 0 && dest[0] == sum, #N);       \
        EXPECT(shmem_sum_exscan(reversed, &dest[1], &source, 1) == 0 && dest[1] == behind, #N);    \
        EXPECT(shmem_sum_inscan(reversed, &dest[2], &source, 1) == 0 &&                            \
               dest[2] == (T)(behind + source), #N);                                               \
        source = (T)(me % 2 + 1);                                                                  \
        EXPECT(shmem_prod_reduce(reversed, &dest[3], &source, 1) == 0 && dest[3] == product, #N);  \
        shmem_sync(SHMEM_TEAM_WORLD);                                                              \
    }
#define LOGIC(N, T)                                                                                \
    static void logic_##N(void) {                                                                  \
        static T dest[3], source;                                                                  \
        T all_or = 0, all_and = (T)~(T)0, all_xor = 0;                                             \
        for (int pe = 0; pe < npes; pe++) {                                                        \
            all_or = (T)(all_or | (T)(pe + 17));                                                   \
            all_and = (T)(all_and & (T)(pe + 17));                                                 \
            all_xor = (T)(all_xor ^ (T)(pe + 17));                                                 \
        }                                                                                          \
        source = (T)(me + 17);                                                                     \
        shmem_sync(SHMEM_TEAM_WORLD);                                                              \
        EXPECT(shmem_or_reduce(reversed, &dest[0], &source, 1) == 0 && dest[0] == all_or, #N);     \
        EXPECT(shmem_and_reduce(reversed, &dest[1], &source, 1) == 0 && dest[1] == all_and, #N);   \
        EXPECT(shmem_xor_reduce(reversed, &dest[2], &source, 1) == 0 && dest[2] == all_xor, #N);   \
        shmem_sync(SHMEM_TEAM_WORLD);                                                              \
    }
ALL(RMA)
WORDS(EXTENDED) REALS(EXTENDED)
WORDS(STANDARD)
BITWISE(BITS)
WORDS(WAIT)
WAIT(short, short)
WAIT(ushort, unsigned short)
ALL(MOVE)
ALL(ORDER)
ALL(SUM) COMPLEX(SUM)
BITWISE(LOGIC) NARROW(LOGIC)
#define CALL_RMA(N, T)      rma_##N();
#define CALL_EXTENDED(N, T) extended_##N();
#define CALL_STANDARD(N, T) standard_##N();
#define CALL_BITS(N, T)     bits_##N();
#define CALL_WAIT(N, T)     wait_##N();
#define CALL_MOVE(N, T)     move_##N();
#define CALL_ORDER(N, T)    order_##N();
#define CALL_SUM(N, T)      sum_##N();
#define CALL_LOGIC(N, T)    logic_##N();
    /* clang-format on */

    /* Both a function and a generic name: one has three arguments, the other four. */
    static void signals(void) {
    static uint64_t word;
    shmem_signal_add(&word, 3, next);
    shmem_signal_add(ctx, &word, 4, in_reverse(next));
    shmem_signal_wait_until(&word, SHMEM_CMP_EQ, 7);
    shmem_barrier_all();
    shmem_signal_set(&word, 1, next);
    shmem_signal_wait_until(&word, SHMEM_CMP_EQ, 1);
    shmem_barrier_all();
    shmem_signal_set(ctx, &word, 2, in_reverse(next));
    shmem_signal_wait_until(&word, SHMEM_CMP_EQ, 2);
    (shmem_signal_add)(&word, 0, next);
    EXPECT(shmem_signal_fetch(&word) == 2, "%llu", (unsigned long long)word);
    shmem_barrier_all();
}

/* A type of <stdint.h> is a base type; an array decays to a pointer to its first element. */
static void other_names(void) {
    static struct {
        char tag;
        int32_t number;
        int8_t bytes[4];
        size_t size;
    } record;
    static short narrow;
    int8_t bytes[4] = {1, 2, 3, (int8_t)me};
    shmem_put(&record.bytes[0], bytes, 4, next);
    shmem_atomic_add(&record.number, me + 1, next);
    shmem_atomic_or(&record.number, 1 << 20, next);
    shmem_p(&record.size, 1, next);
    shmem_p(ctx, &narrow, -5, in_reverse(next));
    shmem_wait_until(&narrow, SHMEM_CMP_LT, 0);
    shmem_barrier_all();
    EXPECT(record.bytes[3] == before && record.number == (before + 1) + (1 << 20), "%d",
           record.number);
    EXPECT(record.size == 1 && narrow == -5 && shmem_test(&narrow, SHMEM_CMP_EQ, -5), "%d", narrow);
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    ring_start();
    shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, NULL, 0, &reversed);
    shmem_team_create_ctx(reversed, 0, &ctx);
    tap_case("put and get");
    ALL(CALL_RMA)
    tap_case("fetch, set and swap");
    WORDS(CALL_EXTENDED) REALS(CALL_EXTENDED) tap_case("add, inc and compare_swap");
    WORDS(CALL_STANDARD)
    tap_case("and, or and xor");
    BITWISE(CALL_BITS)
    tap_case("waiting and testing");
    WORDS(CALL_WAIT)
    wait_short();
    wait_ushort();
    tap_case("signals");
    signals();
    tap_case("collectives that move data");
    ALL(CALL_MOVE)
    tap_case("reductions and scans");
    ALL(CALL_ORDER)
    ALL(CALL_SUM)
    COMPLEX(CALL_SUM)
    BITWISE(CALL_LOGIC) NARROW(CALL_LOGIC) tap_case("arrays, members, names of <stdint.h>");
    other_names();
    shmem_ctx_destroy(ctx);
    shmem_team_destroy(reversed);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
