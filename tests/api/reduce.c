/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: reductions and scans of every type and operation, on teams of all shapes, in place
 * and not, against a model that takes one element after the other in the order of the members:
 * every bit has to be the same, also where sums round. PEs: 1 2 3 4 7 */
#include <shmem.h>
#include <complex.h>
#include <float.h>
#include <stdbool.h>
#include <string.h>
#include "tap.h"
#include "api/model.h"
#include "conformance/groups.h"

enum { BYTES = 96 << 10, GUARD = 64, ROUNDS = 12, ELEM_BYTES_MAX = 16 };

typedef int routine(shmem_team_t team, void *dest, const void *source, size_t nelems);
typedef void combination(void *so_far, const void *next);

/* A number of a type: any bits of an integer, and reals of different magnitudes that lose bits when
 * they are added, yet are close enough to one to be multiplied. */
typedef void make(struct random *random, void *element);

static uint64_t any_integer(struct random *random) {
    return random_next(random);
}

static double any_real(struct random *random) {
    double mantissa = 1 + (double)(random_next(random) >> 11) * 0x1p-53;
    int exponent = (int)random_below(random, 13) - 6;
    double magnitude = exponent < 0 ? mantissa / (1 << -exponent) : mantissa * (1 << exponent);
    return random_below(random, 2) ? magnitude : -magnitude;
}

static float complex any_complexf(struct random *random) {
    float real = (float)any_real(random), imaginary = (float)any_real(random);
    return real + imaginary * (float complex)I;
}

static double complex any_complexd(struct random *random) {
    double real = any_real(random), imaginary = any_real(random);
    return real + imaginary * I;
}

/* How many bytes of an element mean something. */
#define MEANT(T) \
    (_Generic((T){0}, long double : 1, default : 0) && LDBL_MANT_DIG == 64 ? (size_t)10 : sizeof(T))

enum kind { REDUCE, INCLUSIVE, EXCLUSIVE };

struct row {
    const char *name;
    size_t bytes, meant;
    enum kind kind;
    routine *call;
    combination *combine;
    make *make;
};

/* clang-format off */
#define MAKE(N, T, FROM)                                                                           \
    static void make_##N(struct random *random, void *element) {                                   \
        T value = (T)FROM(random);                                                                 \
        memcpy(element, &value, sizeof value);                                                     \
    }
#define MAKE_INTEGER(N, T, _) MAKE(N, T, any_integer)
#define MAKE_REAL(N, T, _)    MAKE(N, T, any_real)
SHMEM_AMO_TYPES(MAKE_INTEGER, _)
SHMEM_FIXED_NARROW(MAKE_INTEGER, _)
SHMEM_CHARS(MAKE_INTEGER, _)
SHMEM_SHORTS(MAKE_INTEGER, _)
SHMEM_REALS(MAKE_REAL, _)
MAKE(longdouble, long double, any_real)
MAKE(complexf, float complex, any_complexf)
MAKE(complexd, double complex, any_complexd)

/* Signed integers wrap around: sums and products are made in the unsigned type of most bits. */
#define WIDE(T) _Generic((T){0}, float: (T){0}, double: (T){0}, long double: (T){0},               \
                         float complex: (T){0}, double complex: (T){0}, default: 0ull)
#define CALL(NAME)                                                                                 \
    static int call_##NAME(shmem_team_t team, void *dest, const void *source, size_t nelems) {     \
        return shmem_##NAME(team, dest, source, nelems);                                           \
    }
#define COMBINE(NAME, T, VALUE)                                                                    \
    static void combine_##NAME(void *so_far, const void *next) {                                   \
        T a, b;                                                                                    \
        memcpy(&a, so_far, sizeof a);                                                              \
        memcpy(&b, next, sizeof b);                                                                \
        a = (T)(VALUE);                                                                            \
        memcpy(so_far, &a, sizeof a);                                                              \
    }
