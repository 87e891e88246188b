/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts and sessions (pitfalls 25 to 28, 34): routines of every kind count PEs within the
 * context's team, however the team was made; creation may fail and reports it; contexts and teams
 * are destroyed in any legal order. Contexts of threads are in tests/conformance/threads.c, handles
 * in tests/api/ctx.c. */
#include <shmem.h>
#include <string.h>
#include "tap.h"
#include "conformance/groups.h"

static int me, npes;

/* One routine of each kind on the next member, given by its number in the team. */
static void one_of_each(const struct group *group, shmem_ctx_t ctx) {
    static struct {
        int p, put[3], iput[6], ibput[6], nbi[3];
        long add, inc, set, swap, compare_swap, payload[2];
        unsigned bits;
        float real;
        uint64_t sig, alone;
    } box;
    int n = group->npes, next = (group->my_pe + 1) % n, before = (group->my_pe + n - 1) % n;
    int mark = 1000 * group->my_pe, from_before = 1000 * before;
    int three[3] = {mark, mark + 1, mark + 2}, back[3] = {-1, -1, -1}, one = -1;
    long fetched[3] = {-1, -1, -1}, two[2] = {mark, mark + 9};
    memset(&box, 0, sizeof box);
    shmem_barrier_all();
    shmem_ctx_int_p(ctx, &box.p, mark, next);
    shmem_ctx_int_put(ctx, box.put, three, 3, next);
    shmem_ctx_int_iput(ctx, box.iput, three, 2, 1, 3, next);
    shmem_ctx_ibput32(ctx, box.ibput, three, 3, 1, 2, 2, next);
    shmem_ctx_putmem_nbi(ctx, box.nbi, three, sizeof three, next);
    shmem_ctx_long_atomic_add(ctx, &box.add, mark + 1, next);
    shmem_ctx_long_atomic_inc(ctx, &box.inc, next);
    shmem_ctx_long_atomic_set(ctx, &box.set, mark + 2, next);
    fetched[0] = shmem_ctx_long_atomic_swap(ctx, &box.swap, mark + 3, next);
    fetched[1] = shmem_ctx_long_atomic_compare_swap(ctx, &box.compare_swap, 0, mark + 4, next);
    shmem_ctx_uint_atomic_or(ctx, &box.bits, (unsigned)mark + 5, next);
    shmem_ctx_float_atomic_set(ctx, &box.real, (float)mark, next);
    shmem_ctx_long_atomic_fetch_add_nbi(ctx, &fetched[2], &box.add, 0, next);
    shmem_ctx_signal_add(ctx, &box.alone, (uint64_t)mark + 6, next);
    shmem_ctx_long_put_signal(ctx, box.payload, two, 2, &box.sig, 1, SHMEM_SIGNAL_ADD, next);
    shmem_signal_wait_until(&box.sig, SHMEM_CMP_EQ, 1);
    EXPECT(box.payload[0] == from_before && box.payload[1] == from_before + 9, "put_signal");
    shmem_ctx_quiet(ctx);
    EXPECT(fetched[0] == 0 && fetched[1] == 0 && fetched[2] == mark + 1, "%s: fetched %ld %ld %ld",
           group->name, fetched[0], fetched[1], fetched[2]);
    shmem_barrier_all();
    EXPECT(box.p == from_before && box.put[2] == from_before + 2 && box.nbi[1] == from_before + 1,
           "%s: p %d, put %d, nbi %d", group->name, box.p, box.put[2], box.nbi[1]);
    EXPECT(box.iput[4] == from_before + 2 && box.iput[1] == 0, "%s: iput", group->name);
    EXPECT(box.ibput[1] == from_before + 1 && box.ibput[4] == from_before + 2, "%s: ibput",
           group->name);
    EXPECT(box.add == from_before + 1 && box.inc == 1 && box.set == from_before + 2 &&
               box.swap == from_before + 3 && box.compare_swap == from_before + 4,
           "%s: atomics %ld %ld %ld %ld %ld", group->name, box.add, box.inc, box.set, box.swap,
           box.compare_swap);
    EXPECT(box.bits == (unsigned)from_before + 5 && box.real == (float)from_before &&
               box.alone == (uint64_t)from_before + 6,
           "%s: bits, real, signal", group->name);
    one = shmem_ctx_int_g(ctx, &box.p, next);
    shmem_ctx_int_get(ctx, back, box.put, 1, next);
    shmem_ctx_int_iget(ctx, back + 1, box.iput + 2, 1, 2, 1, next);
    shmem_ctx_get32_nbi(ctx, back + 2, box.nbi + 2, 1, next);
    shmem_ctx_quiet(ctx);
    EXPECT(one == mark && back[0] == mark && back[1] == mark + 1 && back[2] == mark + 2,
           "%s: g %d, get %d, iget %d, get_nbi %d", group->name, one, back[0], back[1], back[2]);
    EXPECT(shmem_ctx_long_atomic_fetch(ctx, &box.set, next) == mark + 2, "%s: fetch", group->name);
    shmem_barrier_all();
}

