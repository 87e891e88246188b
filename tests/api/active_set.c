/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the deprecated collectives on active sets of all shapes, disjoint ones at the same
 * time, with random sizes and sources that every PE can compute for every other one. Two pSync
 * arrays are used alternately and contain SHMEM_SYNC_VALUE again on return; barriers reuse one at
 * once. Some members initialize theirs while others are in the call already. PEs: 1 2 3 4 7 */
#include <shmem.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include "tap.h"
#include "api/numbers.h"

enum { BYTES = 64 << 10, GUARD = 64, ROUNDS = 12, KINDS = 6, BARRIERS = 300 };

struct set {
    int start, log_stride, size;
    int my_pe; /* -1: not a member */
};

static long psyncs[KINDS][3][SHMEM_SYNC_SIZE]; /* two used alternately, one for barriers */
static unsigned char dest[BYTES + 2 * GUARD] __attribute__((aligned(16)));
static unsigned char source[BYTES] __attribute__((aligned(16)));
static unsigned char expected[BYTES + 2 * GUARD], peer[BYTES];
static long seen[64];
static uint64_t seed;
static int me, npes;

static int world_pe(const struct set *set, int member) {
    return set->start + (member << set->log_stride);
}

static struct set strided(int first, int log_stride) {
    int step = 1 << log_stride;
    return (struct set){first, log_stride, (npes - first + step - 1) / step, (me - first) / step};
}

/* All PEs, every second and every fourth PE, pairs, the upper half only, and single PEs. */
static struct set set_of(int kind) {
    int pair = me - me % 2, half = npes / 2;
    switch (kind) {
    case 1:
        return strided(me % 2, 1);
    case 2:
        return strided(me % 4, 2);
    case 3:
        return (struct set){pair, 0, pair + 1 < npes ? 2 : 1, me - pair};
    case 4:
        return (struct set){half, 0, npes - half, me < half ? -1 : me - half};
    case 5:
        return (struct set){me, 3, 1, 0};
    default:
        return strided(0, 0);
    }
}

/* --- Barriers -------------------------------------------------------------------------------- */

static void barrier_once(const struct set *set, int kind, long round) {
    for (int member = 0; member < set->size; member++)
        shmem_long_p(&seen[me], round, world_pe(set, member));
    shmem_barrier(set->start, set->log_stride, set->size, psyncs[kind][2]);
    for (int member = 0; member < set->size; member++)
        EXPECT(seen[world_pe(set, member)] >= round, "kind %d, round %ld: member %d is at %ld",
               kind, round, member, seen[world_pe(set, member)]);
    if (round % 2) /* a sync directly after a barrier */
        shmem_sync(set->start, set->log_stride, set->size, psyncs[kind][2]);
}

static void check_barriers(void) {
    tap_case("barriers reuse their pSync at once");
    struct random random = random_of(77, me);
    for (int kind = 0; kind < KINDS; kind++) {
        struct set set = set_of(kind);
        for (long round = 1; round <= BARRIERS && set.my_pe >= 0; round++) {
            if (random_below(&random, 50) == 0)
                usleep(100);
            barrier_once(&set, kind, kind * BARRIERS + round);
        }
    }
    shmem_barrier_all();
    for (size_t i = 0; i < sizeof psyncs / sizeof(long); i++)
        EXPECT(((long *)psyncs)[i] == SHMEM_SYNC_VALUE, "word %zu is %ld", i, ((long *)psyncs)[i]);
    shmem_barrier_all();
}

/* --- Common to all calls ---------------------------------------------------------------------- */

struct call {
    struct set set;
    int kind;
    long *psync;
    struct random common; /* equal on all members */
};

/* Initializes as a program does that has no barrier between this and its first call. */
static void initialize(long *psync) {
    memset(psync, 0x7F, SHMEM_SYNC_SIZE * sizeof *psync);
    usleep(seed % 2 ? 100u * (unsigned)me : 0);
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
        psync[i] = SHMEM_SYNC_VALUE;
}

/* Returns false if this PE is no member. Members wait until every member's dest is ready. */
static bool begin(struct call *call, int round) {
    seed++;
    call->kind = round % KINDS;
    call->set = set_of(call->kind);
    call->psync = psyncs[call->kind][round / KINDS % 2];
    call->common = random_of(seed, 1000 + call->set.start);
    memset(dest, 0xA5, sizeof dest);
    memset(expected, 0xA5, sizeof expected);
    if (call->set.my_pe < 0)
        return false;
    shmem_sync(call->set.start, call->set.log_stride, call->set.size, psyncs[call->kind][2]);
    if (seed % 4 < 2)
        initialize(call->psync);
    return true;
}

