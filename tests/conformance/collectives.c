/* SPDX-License-Identifier: BSD-3-Clause */
/* Promises of collectives besides their results (pitfalls 33, 35, 36, 40): consecutive calls of
 * different kinds with nothing in between, PEs that arrive late or leave early, teams side by side
 * and nested, threads on teams of their own, the same sum on every PE, megabytes. All types of all
 * routines, in place and not, are in tests/api/collective.c and tests/api/reduce.c. */
#include <shmem.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "tap.h"
#include "conformance/groups.h"
#include "api/model.h"

enum { KINDS = 9, SLOTS = 64, N = 6, LARGE = 5000, LARGE_SLOTS = 12, THREADS = 3 };

static int me, npes;

/* The arrays of one call: for `width` elements a member. */
struct slot {
    int width;
    long *dest, *source;
};

static long value(uint64_t seed, int world_pe, int i) {
    return (long)((seed * 131 + (uint64_t)world_pe * 17 + (uint64_t)i * 7) % 1000);
}

/* Calls kind number `kind`. Counts are the width, except in collect, to which member r contributes
 * r elements fewer, but at least one. */
static int collected(int width, int member) {
    return width > member ? width - member : 1;
}

static int call(int kind, shmem_team_t team, struct slot *slot, int my_pe) {
    size_t nelems = (size_t)slot->width;
    switch (kind) {
    case 0:
        return shmem_long_broadcast(team, slot->dest, slot->source, nelems, 0);
    case 1:
        return shmem_long_fcollect(team, slot->dest, slot->source, nelems);
    case 2:
        return shmem_long_collect(team, slot->dest, slot->source,
                                  (size_t)collected(slot->width, my_pe));
    case 3:
        return shmem_long_alltoall(team, slot->dest, slot->source, nelems);
    case 4:
        return shmem_long_sum_reduce(team, slot->dest, slot->source, nelems);
    case 5:
        return shmem_long_max_reduce(team, slot->dest, slot->source, nelems);
    case 6:
        return shmem_long_sum_inscan(team, slot->dest, slot->source, nelems);
    case 7:
        return shmem_long_sum_exscan(team, slot->dest, slot->source, nelems);
    default:
        return shmem_team_sync(team);
    }
}

/* Returns element `at` of dest after that call, by the definition of the routine; -1 if dest has no
 * such element. */
static long expected(int kind, const struct group *group, uint64_t seed, int width, int at) {
    long sum = 0, most = 0;
    int first = 0;
    for (int pe = 0; pe < group->npes; pe++) {
        const int world = group->world[pe], here = at % width;
        if ((kind == 1 || kind == 3) && at / width == pe)
            return value(seed, world, kind == 1 ? here : group->my_pe * width + here);
        if (kind == 2 && at >= first && at < first + collected(width, pe))
            return value(seed, world, at - first);
        first += collected(width, pe);
        if (at >= width || kind > 7)
            continue;
        long theirs = value(seed, world, at);
        if (kind == 0 && pe == 0)
            return theirs;
        if (kind == 4 || (kind == 6 && pe <= group->my_pe) || (kind == 7 && pe < group->my_pe))
            sum += theirs;
        if (theirs > most)
            most = theirs;
    }
    return at >= width || kind < 4 || kind > 7 ? -1 : kind == 5 ? most : sum;
}

static size_t slot_bytes(int width) {
    return (size_t)npes * (size_t)width * sizeof(long);
}

static void slots_make(struct slot *slots, int nslots, int width) {
    for (int i = 0; i < nslots; i++) {
        slots[i].width = width;
        slots[i].dest = shmem_malloc(slot_bytes(width));
        slots[i].source = shmem_malloc(slot_bytes(width));
        memset(slots[i].dest, 0xFF, slot_bytes(width));
        memset(slots[i].source, 0xEE, slot_bytes(width));
    }
}

static void slots_drop(struct slot *slots, int nslots) {
    for (int i = 0; i < nslots; i++) {
        shmem_free(slots[i].source);
        shmem_free(slots[i].dest);
    }
}

static void prepare(struct slot *slot, uint64_t seed) {
    for (int i = 0; i < npes * slot->width; i++)
        slot->source[i] = value(seed, me, i);
}

static int check(int kind, const struct group *group, const struct slot *slot, uint64_t seed) {
    int wrong = 0;
    for (int at = 0; at < group->npes * slot->width; at++)
        wrong += slot->dest[at] != expected(kind, group, seed, slot->width, at);
    return wrong;
}