static void numbers_of_teams(void) {
    struct group groups[GROUPS];
    groups_make(groups);
    for (int i = 0; i < GROUPS; i++) {
        shmem_ctx_t ctx;
        shmem_team_t team = SHMEM_TEAM_INVALID;
        int failed = shmem_team_create_ctx(groups[i].team, i % 2 ? SHMEM_CTX_SERIALIZED : 0, &ctx);
        EXPECT(failed == 0 && ctx != SHMEM_CTX_INVALID, "%s: %d", groups[i].name, failed);
        EXPECT(shmem_ctx_get_team(ctx, &team) == 0 && shmem_team_n_pes(team) == groups[i].npes,
               "%s: another team", groups[i].name);
        one_of_each(&groups[i], ctx);
        shmem_ctx_destroy(ctx);
    }
    groups_drop(groups);
}

/* Creation is local: PEs make different numbers of contexts, and do not wait for each other. */
static void creation_is_local(void) {
    static long word;
    shmem_ctx_t all[16];
    int many = 1 + me % 4 * 5, made = 0;
    for (int i = 0; i < many; i++)
        made += shmem_ctx_create(i % 3 ? 0 : SHMEM_CTX_PRIVATE, &all[i]) == 0;
    EXPECT(made == many, "%d of %d", made, many);
    for (int i = 0; i < many; i++)
        shmem_ctx_long_atomic_inc(all[i], &word, 0);
    for (int i = many; i-- > 0;)
        shmem_ctx_destroy(all[i]);
    shmem_barrier_all();
    long expected = 0;
    for (int pe = 0; pe < npes; pe++)
        expected += 1 + pe % 4 * 5;
    EXPECT(me != 0 || word == expected, "%ld, not %ld", word, expected);
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    EXPECT(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID,
           "a context of no team");
}

/* As many contexts as the team was configured for; one if it was configured for zero. */
static void configured(void) {
    for (int wanted = 0; wanted <= 8; wanted += 4) {
        shmem_team_config_t config = {.num_contexts = wanted}, got = {.num_contexts = -1};
        shmem_team_t team;
        shmem_ctx_t all[8];
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, &config, SHMEM_TEAM_NUM_CONTEXTS,
                                 &team);
        EXPECT(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0 &&
                   got.num_contexts >= wanted,
               "%d of %d", got.num_contexts, wanted);
        int made = 0, most = wanted ? wanted : 1;
        for (int i = 0; i < most; i++)
            made += shmem_team_create_ctx(team, 0, &all[i]) == 0;
        EXPECT(made == most, "%d of %d contexts", made, most);
        for (int i = 0; i < made; i++)
            shmem_ctx_destroy(all[i]);
        shmem_team_destroy(team);
    }
}

/* A team's contexts first; a team with its shareable contexts; a parent before its child, whose
 * contexts remain valid. Destruction completes a context's pending operations. */
