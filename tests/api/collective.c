/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: broadcast, collect, fcollect, alltoall and alltoalls of every type, on teams of all
 * shapes, in the heap and in static data. Sources and sizes are random numbers that every PE can
 * compute for every other one; the whole of dest and the memory around it is compared with a model
 * that copies single elements. PEs: 1 2 3 4 7 */
#include <errno.h>
#include <shmem.h>
#include <stdbool.h>
#include <string.h>
#include <weft.h>
#include "tap.h"
#include "conformance/groups.h"
#include "api/model.h"

enum { BYTES = 128 << 10, GUARD = 64, ROUNDS = 4 };

typedef int copy(shmem_team_t team, void *dest, const void *source, size_t nelems);
typedef int copy_rooted(shmem_team_t team, void *dest, const void *source, size_t nelems, int root);
typedef int copy_strided(shmem_team_t team, void *dest, const void *source, ptrdiff_t dst,
                         ptrdiff_t sst, size_t nelems);

struct routines {
    const char *name;
    size_t bytes; /* of an element */
    copy_rooted *broadcast;
    copy *collect, *fcollect, *alltoall;
    copy_strided *alltoalls;
};

/* clang-format off */
#define COPY(NAME)                                                                                 \
    static int call_##NAME(shmem_team_t team, void *dest, const void *source, size_t nelems) {     \
        return shmem_##NAME(team, dest, source, nelems);                                           \
    }
#define ROOTED(NAME)                                                                               \
    static int call_##NAME(shmem_team_t team, void *dest, const void *source, size_t nelems,       \
                           int root) {                                                             \
        return shmem_##NAME(team, dest, source, nelems, root);                                     \
    }
#define STRIDED(NAME)                                                                              \
    static int call_##NAME(shmem_team_t team, void *dest, const void *source, ptrdiff_t dst,       \
                           ptrdiff_t sst, size_t nelems) {                                         \
        return shmem_##NAME(team, dest, source, dst, sst, nelems);                                 \
    }
