/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams of any PEs: random lists in random order behave as specified in every query, collective,
 * context and tensor operator, also when they are split again; many at once in threads; invalid
 * lists, and members that have finalized, are refused; if no team is left, no member gets one.
 * PEs: 1 2 3 4 7 8 */
#include <shmemx.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>
#include "api/group.h"
#include "tap.h"

enum { ROUNDS = 40, NELEMS = 700, THREADS = 6, THREAD_ROUNDS = 25, TEAMS_MAX = 256 };

static int me, npes;
static long *given, *gathered, *word; /* symmetric */

static long value(int pe, int i) {
    return pe * 100000L + i;
}

/* --- One team --------------------------------------------------------------------------------- */

static shmem_team_t create(const struct group *group) {
    shmem_team_t team = SHMEM_TEAM_WORLD;
    int rc = shmemx_team_create(group->pes, group->count, group->tag, &team);
    EXPECT(rc == 0, "rc is %d: %s", rc, weft_last_error());
    return team;
}

/* Numbers, in both directions, and from one team to another. */
static void check_numbers(shmem_team_t team, const struct group *group) {
    EXPECT(shmem_team_my_pe(team) == group->member, "%d", shmem_team_my_pe(team));
    EXPECT(shmem_team_n_pes(team) == group->count, "%d", shmem_team_n_pes(team));
    for (int i = 0; i < group->count; i++) {
        int pe = group->pes[i];
        EXPECT(shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD) == pe, "member %d", i);
        EXPECT(shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, team) == i, "PE %d", pe);
        EXPECT(shmem_team_ptr(team, word, i) == shmem_ptr(word, pe), "member %d", i);
    }
    for (int pe = 0, inside; pe < npes; pe++) {
        inside = 0;
        for (int i = 0; i < group->count; i++)
            inside |= group->pes[i] == pe;
        if (!inside)
            EXPECT(shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, team) == -1, "PE %d", pe);
    }
}

static void fill_given(void) {
    for (int i = 0; i < NELEMS; i++)
        given[i] = value(me, i);
}

/* Returns how many elements of `gathered` differ from the members' contributions in their order,
 * each of the first `each` elements. */
static int count_wrong(const struct group *group, int each) {
    int wrong = 0;
    for (int i = 0; i < group->count; i++)
        for (int j = 0; j < each; j++)
            wrong += gathered[i * each + j] != value(group->pes[i], j);
    return wrong;
}

static void check_collectives(shmem_team_t team, const struct group *group) {
    int last = group->count - 1, each = NELEMS / group->count, wrong = 0;
    fill_given();
    for (int nelems = 1; nelems <= NELEMS; nelems += NELEMS - 1) {
        shmem_long_fcollect(team, gathered, given, (size_t)nelems);
        EXPECT(count_wrong(group, nelems) == 0, "fcollect of %d", nelems);
        shmem_team_sync(team);
    }
    shmem_long_alltoall(team, gathered, given, (size_t)each);
    for (int i = 0; i < group->count; i++)
        for (int j = 0; j < each; j++)
            wrong += gathered[i * each + j] != value(group->pes[i], group->member * each + j);
    EXPECT(wrong == 0, "alltoall");
    shmem_team_sync(team);
    shmem_long_broadcast(team, gathered, given, NELEMS, last);
    EXPECT(gathered[NELEMS - 1] == value(group->pes[last], NELEMS - 1), "broadcast");
    shmem_team_sync(team);
    shmem_long_collect(team, gathered, given, (size_t)group->member + 1);
    for (int i = 0, at = 0; i < group->count; at += ++i)
        EXPECT(gathered[at] == value(group->pes[i], 0), "collect, member %d", i);
    shmem_team_sync(team);
    long sum = 0, before = 0;
    for (int i = 0; i < group->count; i++) {
        before += i < group->member ? value(group->pes[i], 3) : 0;
        sum += value(group->pes[i], 3);
    }
    shmem_long_sum_reduce(team, gathered, given, NELEMS);
    EXPECT(gathered[3] == sum, "sum %ld, not %ld", gathered[3], sum);
    shmem_team_sync(team);
    shmem_long_sum_exscan(team, gathered, given, NELEMS);
    EXPECT(gathered[3] == before, "exscan %ld, not %ld", gathered[3], before);
    shmem_team_sync(team);
}

