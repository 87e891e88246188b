/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: reductions and scans of every type and operation, on teams of all shapes, in place
 * and not, against a model that combines one element after the other in the order of the members:
 * every bit must be equal, also if sums are rounded. PEs: 1 2 3 4 7 */
#include <shmem.h>
#include <stdbool.h>
#include <string.h>
#include "tap.h"
#include "conformance/groups.h"
#include "api/numbers.h"

enum { BYTES = 96 << 10, GUARD = 64, ROUNDS = 12, ELEM_BYTES_MAX = 16 };

typedef int routine(shmem_team_t team, void *dest, const void *source, size_t nelems);
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
#define CALL(NAME)                                                                                 \
    static int call_##NAME(shmem_team_t team, void *dest, const void *source, size_t nelems) {     \
        return shmem_##NAME(team, dest, source, nelems);                                           \
    }
#define BITWISE(N, T, _) CALL(N##_and_reduce) CALL(N##_or_reduce) CALL(N##_xor_reduce)
#define ORDERED(N, T, _) CALL(N##_max_reduce) CALL(N##_min_reduce)
#define ARITHMETIC(N, T, _)                                                                        \
    CALL(N##_sum_reduce) CALL(N##_prod_reduce) CALL(N##_sum_inscan) CALL(N##_sum_exscan)
SHMEM_BITWISE_TYPES(BITWISE, _)
SHMEM_RMA_TYPES(ORDERED, _)
SHMEM_ARITHMETIC_TYPES(ARITHMETIC, _)

#define ROW(N, T, OP, KIND, CALL)                                                                  \
    {#CALL, sizeof(T), MEANT(T), KIND, call_##CALL, combine_##N##_##OP, make_##N},
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

/* Returns how many members' sources, from the first on, contribute to this member's result. */
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