static void ends(void) {
    static long words[3];
    shmem_team_t parent, child;
    shmem_ctx_t of_parent, of_child, of_world;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &parent);
    shmem_team_split_strided(parent, npes - 1, -1, npes, NULL, 0, &child);
    shmem_team_create_ctx(parent, 0, &of_parent);
    shmem_team_create_ctx(child, 0, &of_child);
    shmem_ctx_create(SHMEM_CTX_NOSTORE, &of_world);
    long mine = me + 1;
    shmem_ctx_long_put_nbi(of_parent, &words[0], &mine, 1, (me + 1) % npes);
    shmem_ctx_quiet(of_parent);
    shmem_team_destroy(parent); /* of_parent is shareable: it is destroyed, too */
    shmem_ctx_long_p(of_child, &words[1], me + 1, shmem_team_my_pe(child));
    shmem_ctx_long_p(of_world, &words[2], me + 1, me);
    shmem_ctx_destroy(of_child);
    shmem_team_destroy(child);
    shmem_barrier_all();
    EXPECT(words[0] == (me + npes - 1) % npes + 1 && words[1] == me + 1, "%ld %ld", words[0],
           words[1]);
    EXPECT(words[2] == me + 1 && shmem_ctx_long_g(of_world, &words[2], me) == me + 1, "%ld",
           words[2]);
    shmem_ctx_destroy(of_world);
    shmem_team_destroy(SHMEM_TEAM_INVALID);
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
}

/* A session is a hint: started once or again, with other options or none, stopped once or twice, it
 * does not change the results of operations, what a quiet completes, or what a fence orders. */
static void sessions(void) {
    static long data[8], counter;
    static uint64_t told;
    int next = (me + 1) % npes, before = (me + npes - 1) % npes;
    shmem_ctx_session_config_t config = {.total_ops = 3};
    shmem_ctx_t created;
    EXPECT(shmem_ctx_create(0, &created) == 0, "no context");
    const shmem_ctx_t all[] = {SHMEM_CTX_DEFAULT, created};
    shmem_ctx_session_start(SHMEM_CTX_INVALID, 0, NULL, 0);
    shmem_ctx_session_stop(SHMEM_CTX_INVALID);
    for (long turn = 1; turn <= 40; turn++) {
        shmem_ctx_t ctx = all[turn % 2];
        long mine[8], fetched = -1;
        for (int i = 0; i < 8; i++)
            mine[i] = turn * 100 + i + me;
        shmem_ctx_session_start(ctx, turn % 4 ? SHMEM_CTX_SESSION_BATCH : 0, &config,
                                turn % 3 ? SHMEM_CTX_SESSION_TOTAL_OPS : 0);
        if (turn % 5 == 0) /* again: more options, another number of operations, far too few */
            shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, NULL, 0);
        for (int i = 0; i < 8; i++)
            shmem_ctx_long_put_nbi(ctx, &data[i], &mine[i], 1, next);
        shmem_ctx_fence(ctx);
        shmem_ctx_long_atomic_fetch_inc_nbi(ctx, &fetched, &counter, next);
        shmem_ctx_session_stop(ctx);
        if (turn % 3 == 0)
            shmem_ctx_session_stop(ctx); /* no session: nothing to do */
        shmem_ctx_quiet(ctx);
        EXPECT(fetched == turn - 1, "%ld in turn %ld", fetched, turn);
        shmem_signal_set(&told, (uint64_t)turn, next);
        shmem_signal_wait_until(&told, SHMEM_CMP_EQ, (uint64_t)turn);
        for (int i = 0; i < 8; i++)
            EXPECT(data[i] == turn * 100 + i + before, "element %d: %ld", i, data[i]);
        shmem_barrier_all();
    }
    shmem_ctx_session_start(created, SHMEM_CTX_SESSION_BATCH, NULL, 0);
    shmem_ctx_destroy(created); /* with its session */
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    tap_case("25: PE numbers are the team's, for every kind of routine and team");
    numbers_of_teams();
    tap_case("26: creation is local");
    creation_is_local();
    tap_case("27: configured teams");
    configured();
    tap_case("28: the order of ends");
    ends();
    tap_case("34: sessions are hints");
    sessions();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