/* Calls with nothing in between. Each PE delays at random, prepares its source just before the
 * call, and overwrites it as soon as the call has returned. */
static void back_to_back(const struct group *group, int nslots, int width) {
    struct slot slots[SLOTS];
    struct random random = random_of(11 + (uint64_t)width, 0), mine = random_of(12, me);
    int kinds[SLOTS];
    slots_make(slots, nslots, width);
    shmem_barrier_all();
    for (int i = 0; i < nslots; i++) {
        kinds[i] = width > N ? i % KINDS : (int)random_below(&random, KINDS);
        if (random_below(&mine, 8) == 0)
            usleep(200);
        prepare(&slots[i], (uint64_t)i);
        EXPECT(call(kinds[i], group->team, &slots[i], group->my_pe) == 0, "call %d", i);
        memset(slots[i].source, 0xEE, slot_bytes(width));
    }
    for (int i = 0; i < nslots; i++) {
        int wrong = check(kinds[i], group, &slots[i], (uint64_t)i);
        EXPECT(wrong == 0, "call %d, kind %d of %d on %s: %d wrong", i, kinds[i], width,
               group->name, wrong);
    }
    shmem_barrier_all();
    slots_drop(slots, nslots);
}

/* Calls on alternating teams that share members, without a sync of the world. */
static void interleaved(const struct group *groups) {
    struct slot slots[SLOTS];
    struct random random = random_of(21, 0);
    int kinds[SLOTS], which[SLOTS];
    slots_make(slots, SLOTS, N);
    shmem_barrier_all();
    for (int i = 0; i < SLOTS; i++) {
        kinds[i] = (int)random_below(&random, KINDS);
        which[i] = (int)random_below(&random, GROUPS);
        const struct group *group = &groups[which[i]];
        prepare(&slots[i], (uint64_t)i);
        EXPECT(call(kinds[i], group->team, &slots[i], group->my_pe) == 0, "call %d", i);
    }
    for (int i = 0; i < SLOTS; i++) {
        const struct group *group = &groups[which[i]];
        int wrong = check(kinds[i], group, &slots[i], (uint64_t)i);
        EXPECT(wrong == 0, "call %d, kind %d on %s: %d wrong", i, kinds[i], group->name, wrong);
    }
    shmem_barrier_all();
    slots_drop(slots, SLOTS);
}

/* Other traffic meanwhile: puts, atomics and signals are pending on the same PEs. */
static void beside_traffic(void) {
    static long inbox[SLOTS], counter, sums[SLOTS], ones[SLOTS];
    static uint64_t sig;
    int next = (me + 1) % npes, before = (me + npes - 1) % npes;
    for (int i = 0; i < SLOTS; i++)
        ones[i] = i + me;
    shmem_barrier_all();
    for (int i = 0; i < SLOTS; i++) {
        long mine = 100L * i + me;
        shmem_long_put_nbi(&inbox[i], &mine, 1, next);
        shmem_long_atomic_inc(&counter, next);
        EXPECT(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sums[i], &ones[i], 1) == 0, "call %d", i);
        shmem_quiet(); /* `mine` goes out of scope; no collective has completed the put */
        shmem_signal_add(&sig, 1, next);
    }
    shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, SLOTS);
    for (int i = 0; i < SLOTS; i++) {
        EXPECT(inbox[i] == 100L * i + before, "put %d: %ld", i, inbox[i]);
        EXPECT(sums[i] == (long)npes * i + (long)npes * (npes - 1) / 2, "sum %d: %ld", i, sums[i]);
    }
    EXPECT(counter == SLOTS, "%ld", counter);
    shmem_barrier_all();
}

/* Sums of reals that are not exact: at least the same bits on every PE, and every time. */
static void reproducible(void) {
    static double sums[2][500], all[GROUP_PES_MAX * 500], source[500];
    struct random random = random_of(31, me);
    for (int i = 0; i < 500; i++)
        source[i] = (double)random_next(&random) / (double)(1 + random_below(&random, 1000));
    shmem_barrier_all();
    for (int turn = 0; turn < 2; turn++)
        EXPECT(shmem_double_sum_reduce(SHMEM_TEAM_WORLD, sums[turn], source, 500) == 0, "sum");
    EXPECT(memcmp(sums[0], sums[1], sizeof sums[0]) == 0, "another sum the second time");
    EXPECT(shmem_double_fcollect(SHMEM_TEAM_WORLD, all, sums[0], 500) == 0, "fcollect");
    for (int pe = 0; pe < npes; pe++)
        EXPECT(memcmp(all + 500 * pe, sums[0], sizeof sums[0]) == 0, "PE %d has another sum", pe);
    shmem_barrier_all();
}