static void end(const struct call *call, const char *what, size_t nelems) {
    size_t wrong = 0;
    while (wrong < sizeof dest && dest[wrong] == expected[wrong])
        wrong++;
    EXPECT(wrong == sizeof dest, "%s of %zu, kind %d: byte %td is %d, not %d", what, nelems,
           call->kind, (ptrdiff_t)wrong - GUARD, dest[wrong], expected[wrong]);
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
        EXPECT(call->psync[i] == SHMEM_SYNC_VALUE, "%s: pSync[%d] is %ld", what, i, call->psync[i]);
}

static size_t random_nelems(struct random *random, size_t bytes, size_t arrays) {
    size_t most = BYTES / bytes / arrays, limit = random_below(random, 3) ? 20 : most;
    return random_below(random, limit < most ? limit : most);
}

#define ACTIVE call->set.start, call->set.log_stride, call->set.size

/* --- Copies ---------------------------------------------------------------------------------- */

static void source_of(int pe, unsigned char *bytes) {
    struct random random = random_of(seed, pe);
    random_fill(&random, bytes, BYTES);
}

static void expect(size_t bytes, size_t at, size_t from) {
    memcpy(expected + GUARD + at * bytes, peer + from * bytes, bytes);
}

/* Expects the first elements of a member's source in dest, from element `at` on. */
static void expect_part(const struct call *call, size_t bytes, int member, size_t at,
                        size_t nelems) {
    source_of(world_pe(&call->set, member), peer);
    for (size_t i = 0; i < nelems; i++)
        expect(bytes, at + i, i);
}

static void broadcast(struct call *call, size_t bytes) {
    size_t nelems = random_nelems(&call->common, bytes, 1);
    int root = (int)random_below(&call->common, (size_t)call->set.size);
    if (bytes == 4)
        shmem_broadcast32(dest + GUARD, source, nelems, root, ACTIVE, call->psync);
    else
        shmem_broadcast64(dest + GUARD, source, nelems, root, ACTIVE, call->psync);
    if (root != call->set.my_pe)
        expect_part(call, bytes, root, 0, nelems);
    end(call, "broadcast", nelems);
}

static size_t collect_nelems(const struct call *call, size_t bytes, int pe) {
    struct random random = random_of(seed + 1000000, pe);
    return random_below(&random, 4) ? random_nelems(&random, bytes, (size_t)call->set.size) : 0;
}

static void collect(struct call *call, size_t bytes) {
    size_t nelems = collect_nelems(call, bytes, me), at = 0;
    if (bytes == 4)
        shmem_collect32(dest + GUARD, source, nelems, ACTIVE, call->psync);
    else
        shmem_collect64(dest + GUARD, source, nelems, ACTIVE, call->psync);
    for (int member = 0; member < call->set.size; member++) {
        size_t theirs = collect_nelems(call, bytes, world_pe(&call->set, member));
        expect_part(call, bytes, member, at, theirs);
        at += theirs;
    }
    end(call, "collect", nelems);
}

static void fcollect(struct call *call, size_t bytes) {
    size_t nelems = random_nelems(&call->common, bytes, (size_t)call->set.size);
    if (bytes == 4)
        shmem_fcollect32(dest + GUARD, source, nelems, ACTIVE, call->psync);
    else
        shmem_fcollect64(dest + GUARD, source, nelems, ACTIVE, call->psync);
    for (int member = 0; member < call->set.size; member++)
        expect_part(call, bytes, member, (size_t)member * nelems, nelems);
    end(call, "fcollect", nelems);
}

static void expect_alltoalls(const struct call *call, size_t bytes, size_t dst, size_t sst,
                             size_t nelems) {
    for (int member = 0; member < call->set.size; member++) {
        source_of(world_pe(&call->set, member), peer);
        for (size_t i = 0; i < nelems; i++)
            expect(bytes, ((size_t)member * nelems + i) * dst,
                   ((size_t)call->set.my_pe * nelems + i) * sst);
    }
}

static void alltoall(struct call *call, size_t bytes) {
    size_t nelems = random_nelems(&call->common, bytes, (size_t)call->set.size);
    if (bytes == 4)
        shmem_alltoall32(dest + GUARD, source, nelems, ACTIVE, call->psync);
    else
        shmem_alltoall64(dest + GUARD, source, nelems, ACTIVE, call->psync);
    expect_alltoalls(call, bytes, 1, 1, nelems);
    end(call, "alltoall", nelems);
}

static void alltoalls(struct call *call, size_t bytes) {
    size_t nelems = random_nelems(&call->common, bytes, 3 * (size_t)call->set.size);
    size_t dst = 1 + random_below(&call->common, 3), sst = 1 + random_below(&call->common, 3);
    if (bytes == 4)
        shmem_alltoalls32(dest + GUARD, source, (ptrdiff_t)dst, (ptrdiff_t)sst, nelems, ACTIVE,
                          call->psync);
    else
        shmem_alltoalls64(dest + GUARD, source, (ptrdiff_t)dst, (ptrdiff_t)sst, nelems, ACTIVE,
                          call->psync);
    expect_alltoalls(call, bytes, dst, sst, nelems);
    end(call, "alltoalls", nelems);
}