static void check_context(shmem_team_t team, const struct group *group) {
    int next = (group->member + 1) % group->count;
    int before = (group->member + group->count - 1) % group->count;
    shmem_ctx_t ctx;
    *word = -1;
    shmem_team_sync(team);
    EXPECT(shmem_team_create_ctx(team, 0, &ctx) == 0, "context");
    shmem_ctx_long_p(ctx, word, me + 1000, next);
    shmem_ctx_quiet(ctx);
    shmem_team_sync(team);
    EXPECT(*word == group->pes[before] + 1000, "%ld from %d", *word, group->pes[before]);
    EXPECT(shmem_ctx_long_g(ctx, word, next) == me + 1000, "of member %d", next);
    shmem_ctx_destroy(ctx);
}

static void check_operators(shmem_team_t team, const struct group *group) {
    float mine[64], sum[64], *all = malloc(sizeof mine * (size_t)group->count), expected = 0;
    for (int i = 0; i < 64; i++)
        mine[i] = (float)(me + i);
    for (int i = 0; i < group->count; i++)
        expected += (float)(group->pes[i] + 5);
    EXPECT(weft_all_reduce(team, sum, mine, 64, WEFT_F32, WEFT_SUM, WEFT_STREAM_HOST) == 0, "%s",
           weft_last_error());
    EXPECT(sum[5] == expected, "%g, not %g", sum[5], expected);
    EXPECT(weft_all_gather(team, all, mine, 64, WEFT_F32, WEFT_STREAM_HOST) == 0, "%s",
           weft_last_error());
    for (int i = 0; i < group->count; i++)
        EXPECT(all[i * 64 + 7] == (float)(group->pes[i] + 7), "member %d", i);
    free(all);
}

/* Every second member, from the last one down. */
static void check_split(shmem_team_t team, const struct group *group) {
    struct group part = {.count = (group->count + 1) / 2};
    shmem_team_t half;
    for (int i = 0; i < part.count; i++)
        part.pes[i] = group->pes[group->count - 1 - 2 * i];
    group_find(&part, me);
    EXPECT(shmem_team_split_strided(team, group->count - 1, -2, part.count, NULL, 0, &half) == 0,
           "split");
    EXPECT((half != SHMEM_TEAM_INVALID) == (part.member >= 0), "member %d", part.member);
    if (part.member >= 0) {
        check_numbers(half, &part);
        check_collectives(half, &part);
    }
    shmem_team_destroy(half);
}

static void check_team(const struct group *group) {
    shmem_team_t team = create(group);
    check_numbers(team, group);
    check_collectives(team, group);
    check_context(team, group);
    check_operators(team, group);
    check_split(team, group);
    shmem_team_destroy(team);
    EXPECT(shmem_team_my_pe(team) == -1, "destroyed");
}

/* --- Many ------------------------------------------------------------------------------------- */

static void random_teams(void) {
    struct random random = random_of(7, 0);
    for (int round = 0; round < ROUNDS; round++) {
        struct group group = group_draw(&random, me, npes);
        if (group.member >= 0)
            check_team(&group);
    }
}

/* Threads have tags of their own; their work in their teams needs no common memory. */
static void *run_thread(void *number) {
    struct random random = random_of(100 + (uint64_t)(uintptr_t)number, 0);
    intptr_t wrong = 0;
    for (int round = 0; round < THREAD_ROUNDS; round++) {
        struct group group = group_draw(&random, me, npes);
        group.tag = (uint64_t)(uintptr_t)number;
        if (group.member < 0)
            continue;
        float mine = (float)me, sum = 0, expected = 0;
        shmem_team_t team;
        wrong += shmemx_team_create(group.pes, group.count, group.tag, &team) != 0;
        wrong += weft_all_reduce(team, &sum, &mine, 1, WEFT_F32, WEFT_SUM, WEFT_STREAM_HOST) != 0;
        for (int i = 0; i < group.count; i++)
            expected += (float)group.pes[i];
        wrong += sum != expected;
        shmem_team_destroy(team);
    }
    return (void *)wrong;
}

static void in_threads(void) {
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run_thread, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        EXPECT(wrong == NULL, "%d wrong in thread %d", (int)(intptr_t)wrong, i);
    }
}