/* Each thread with its own team, all kinds; the teams have the same members. */
static struct group of_thread[THREADS];
static struct slot thread_slots[THREADS][SLOTS];
static _Atomic int wrong_in_threads;

static void *run_thread(void *index) {
    uintptr_t t = (uintptr_t)index;
    const struct group *group = &of_thread[t];
    for (int i = 0; i < SLOTS; i++)
        if (call((i + (int)t) % KINDS, group->team, &thread_slots[t][i], group->my_pe) != 0)
            wrong_in_threads++;
    for (int i = 0; i < SLOTS; i++)
        wrong_in_threads +=
            check((i + (int)t) % KINDS, group, &thread_slots[t][i], t * SLOTS + (uint64_t)i);
    return NULL;
}

static void threads(void) {
    pthread_t all[THREADS];
    for (int t = 0; t < THREADS; t++) {
        shmem_team_t team;
        shmem_team_split_strided(SHMEM_TEAM_WORLD, t % 2 ? npes - 1 : 0, t % 2 ? -1 : 1, npes, NULL,
                                 0, &team);
        group_describe(&of_thread[t], "a thread's team", team);
        slots_make(thread_slots[t], SLOTS, N);
        for (int i = 0; i < SLOTS; i++)
            prepare(&thread_slots[t][i], (uint64_t)(t * SLOTS + i));
    }
    shmem_barrier_all();
    for (uintptr_t t = 0; t < THREADS; t++)
        pthread_create(&all[t], NULL, run_thread, (void *)t);
    for (int t = 0; t < THREADS; t++)
        pthread_join(all[t], NULL);
    EXPECT(wrong_in_threads == 0, "%d wrong results", wrong_in_threads);
    shmem_barrier_all();
    for (int t = 0; t < THREADS; t++) {
        shmem_team_destroy(of_thread[t].team);
        slots_drop(thread_slots[t], SLOTS);
    }
}

/* A new team is used immediately, and destroyed right after its last collective. */
static void short_lives(void) {
    struct slot slots[30];
    slots_make(slots, 30, N);
    for (int i = 0; i < 30; i++) {
        struct group group;
        shmem_team_t team;
        prepare(&slots[i], (uint64_t)i);
        shmem_barrier_all();
        shmem_team_split_strided(SHMEM_TEAM_WORLD, i % npes, 1, npes - i % npes, NULL, 0, &team);
        if (team == SHMEM_TEAM_INVALID)
            continue;
        group_describe(&group, "a short-lived team", team);
        EXPECT(call(i % KINDS, team, &slots[i], group.my_pe) == 0, "call %d", i);
        shmem_team_destroy(team);
        int wrong = check(i % KINDS, &group, &slots[i], (uint64_t)i);
        EXPECT(wrong == 0, "kind %d: %d wrong", i % KINDS, wrong);
    }
    shmem_barrier_all();
    slots_drop(slots, 30);
}

/* Megabytes each, for which implementations choose other algorithms. */
static void large_moves(void) {
    enum { N = 150000 };
    int *source = shmem_malloc((size_t)npes * N * sizeof *source);
    int *dest = shmem_malloc((size_t)npes * N * sizeof *dest);
    int wrong = 0;
    for (int i = 0; i < npes * N; i++)
        source[i] = i * 3 + me;
    shmem_barrier_all();
    EXPECT(shmem_int_alltoall(SHMEM_TEAM_WORLD, dest, source, N) == 0, "alltoall");
    for (int pe = 0; pe < npes; pe++)
        for (int i = 0; i < N; i++)
            wrong += dest[pe * N + i] != (me * N + i) * 3 + pe;
    EXPECT(wrong == 0, "alltoall: %d wrong elements", wrong);
    shmem_barrier_all();
    EXPECT(shmem_int_fcollect(SHMEM_TEAM_WORLD, dest, source, N) == 0, "fcollect");
    for (int pe = 0; pe < npes; pe++)
        for (int i = 0; i < N; i++)
            wrong += dest[pe * N + i] != i * 3 + pe;
    EXPECT(wrong == 0, "fcollect: %d wrong elements", wrong);
    shmem_barrier_all();
    EXPECT(shmem_int_broadcast(SHMEM_TEAM_WORLD, dest, source, N, npes - 1) == 0, "broadcast");
    for (int i = 0; i < N; i++)
        wrong += dest[i] != i * 3 + npes - 1;
    EXPECT(wrong == 0, "broadcast: %d wrong elements", wrong);
    shmem_barrier_all();
    EXPECT(shmem_int_collect(SHMEM_TEAM_WORLD, dest, source, (size_t)(N - 100 * me)) == 0,
           "collect");
    int at = 0;
    for (int pe = 0; pe < npes; pe++)
        for (int i = 0; i < N - 100 * pe; i++)
            wrong += dest[at++] != i * 3 + pe;
    EXPECT(wrong == 0, "collect: %d wrong elements", wrong);
    shmem_free(dest);
    shmem_free(source);
}