static void check_copies(const char *name, void (*body)(struct call *call, size_t bytes)) {
    tap_case(name);
    for (int round = 0; round < ROUNDS * KINDS; round++) {
        struct call call;
        if (begin(&call, round)) {
            source_of(me, source);
            body(&call, round / KINDS % 2 ? 4 : 8);
        }
    }
    shmem_barrier_all();
}

/* --- Reductions ------------------------------------------------------------------------------ */

typedef void to_all(void *to, const void *from, int nreduce, const struct call *call);

struct row {
    const char *name;
    size_t bytes, meant;
    to_all *call;
    combination *combine;
    make *make;
};

static unsigned char pwrk[BYTES] __attribute__((aligned(16)));

/* clang-format off */
#define CALL(NAME)                                                                                 \
    static void call_##NAME(void *to, const void *from, int nreduce, const struct call *call) {    \
        shmem_##NAME(to, from, nreduce, ACTIVE, (void *)pwrk, call->psync);                        \
    }
#define BITWISE(N, T, _) CALL(N##_and_to_all) CALL(N##_or_to_all) CALL(N##_xor_to_all)
#define ORDERED(N, T, _) CALL(N##_max_to_all) CALL(N##_min_to_all)
#define ARITHMETIC(N, T, _) CALL(N##_sum_to_all) CALL(N##_prod_to_all)
SHMEM_TO_ALL_BITWISE_TYPES(BITWISE, _)
SHMEM_TO_ALL_ORDERED_TYPES(ORDERED, _)
SHMEM_TO_ALL_ARITHMETIC_TYPES(ARITHMETIC, _)

#define ROW(N, T, OP)                                                                              \
    {#N "_" #OP, sizeof(T), MEANT(T), call_##N##_##OP##_to_all, combine_##N##_##OP, make_##N},
#define BITWISE_ROWS(N, T, _) ROW(N, T, and) ROW(N, T, or) ROW(N, T, xor)
#define ORDERED_ROWS(N, T, _) ROW(N, T, max) ROW(N, T, min)
#define ARITHMETIC_ROWS(N, T, _) ROW(N, T, sum) ROW(N, T, prod)
static const struct row rows[] = {
    SHMEM_TO_ALL_BITWISE_TYPES(BITWISE_ROWS, _)
    SHMEM_TO_ALL_ORDERED_TYPES(ORDERED_ROWS, _)
    SHMEM_TO_ALL_ARITHMETIC_TYPES(ARITHMETIC_ROWS, _)
};
/* clang-format on */
enum { NROWS = sizeof rows / sizeof *rows };

static void numbers_of(const struct row *row, int pe, unsigned char *numbers, size_t nelems) {
    struct random random = random_of(seed, pe);
    for (size_t i = 0; i < nelems; i++)
        row->make(&random, numbers + i * row->bytes);
}

/* Padding of elements is unspecified: whatever arrived is accepted. */
static void expect_reduction(const struct row *row, const struct call *call, size_t nelems) {
    unsigned char *first = expected + GUARD;
    for (int member = 0; member < call->set.size; member++) {
        numbers_of(row, world_pe(&call->set, member), member == 0 ? first : peer, nelems);
        for (size_t i = 0; i < nelems && member > 0; i++)
            row->combine(first + i * row->bytes, peer + i * row->bytes);
    }
    for (size_t i = 0; i < nelems; i++)
        memcpy(first + i * row->bytes + row->meant, dest + GUARD + i * row->bytes + row->meant,
               row->bytes - row->meant);
}

static void reduce(const struct row *row, int round) {
    struct call call;
    if (!begin(&call, round))
        return;
    size_t nelems = random_nelems(&call.common, row->bytes, 1);
    bool in_place = random_below(&call.common, 2);
    unsigned char *from = in_place ? dest + GUARD : source;
    numbers_of(row, me, from, nelems);
    row->call(dest + GUARD, from, (int)nelems, &call);
    expect_reduction(row, &call, nelems);
    end(&call, row->name, nelems);
}

static void check_reductions(void) {
    tap_case("to_all: every type and operation, in place and not");
    for (int round = 0; round < 3 * NROWS; round++)
        reduce(&rows[round % NROWS], round);
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    check_barriers();
    check_copies("broadcast: all but the root get its source", broadcast);
    check_copies("collect: sources of all sizes, one behind the other", collect);
    check_copies("fcollect: sources, one behind the other", fcollect);
    check_copies("alltoall: blocks are exchanged", alltoall);
    check_copies("alltoalls: elements of blocks are exchanged", alltoalls);
    check_reductions();
    shmem_finalize();
    return tap_finish();
}