#define TYPED(N, T, _)                                                                             \
    ROOTED(N##_broadcast) COPY(N##_collect) COPY(N##_fcollect) COPY(N##_alltoall)                  \
    STRIDED(N##_alltoalls)
SHMEM_RMA_TYPES(TYPED, _)
ROOTED(broadcastmem) COPY(collectmem) COPY(fcollectmem) COPY(alltoallmem) STRIDED(alltoallsmem)

#define ROW(N, T, _)                                                                               \
    {#N, sizeof(T), call_##N##_broadcast, call_##N##_collect, call_##N##_fcollect,                 \
     call_##N##_alltoall, call_##N##_alltoalls},
static const struct routines routines[] = {
    SHMEM_RMA_TYPES(ROW, _)
    {"mem", 1, call_broadcastmem, call_collectmem, call_fcollectmem, call_alltoallmem,
     call_alltoallsmem},
};
/* clang-format on */
enum { NROUTINES = sizeof routines / sizeof *routines };

static unsigned char static_dest[BYTES + 2 * GUARD] __attribute__((aligned(16)));
static unsigned char static_source[BYTES] __attribute__((aligned(16)));
static unsigned char *heap_dest, *heap_source;
static unsigned char expected[BYTES + 2 * GUARD], peer[BYTES];
static uint64_t seed;

/* A call: the facts that all members know, and this member's arrays. */
struct call {
    const struct group *group;
    const struct routines *routines;
    struct random common; /* equal on all members */
    size_t bytes;         /* of an element */
    unsigned char *dest, *source;
};

/* Returns a size in elements, such that `arrays` arrays of it fit: often tiny, sometimes large. */
static size_t random_nelems(struct call *call, struct random *random, size_t arrays) {
    static const size_t limits[] = {2, 9, 60, 300, 2100, BYTES};
    size_t most = BYTES / call->bytes / arrays;
    size_t limit = limits[random_below(random, sizeof limits / sizeof *limits)];
    return random_below(random, limit < most ? limit : most) + (limit > 9);
}

static void source_of(int world_pe, unsigned char *source) {
    struct random random = random_of(seed, world_pe);
    random_fill(&random, source, BYTES);
}

static void begin(struct call *call, const struct group *group, const struct routines *row) {
    bool in_heap = ++seed % 2;
    *call = (struct call){group,
                          row,
                          random_of(seed, -2 - group->world[0]),
                          row->bytes,
                          in_heap ? heap_dest : static_dest,
                          in_heap ? heap_source : static_source};
    source_of(shmem_my_pe(), call->source);
    memset(call->dest, 0xA5, BYTES + 2 * GUARD);
    memset(expected, 0xA5, sizeof expected);
    shmem_team_sync(group->team);
}

/* Stores an expected element: expected[at] = source[from] of a member. */
static void expect(const struct call *call, size_t at, const unsigned char *source, size_t from) {
    memcpy(expected + GUARD + at * call->bytes, source + from * call->bytes, call->bytes);
}

static void compare(const struct call *call, const char *what, size_t nelems, int result) {
    size_t wrong = 0;
    while (wrong < sizeof expected && call->dest[wrong] == expected[wrong])
        wrong++;
    EXPECT(result == 0, "%s %s: %d", call->routines->name, what, result);
    EXPECT(wrong == sizeof expected, "%s %s of %zu on %s: byte %td is %d, not %d",
           call->routines->name, what, nelems, call->group->name, (ptrdiff_t)wrong - GUARD,
           call->dest[wrong], expected[wrong]);
}

static void broadcast(struct call *call) {
    size_t nelems = random_nelems(call, &call->common, 1);
    int root = (int)random_below(&call->common, (size_t)call->group->npes);
    int result = call->routines->broadcast(call->group->team, call->dest + GUARD, call->source,
                                           nelems, root);
    source_of(call->group->world[root], peer);
    for (size_t i = 0; i < nelems; i++)
        expect(call, i, peer, i);
    compare(call, "broadcast", nelems, result);
}

static size_t collect_nelems(struct call *call, int world_pe) {
    struct random random = random_of(seed + 1000000, world_pe);
    size_t npes = (size_t)call->group->npes;
    return random_below(&random, 4) ? random_nelems(call, &random, npes) : 0;
}

static void collect(struct call *call) {
    size_t nelems = collect_nelems(call, shmem_my_pe()), at = 0;
    int result =
        call->routines->collect(call->group->team, call->dest + GUARD, call->source, nelems);
    for (int member = 0; member < call->group->npes; member++) {
        size_t theirs = collect_nelems(call, call->group->world[member]);
        source_of(call->group->world[member], peer);
        for (size_t i = 0; i < theirs; i++)
            expect(call, at++, peer, i);
    }
    compare(call, "collect", nelems, result);
}

static void fcollect(struct call *call) {
    size_t npes = (size_t)call->group->npes, nelems = random_nelems(call, &call->common, npes);
    int result =
        call->routines->fcollect(call->group->team, call->dest + GUARD, call->source, nelems);
    for (int member = 0; member < call->group->npes; member++) {
        source_of(call->group->world[member], peer);
        for (size_t i = 0; i < nelems; i++)
            expect(call, (size_t)member * nelems + i, peer, i);
    }
    compare(call, "fcollect", nelems, result);
}

static void expect_alltoalls(const struct call *call, size_t dst, size_t sst, size_t nelems) {
    size_t mine = (size_t)call->group->my_pe * nelems;
    for (int member = 0; member < call->group->npes; member++) {
        source_of(call->group->world[member], peer);
        for (size_t i = 0; i < nelems; i++)
            expect(call, ((size_t)member * nelems + i) * dst, peer, (mine + i) * sst);
    }
}

static void alltoall(struct call *call) {
    size_t npes = (size_t)call->group->npes, nelems = random_nelems(call, &call->common, npes);
    int result =
        call->routines->alltoall(call->group->team, call->dest + GUARD, call->source, nelems);
    expect_alltoalls(call, 1, 1, nelems);
    compare(call, "alltoall", nelems, result);
}

static void alltoalls(struct call *call) {
    size_t npes = (size_t)call->group->npes, nelems = random_nelems(call, &call->common, 3 * npes);
    size_t dst = 1 + random_below(&call->common, 3), sst = 1 + random_below(&call->common, 3);
    int result = call->routines->alltoalls(call->group->team, call->dest + GUARD, call->source,
                                           (ptrdiff_t)dst, (ptrdiff_t)sst, nelems);
    expect_alltoalls(call, dst, sst, nelems);
    compare(call, "alltoalls", nelems, result);
}

/* Uses all types on one group in each round, and another group in the next, so that every type
 * meets every group. */
static void check(const struct group *groups, const char *name, void (*body)(struct call *)) {
    tap_case(name);
    for (int round = 0; round < ROUNDS; round++)
        for (int row = 0; row < NROUTINES; row++) {
            struct call call;
            begin(&call, &groups[(row + round * 3) % GROUPS], &routines[row]);
            body(&call);
        }
    shmem_barrier_all();
}

static void refused(const char *call, int error) {
    char text[128];
    snprintf(text, sizeof text, "%s: argument team is ", call);
    EXPECT(error == -EINVAL, "%s: %d", call, error);
    EXPECT(strncmp(weft_last_error(), text, strlen(text)) == 0, "%s: '%s'", call,
           weft_last_error());
}
#define REFUSED(NAME, T, ...) \
    refused("shmem_" #NAME,   \
            shmem_##NAME(SHMEM_TEAM_INVALID, (T *)heap_dest, (T *)heap_source, __VA_ARGS__))

static void check_no_team(void) {
    tap_case("an invalid team is an error with its name, and no PE waits");
    REFUSED(broadcastmem, void, 8, 0);
    REFUSED(collectmem, void, 8);
    REFUSED(fcollectmem, void, 8);
    REFUSED(alltoallmem, void, 8);
    REFUSED(alltoallsmem, void, 1, 1, 8);
    REFUSED(int_sum_reduce, int, 8);
    REFUSED(int_sum_inscan, int, 8);
    refused("shmem_team_sync", shmem_team_sync(SHMEM_TEAM_INVALID));
}

static void check_nothing(void) {
    tap_case("nothing is moved from and to nowhere");
    EXPECT(shmem_broadcastmem(SHMEM_TEAM_WORLD, NULL, NULL, 0, 0) == 0, "an error");
    EXPECT(shmem_collectmem(SHMEM_TEAM_WORLD, NULL, NULL, 0) == 0, "an error");
    EXPECT(shmem_fcollectmem(SHMEM_TEAM_WORLD, NULL, NULL, 0) == 0, "an error");
    EXPECT(shmem_alltoallmem(SHMEM_TEAM_WORLD, NULL, NULL, 0) == 0, "an error");
    EXPECT(shmem_alltoallsmem(SHMEM_TEAM_WORLD, NULL, NULL, 1, 1, 0) == 0, "an error");
    EXPECT(shmem_double_max_reduce(SHMEM_TEAM_WORLD, NULL, NULL, 0) == 0, "an error");
    EXPECT(shmem_double_sum_exscan(SHMEM_TEAM_WORLD, NULL, NULL, 0) == 0, "an error");
}

int main(void) {
    shmem_init();
    tap_start(shmem_my_pe());
    static struct group groups[GROUPS];
    groups_make(groups);
    heap_dest = shmem_align(16, sizeof static_dest);
    heap_source = shmem_align(16, BYTES);
    check(groups, "broadcast: dest is the root's source", broadcast);
    check(groups, "collect: sources of all sizes, one behind the other", collect);
    check(groups, "fcollect: sources, one behind the other", fcollect);
    check(groups, "alltoall: blocks are exchanged", alltoall);
    check(groups, "alltoalls: elements of blocks are exchanged", alltoalls);
    check_no_team();
    check_nothing();
    groups_drop(groups);
    shmem_finalize();
    return tap_finish();
}