/* PE 0 has fewer teams left than the others, because it is in a team of its own. */
static void until_none_is_left(void) {
    struct group all = group_of_all(me, npes), alone = {.count = 1};
    shmem_team_t own = SHMEM_TEAM_INVALID, teams[TEAMS_MAX], none = SHMEM_TEAM_WORLD;
    int count = 0, rc = 0;
    if (me == 0)
        own = create(&alone);
    while (count < TEAMS_MAX && (rc = shmemx_team_create(all.pes, npes, 0, &teams[count])) == 0)
        count++;
    EXPECT(rc == -ENOSPC && strstr(weft_last_error(), "256"), "%d: %s", rc, weft_last_error());
    EXPECT(count == TEAMS_MAX - 3, "%d teams", count);
    EXPECT(shmemx_team_create(all.pes, npes, 0, &none) == -ENOSPC, "once more");
    EXPECT(none == SHMEM_TEAM_INVALID, "no team");
    shmem_team_sync(teams[count - 1]);
    while (count-- > 0)
        shmem_team_destroy(teams[count]);
    shmem_team_destroy(own);
    check_team(&all);
}

/* --- Errors ----------------------------------------------------------------------------------- */

static void refuse(const int *pes, int count, int rc_expected, const char *text) {
    shmem_team_t team = SHMEM_TEAM_WORLD;
    int rc = shmemx_team_create(pes, count, 0, &team);
    EXPECT(rc == rc_expected && strstr(weft_last_error(), text), "%d: %s", rc, weft_last_error());
    EXPECT(team == SHMEM_TEAM_INVALID, "no team");
}

static void wrong_lists(void) {
    int twice[] = {me, 0, me}, beyond[] = {me, npes}, negative[] = {-1}, other[] = {me ? 0 : 1};
    refuse(NULL, 1, -EINVAL, "pes is NULL");
    refuse(&me, 0, -EINVAL, "npes is 0");
    refuse(&me, npes + 1, -EINVAL, "npes is");
    refuse(negative, 1, -EINVAL, "pes[0] is -1");
    if (npes > 1) {
        refuse(beyond, 2, -EINVAL, "pes[1] is");
        refuse(other, 1, -EINVAL, "does not name this PE");
    }
    if (npes > 2)
        refuse(twice, 3, -EINVAL, me ? "pes[0] and pes[2]" : "pes[0] and pes[1]");
    EXPECT(shmemx_team_create(&me, 1, 0, NULL) == -EINVAL, "nowhere to put it");
}

/* The last PE waits in shmem_finalize for the others, which make teams with and without it. */
static void while_one_has_finalized(void) {
    struct group all = group_of_all(me, npes);
    int last_and_me[] = {npes - 1, me}, me_and_last[] = {me, npes - 1};
    if (me == npes - 1)
        return;
    refuse(all.pes, npes, -ECONNABORTED, "has finalized");
    refuse(last_and_me, 2, -ECONNABORTED, "has finalized");
    refuse(me_and_last, 2, -ECONNABORTED, "has finalized");
    shmem_team_t team = SHMEM_TEAM_INVALID;
    EXPECT(shmemx_team_create(all.pes + 1, npes - 1, 0, &team) == 0, "%s", weft_last_error());
    shmem_team_sync(team);
    shmem_team_destroy(team);
}

int main(void) {
    tap_start(0);
    int provided, self = 0;
    shmem_team_t team;
    bool early = shmemx_team_create(&self, 1, 0, &team) == -EPERM;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    tap_start(me = shmem_my_pe());
    npes = shmem_n_pes();
    given = shmem_malloc(NELEMS * sizeof *given);
    gathered = shmem_malloc(NELEMS * (size_t)npes * sizeof *gathered);
    word = shmem_malloc(sizeof *word);
    tap_case("random lists in random order");
    random_teams();
    tap_case("all PEs, the last one first");
    struct group all = group_of_all(me, npes);
    check_team(&all);
    tap_case("threads of a PE make teams at once");
    in_threads();
    tap_case("if no team is left, no PE gets one");
    until_none_is_left();
    tap_case("lists that are wrong");
    wrong_lists();
    shmem_barrier_all();
    tap_case("a member that has finalized");
    while_one_has_finalized();
    shmem_finalize();
    tap_case("outside of a job");
    EXPECT(early, "before shmem_init");
    refuse(&me, 1, -EPERM, "shmem_finalize");
    return tap_finish();
}