#define BITWISE(N, T, _)                                                                           \
    CALL(N##_and_reduce) COMBINE(N##_and, T, a & b)                                                \
    CALL(N##_or_reduce)  COMBINE(N##_or, T, a | b)                                                 \
    CALL(N##_xor_reduce) COMBINE(N##_xor, T, a ^ b)
#define ORDERED(N, T, _)                                                                           \
    CALL(N##_max_reduce) COMBINE(N##_max, T, a > b ? a : b)                                        \
    CALL(N##_min_reduce) COMBINE(N##_min, T, a < b ? a : b)
#define SUM(T)  (__typeof__(WIDE(T)))a + (__typeof__(WIDE(T)))b
#define PROD(T) (__typeof__(WIDE(T)))a * (__typeof__(WIDE(T)))b
#define ARITHMETIC(N, T, _)                                                                        \
    CALL(N##_sum_reduce) COMBINE(N##_sum, T, SUM(T))                                               \
    CALL(N##_prod_reduce) COMBINE(N##_prod, T, PROD(T))                                            \
    CALL(N##_sum_inscan) CALL(N##_sum_exscan)
SHMEM_BITWISE_TYPES(BITWISE, _)
SHMEM_RMA_TYPES(ORDERED, _)
SHMEM_ARITHMETIC_TYPES(ARITHMETIC, _)

#define ROW(N, T, OP, KIND, CALL) {#CALL, sizeof(T), MEANT(T), KIND, call_##CALL, combine_##N##_##OP, make_##N},
#define BITWISE_ROWS(N, T, _) ROW(N, T, and, REDUCE, N##_and_reduce)                               \
    ROW(N, T, or, REDUCE, N##_or_reduce) ROW(N, T, xor, REDUCE, N##_xor_reduce)
#define ORDERED_ROWS(N, T, _) ROW(N, T, max, REDUCE, N##_max_reduce)                               \
    ROW(N, T, min, REDUCE, N##_min_reduce)
#define ARITHMETIC_ROWS(N, T, _) ROW(N, T, sum, REDUCE, N##_sum_reduce)                            \
    ROW(N, T, prod, REDUCE, N##_prod_reduce)
#define SCAN_ROWS(N, T, _) ROW(N, T, sum, INCLUSIVE, N##_sum_inscan)                               \
    ROW(N, T, sum, EXCLUSIVE, N##_sum_exscan)
static const struct row bitwise[] = {SHMEM_BITWISE_TYPES(BITWISE_ROWS, _) {0}};
static const struct row ordered[] = {SHMEM_RMA_TYPES(ORDERED_ROWS, _) {0}};
static const struct row arithmetic[] = {SHMEM_ARITHMETIC_TYPES(ARITHMETIC_ROWS, _) {0}};
static const struct row scans[] = {SHMEM_ARITHMETIC_TYPES(SCAN_ROWS, _) {0}};
/* clang-format on */

static unsigned char static_dest[BYTES + 2 * GUARD] __attribute__((aligned(16)));
static unsigned char static_source[BYTES + 2 * GUARD] __attribute__((aligned(16)));
static unsigned char *heap_dest, *heap_source;
static unsigned char expected[BYTES], peer[BYTES];
static uint64_t seed;

static void source_of(const struct row *row, int world_pe, unsigned char *source, size_t nelems) {
    struct random random = random_of(seed, world_pe);
    for (size_t i = 0; i < nelems; i++)
        row->make(&random, source + i * row->bytes);
}

/* How many members' sources, from the first on, make this member's result. */
static int sources_of_mine(const struct row *row, const struct group *group) {
    return row->kind == REDUCE      ? group->npes
           : row->kind == INCLUSIVE ? group->my_pe + 1
                                    : group->my_pe;
}

static void expect(const struct row *row, const struct group *group, size_t nelems) {
    int nsources = sources_of_mine(row, group);
    memset(expected, 0, nelems * row->bytes);
    for (int member = 0; member < nsources; member++) {
        source_of(row, group->world[member], member == 0 ? expected : peer, nelems);
        for (size_t i = 0; i < nelems && member > 0; i++)
            row->combine(expected + i * row->bytes, peer + i * row->bytes);
    }
}

static bool untouched(const unsigned char *guard) {
    for (int i = 0; i < GUARD; i++)
        if (guard[i] != 0xA5)
            return false;
    return true;
}

static void compare(const struct row *row, const struct group *group, size_t nelems,
                    const unsigned char *dest, bool in_place) {
    size_t wrong = 0;
    while (wrong < nelems &&
           memcmp(dest + wrong * row->bytes, expected + wrong * row->bytes, row->meant) == 0)
        wrong++;
    EXPECT(wrong == nelems, "%s of %zu on %s%s: element %zu is wrong", row->name, nelems,
           group->name, in_place ? " in place" : "", wrong);
    EXPECT(untouched(dest - GUARD) && untouched(dest + nelems * row->bytes),
           "%s of %zu on %s: written beyond dest", row->name, nelems, group->name);
}

static size_t random_nelems(struct random *random, const struct row *row) {
    static const size_t limits[] = {2, 9, 60, 60, 300, 2100, BYTES};
    size_t most = BYTES / row->bytes;
    size_t limit = limits[random_below(random, sizeof limits / sizeof *limits)];
    return random_below(random, limit < most ? limit : most) + 1;
}

static void try(const struct row *row, const struct group *group) {
    struct random common = random_of(++seed, -2 - group->world[0]);
    size_t nelems = random_nelems(&common, row);
    bool in_heap = random_below(&common, 2), in_place = random_below(&common, 2);
    unsigned char *source = in_heap ? heap_source : static_source;
    unsigned char *dest = in_heap ? heap_dest : static_dest;
    if (in_place)
        dest = source;
    memset(dest, 0xA5, BYTES + 2 * GUARD);
    source_of(row, shmem_my_pe(), source + GUARD, nelems);
    shmem_team_sync(group->team);
    int result = row->call(group->team, dest + GUARD, source + GUARD, nelems);
    EXPECT(result == 0, "%s: %d", row->name, result);
    expect(row, group, nelems);
    compare(row, group, nelems, dest + GUARD, in_place);
}

static void check(const struct group *groups, const char *name, const struct row *rows) {
    tap_case(name);
    for (int round = 0; round < ROUNDS; round++)
        for (int row = 0; rows[row].name; row++)
            try(&rows[row], &groups[(row + round * 3) % GROUPS]);
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    tap_start(shmem_my_pe());
    static struct group groups[GROUPS];
    groups_make(groups);
    heap_dest = shmem_align(16, sizeof static_dest);
    heap_source = shmem_align(16, sizeof static_source);
    check(groups, "and, or, xor", bitwise);
    check(groups, "max, min", ordered);
    check(groups, "sum, prod", arithmetic);
    check(groups, "inclusive and exclusive scans", scans);
    groups_drop(groups);
    shmem_finalize();
    return tap_finish();
}