/* Megabytes, for which implementations choose other algorithms; doubles with integral values. */
static void large_reductions(void) {
    enum { N = 400000 };
    double *dest = shmem_malloc(N * sizeof *dest), *source = shmem_malloc(N * sizeof *source);
    for (int i = 0; i < N; i++)
        source[i] = (double)((i + me * 31) % 1000);
    shmem_barrier_all();
    EXPECT(shmem_double_sum_reduce(SHMEM_TEAM_WORLD, dest, source, N) == 0, "failed");
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        double expected = 0;
        for (int pe = 0; pe < npes; pe++)
            expected += (i + pe * 31) % 1000;
        wrong += dest[i] != expected;
    }
    EXPECT(wrong == 0, "%d wrong sums", wrong);
    shmem_barrier_all();
    EXPECT(shmem_double_max_reduce(SHMEM_TEAM_WORLD, source, source, N - 1) == 0, "in place");
    wrong = source[N - 1] != (double)((N - 1 + me * 31) % 1000);
    for (int i = 0; i < N - 1; i++) {
        double expected = 0;
        for (int pe = 0; pe < npes; pe++)
            expected = (i + pe * 31) % 1000 > expected ? (i + pe * 31) % 1000 : expected;
        wrong += source[i] != expected;
    }
    EXPECT(wrong == 0, "%d wrong maxima", wrong);
    shmem_free(source);
    shmem_free(dest);
}

/* A scan of the result of another scan: programs compute offsets so. */
static void offsets(void) {
    static size_t count[4], first[4], last[4];
    for (size_t turn = 0; turn < 100; turn++) {
        size_t expected = 0;
        count[turn % 4] = (turn * 7 + (size_t)me * 3) % 11;
        EXPECT(shmem_size_sum_exscan(SHMEM_TEAM_WORLD, &first[turn % 4], &count[turn % 4], 1) == 0,
               "exscan");
        EXPECT(shmem_size_sum_inscan(SHMEM_TEAM_WORLD, &last[turn % 4], &count[turn % 4], 1) == 0,
               "inscan");
        for (int pe = 0; pe < me; pe++)
            expected += (turn * 7 + (size_t)pe * 3) % 11;
        EXPECT(first[turn % 4] == expected, "%zu, not %zu", first[turn % 4], expected);
        EXPECT(last[turn % 4] == expected + count[turn % 4], "%zu", last[turn % 4]);
        if (turn % 4 == 3)
            shmem_sync_all(); /* before any dest is used again */
    }
    shmem_barrier_all();
}

int main(void) {
    struct group groups[GROUPS];
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    groups_make(groups);
    tap_case("35, 36: call after call on one team");
    for (int i = 0; i < GROUPS; i++) {
        back_to_back(&groups[i], SLOTS, N);
        back_to_back(&groups[i], LARGE_SLOTS, LARGE);
    }
    tap_case("33, 35: teams by turns");
    interleaved(groups);
    tap_case("35: beside other traffic");
    beside_traffic();
    tap_case("40: one sum for all");
    reproducible();
    tap_case("33: threads on teams of their own");
    if (provided == SHMEM_THREAD_MULTIPLE)
        threads();
    tap_case("29, 35: teams that live for one call");
    short_lives();
    tap_case("36, 37, 39: megabytes");
    large_moves();
    large_reductions();
    tap_case("39: offsets by scans");
    offsets();
    groups_drop(groups);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
