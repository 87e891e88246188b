/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics of every type: each operation, with and without a context, blocking and not, against a
 * model in masked 64-bit arithmetic; then all PEs at once on the same words, where only atomicity
 * makes the tickets, sums and sets come out right. */
#include <shmem.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "tap.h"
#include "api/amo_model.h"
#include "api/model.h"

enum form { SILENT, FETCHING, NBI, FORMS };

/* Calls a routine of a type. Returns the fetched word, widened, or 0 if the form fetches nothing.
 */
typedef uint64_t call(shmem_ctx_t ctx, enum amo_operation operation, enum form form, void *dest,
                      uint64_t cond, uint64_t value, int pe);

struct type {
    const char *name;
    size_t bytes;
    call *call, *call_bitwise, *call_extended;
};

/* clang-format off */
/* Calls the form without a context if ctx is SHMEM_CTX_INVALID. */
#define EITHER(NAME, ...)                                                                          \
    (ctx == SHMEM_CTX_INVALID ? shmem_##NAME(__VA_ARGS__) : shmem_ctx_##NAME(ctx, __VA_ARGS__))
#define BY_FORM(N, OP, ...)                                                                        \
    if (form == SILENT)                                                                            \
        EITHER(N##_atomic_##OP, d, __VA_ARGS__);                                                   \
    else if (form == FETCHING)                                                                     \
        fetched = EITHER(N##_atomic_fetch_##OP, d, __VA_ARGS__);                                   \
    else                                                                                           \
        EITHER(N##_atomic_fetch_##OP##_nbi, &fetched, d, __VA_ARGS__)
#define STANDARD(N, T, _)                                                                          \
    static uint64_t standard_##N(shmem_ctx_t ctx, enum amo_operation operation, enum form form,        \
                                 void *dest, uint64_t cond, uint64_t value, int pe) {              \
        T *d = dest, fetched = 0;                                                                  \
        if (operation == ADD) {                                                                    \
            BY_FORM(N, add, (T)value, pe);                                                         \
        } else if (operation == INC) {                                                             \
            BY_FORM(N, inc, pe);                                                                   \
        } else if (form == NBI)                                                                    \
            EITHER(N##_atomic_compare_swap_nbi, &fetched, d, (T)cond, (T)value, pe);               \
        else                                                                                       \
            fetched = EITHER(N##_atomic_compare_swap, d, (T)cond, (T)value, pe);                   \
        ctx == SHMEM_CTX_INVALID ? shmem_quiet() : shmem_ctx_quiet(ctx);                           \
        return (uint64_t)fetched;                                                                  \
    }
#define BITWISE(N, T, _)                                                                           \
    static uint64_t bitwise_##N(shmem_ctx_t ctx, enum amo_operation operation, enum form form,         \
                                void *dest, uint64_t cond, uint64_t value, int pe) {               \
        T *d = dest, fetched = 0;                                                                  \
        (void)cond;                                                                                \
        if (operation == AND) {                                                                    \
            BY_FORM(N, and, (T)value, pe);                                                         \
        } else if (operation == OR) {                                                              \
            BY_FORM(N, or, (T)value, pe);                                                          \
        } else {                                                                                   \
            BY_FORM(N, xor, (T)value, pe);                                                         \
        }                                                                                          \
        ctx == SHMEM_CTX_INVALID ? shmem_quiet() : shmem_ctx_quiet(ctx);                           \
        return (uint64_t)fetched;                                                                  \
    }
#define EXTENDED(N, T, _)                                                                          \
    static uint64_t extended_##N(shmem_ctx_t ctx, enum amo_operation operation, enum form form,        \
                                 void *dest, uint64_t cond, uint64_t value, int pe) {              \
        T *d = dest, fetched = 0;                                                                  \
        (void)cond;                                                                                \
        if (operation == SET)                                                                      \
            EITHER(N##_atomic_set, d, (T)value, pe);                                               \
        else if (operation == SWAP && form == NBI)                                                 \
            EITHER(N##_atomic_swap_nbi, &fetched, d, (T)value, pe);                                \
        else if (operation == SWAP)                                                                \
            fetched = EITHER(N##_atomic_swap, d, (T)value, pe);                                    \
        else if (form == NBI)                                                                      \
            EITHER(N##_atomic_fetch_nbi, &fetched, d, pe);                                         \
        else                                                                                       \
            fetched = EITHER(N##_atomic_fetch, d, pe);                                             \
        ctx == SHMEM_CTX_INVALID ? shmem_quiet() : shmem_ctx_quiet(ctx);                           \
        return (uint64_t)fetched;                                                                  \
    }
SHMEM_AMO_TYPES(STANDARD, _)
SHMEM_AMO_BITWISE_TYPES(BITWISE, _)
SHMEM_AMO_EXTENDED_TYPES(EXTENDED, _)

#define STANDARD_ROW(N, T, _) {#N, sizeof(T), standard_##N, NULL, extended_##N},
#define BITWISE_ROW(N, T, _)  {#N, sizeof(T), standard_##N, bitwise_##N, extended_##N},
#define REAL_ROW(N, T, _)     {#N, sizeof(T), NULL, NULL, extended_##N},
/* The bitwise types are listed twice, which does no harm. */
static const struct type types[] = {
    SHMEM_AMO_TYPES(STANDARD_ROW, _) SHMEM_AMO_BITWISE_TYPES(BITWISE_ROW, _)
    SHMEM_REALS(REAL_ROW, _)
};
/* clang-format on */
enum { TYPES = sizeof types / sizeof *types };

static uint64_t words[TYPES];
static uint32_t marks[1 << 14];
static int me, npes;

static call *routine_of(const struct type *type, enum amo_operation operation) {
    if (operation >= AND)
        return type->call_bitwise;
    return operation <= SWAP ? type->call_extended : type->call;
}

/* Random operations of this PE on the next PE's word; reals get values that float represents
 * exactly. */
static void one_type(size_t t, shmem_ctx_t ctx, bool reversed) {
    const struct type *type = &types[t];
    bool real = !type->call;
    uint64_t mask = real ? 0xFFFF : type->bytes == 8 ? UINT64_MAX : UINT32_MAX, word = 0;
    int other = (me + 1) % npes, pe = reversed ? npes - 1 - other : other;
    struct random random = random_of(t + 17, me);
    type->call_extended(ctx, SET, SILENT, &words[t], 0, 0, pe);
    for (int round = 0; round < 200; round++) {
        enum amo_operation operation = (enum amo_operation)random_below(&random, AMO_OPERATIONS);
        enum form form = (enum form)random_below(&random, FORMS);
        uint64_t value = random_next(&random) & mask;
        uint64_t cond = random_below(&random, 2) ? word : random_next(&random) & mask;
        call *routine = routine_of(type, operation);
        if (!routine)
            continue;
        uint64_t fetched = routine(ctx, operation, form, &words[t], cond, value, pe) & mask;
        bool fetches = operation != SET && (form != SILENT || operation <= COMPARE_SWAP);
        EXPECT(fetched == (fetches ? word : 0), "%s operation %d form %d: %#llx, not %#llx",
               type->name, operation, form, (unsigned long long)fetched, (unsigned long long)word);
        word = amo_result(operation, word, cond, value) & mask;
        uint64_t now = type->call_extended(ctx, FETCH, FETCHING, &words[t], 0, 0, pe) & mask;
        EXPECT(now == word, "%s operation %d form %d left %#llx, not %#llx", type->name, operation,
               form, (unsigned long long)now, (unsigned long long)word);
    }
}

static void every_type(const char *name, shmem_ctx_t ctx, bool reversed) {
    tap_case(name);
    for (size_t t = 0; t < TYPES; t++)
        one_type(t, ctx, reversed);
    shmem_barrier_all();
}

/* A 4-byte atomic leaves the words before and after unchanged. */
static void neighbours(void) {
    static uint32_t three[3];
    three[0] = three[2] = UINT32_MAX;
    shmem_barrier_all();
    for (int i = 0; i < 1000; i++)
        shmem_uint32_atomic_add(&three[1], UINT32_MAX, (me + 1) % npes);
    shmem_barrier_all();
    EXPECT(three[0] == UINT32_MAX && three[2] == UINT32_MAX, "%x %x", three[0], three[2]);
    EXPECT(three[1] == (uint32_t)-1000, "%x", three[1]);
}

/* Every ticket 0 .. n-1 is drawn once: by fetch_add, fetch_inc and compare_swap, of two widths. */
static void tickets(void) {
    enum { DRAWS = 300 };
    static int32_t narrow;
    static uint64_t wide;
    shmem_barrier_all();
    for (int i = 0; i < DRAWS; i++) {
        int32_t drawn = i % 2 ? shmem_int32_atomic_fetch_inc(&narrow, 0)
                              : shmem_int_atomic_fetch_add((int *)&narrow, 1, 0);
        shmem_uint32_atomic_inc(&marks[drawn], npes - 1);
        uint64_t seen = shmem_uint64_atomic_fetch(&wide, 0), was;
        while ((was = shmem_uint64_atomic_compare_swap(&wide, seen, seen + 1, 0)) != seen)
            seen = was;
        shmem_uint32_atomic_add(&marks[8192 + seen], 1, npes - 1);
    }
    shmem_barrier_all();
    if (me == npes - 1)
        for (int i = 0; i < DRAWS * npes; i++)
            EXPECT(marks[i] == 1 && marks[8192 + i] == 1, "ticket %d: %u and %u times", i, marks[i],
                   marks[8192 + i]);
    EXPECT(me != 0 || (narrow == DRAWS * npes && wide == (uint64_t)(DRAWS * npes)), "%d and %llu",
           narrow, (unsigned long long)wide);
}

/* Additions by all PEs, and toggles of one bit each, on every PE's words. */
static void crowd(void) {
    enum { TIMES = 2000 };
    static long sum;
    static uint64_t bits, ones;
    static double real;
    shmem_barrier_all();
    for (int i = 0; i < TIMES; i++)
        for (int pe = 0; pe < npes; pe++) {
            shmem_long_atomic_add(&sum, me + 1, pe);
            shmem_uint64_atomic_xor(&bits, UINT64_C(1) << me, pe);
            shmem_uint64_atomic_or(&ones, UINT64_C(1) << (i % 8 * 8 + me), pe);
            shmem_double_atomic_set(&real, 0.5 + me, pe);
        }
    for (int pe = 0; pe < npes; pe++)
        shmem_uint64_atomic_xor(&bits, UINT64_C(1) << me, pe);
    shmem_barrier_all();
    uint64_t all = 0;
    for (int pe = 0; pe < npes; pe++)
        all |= UINT64_C(1) << pe;
    EXPECT(sum == (long)TIMES * npes * (npes + 1) / 2, "sum %ld", sum);
    EXPECT(bits == all, "xor %#llx", (unsigned long long)bits);
    EXPECT(ones == all * UINT64_C(0x0101010101010101), "or %#llx", (unsigned long long)ones);
    EXPECT(real >= 0.5 && real < npes, "set %g", real);
}

/* Each value swapped in is fetched once, or is the final one. */
static void swaps(void) {
    enum { SWAPS = 500 };
    static uint64_t slot;
    static uint64_t in, out;
    shmem_barrier_all();
    for (int i = 0; i < SWAPS; i++) {
        uint64_t mine = (uint64_t)(me * SWAPS + i + 1) * UINT64_C(0x9E3779B97F4A7C15);
        shmem_uint64_atomic_add(&in, mine, 0);
        shmem_uint64_atomic_add(&out, shmem_uint64_atomic_swap(&slot, mine, 0), 0);
    }
    shmem_barrier_all();
    EXPECT(me != 0 || in == out + slot, "%#llx went in, %#llx came out", (unsigned long long)in,
           (unsigned long long)(out + slot));
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    shmem_team_t team;
    shmem_ctx_t reversed;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, NULL, 0, &team);
    shmem_team_create_ctx(team, SHMEM_CTX_SERIALIZED, &reversed);
    every_type("every operation and type without a context", SHMEM_CTX_INVALID, false);
    every_type("every operation and type in the default context", SHMEM_CTX_DEFAULT, false);
    every_type("every operation and type in a team's context", reversed, true);
    tap_case("neighbouring words stay");
    neighbours();
    tap_case("contended tickets");
    tickets();
    tap_case("contended adds, sets and bits");
    crowd();
    tap_case("contended swaps");
    swaps();
    shmem_ctx_destroy(reversed);
    shmem_team_destroy(team);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
