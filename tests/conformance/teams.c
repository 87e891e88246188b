/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams (pitfalls 29 to 33): chains of random splits compared with plain lists of PEs, grids of
 * grids, immediate use, many teams alive, any order of destruction, the promise of TEAM_SHARED. All
 * single splits of a team are in tests/api/team.c. */
#include <shmem.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "tap.h"
#include "conformance/groups.h"
#include "api/model.h"

static int me, npes;

/* A team as a list of world numbers, which every PE of the parent keeps beside the handle. */
struct model {
    shmem_team_t team; /* SHMEM_TEAM_INVALID on PEs that are not members */
    int npes, world[GROUP_PES_MAX];
};

static int member_of(const struct model *model, int world) {
    for (int i = 0; i < model->npes; i++)
        if (model->world[i] == world)
            return i;
    return -1;
}

static void check_model(const struct model *model) {
    int my_pe = member_of(model, me);
    EXPECT((model->team == SHMEM_TEAM_INVALID) == (my_pe < 0), "member or not");
    EXPECT(shmem_team_my_pe(model->team) == my_pe, "%d, not %d", shmem_team_my_pe(model->team),
           my_pe);
    EXPECT(shmem_team_n_pes(model->team) == (my_pe < 0 ? -1 : model->npes), "%d members",
           shmem_team_n_pes(model->team));
    for (int i = 0; i < model->npes && my_pe >= 0; i++)
        EXPECT(shmem_team_translate_pe(model->team, i, SHMEM_TEAM_WORLD) == model->world[i],
               "member %d is %d", i, model->world[i]);
    for (int pe = 0; pe < npes && my_pe >= 0; pe++)
        EXPECT(shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, model->team) == member_of(model, pe),
               "PE %d", pe);
}

/* Members can use new teams immediately, without any other call. */
static void use(const struct model *model) {
    static long words[GROUP_PES_MAX];
    static long epoch[GROUP_PES_MAX];
    int my_pe = member_of(model, me);
    if (my_pe < 0)
        return;
    int next = (my_pe + 1) % model->npes,
        before = model->world[(my_pe + model->npes - 1) % model->npes];
    EXPECT(shmem_team_sync(model->team) == 0, "sync");
    long *there = shmem_team_ptr(model->team, &words[me], next);
    long value = ++epoch[0] * 100 + me;
    if (there)
        *there = value;
    else
        shmem_long_p(&words[me], value, model->world[next]), shmem_quiet();
    EXPECT(shmem_team_sync(model->team) == 0, "sync");
    EXPECT(words[before] % 100 == before, "%ld from PE %d", words[before], before);
}

/* Splits of splits, as deep as possible: the same random numbers on all members of the parent. */
static void chain(uint64_t seed) {
    enum { DEPTH = 6 };
    struct model models[DEPTH] = {{.team = SHMEM_TEAM_WORLD, .npes = npes}};
    struct random random = random_of(seed, 0);
    int depth = 1;
    for (int pe = 0; pe < npes; pe++)
        models[0].world[pe] = pe;
    for (; depth < DEPTH && models[depth - 1].team != SHMEM_TEAM_INVALID; depth++) {
        const struct model *parent = &models[depth - 1];
        struct model *child = &models[depth];
        int n = parent->npes, start = (int)random_below(&random, (size_t)n);
        int stride = (int)random_below(&random, 2 * (size_t)n + 1) - n;
        int room = stride > 0 ? (n - 1 - start) / stride : stride < 0 ? start / -stride : 0;
        child->npes = 1 + (int)random_below(&random, (size_t)room + 1);
        if (depth == 1 && seed % 3)
            start = seed % 3 == 1 ? 0 : n - 1, stride = seed % 3 == 1 ? 1 : -1, child->npes = n;
        for (int i = 0; i < child->npes; i++)
            child->world[i] = parent->world[start + i * stride];
        child->team = SHMEM_TEAM_WORLD;
        int failed = shmem_team_split_strided(parent->team, start, stride, child->npes, NULL, 0,
                                              &child->team);
        EXPECT(failed == 0, "split %d %d %d of %d: %d", start, stride, child->npes, n, failed);
        use(child);
        check_model(child);
    }
    bool outside_in = seed % 2; /* parents before children, or the reverse */
    for (int i = 1; i < depth; i++)
        shmem_team_destroy(models[outside_in ? i : depth - i].team);
}

/* Rows and columns of a grid of `n` PEs, and the rows and columns of the grids within them. */
static void grids(struct model *parent, int depth) {
    int n = parent->npes, my_pe = member_of(parent, me);
    for (int xrange = 1; xrange <= n + 1; xrange += depth ? 1 : 2) {
        shmem_team_t handles[2] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_WORLD};
        struct model x = {.npes = 0}, y = {.npes = 0};
        int failed =
            shmem_team_split_2d(parent->team, xrange, NULL, 0, &handles[0], NULL, 0, &handles[1]);
        EXPECT(failed == 0, "%d columns of %d PEs: %d", xrange, n, failed);
        int width = xrange > n ? n : xrange;
        for (int pe = 0; pe < n; pe++) {
            if (pe / width == my_pe / width)
                x.world[x.npes++] = parent->world[pe];
            if (pe % width == my_pe % width)
                y.world[y.npes++] = parent->world[pe];
        }
        x.team = handles[0];
        y.team = handles[1];
        check_model(&x);
        check_model(&y);
        use(&y);
        use(&x);
        if (depth < 1 && xrange == 3) {
            grids(&x, depth + 1);
            grids(&y, depth + 1);
        }
        shmem_team_destroy(x.team);
        shmem_team_destroy(y.team);
    }
}

/* A split fails on every member of the parent, and sets the handle accordingly. */
static void failures(void) {
    struct {
        int start, stride, size;
    } wrong[] = {{npes, 1, 1}, {-1, 1, 1}, {0, 1, npes + 1}, {npes - 1, 1, 2}, {0, -1, 2},
                 {0, 0, 2},    {0, 1, 0},  {0, npes, 2},     {0, 1 << 30, 3},  {0, 1, -1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        shmem_team_t team = SHMEM_TEAM_WORLD;
        int failed = shmem_team_split_strided(SHMEM_TEAM_WORLD, wrong[i].start, wrong[i].stride,
                                              wrong[i].size, NULL, 0, &team);
        EXPECT(failed != 0 && team == SHMEM_TEAM_INVALID, "case %zu: %d", i, failed);
    }
    shmem_team_t x = SHMEM_TEAM_WORLD, y = SHMEM_TEAM_WORLD;
    EXPECT(shmem_team_split_2d(SHMEM_TEAM_INVALID, 1, NULL, 0, &x, NULL, 0, &y) != 0, "no parent");
    EXPECT(x == SHMEM_TEAM_INVALID && y == SHMEM_TEAM_INVALID, "no parent");
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &x) != 0, "no parent");
    shmem_sync(SHMEM_TEAM_WORLD);
}

/* Different configurations on different rows; each team returns its configuration. */
static void configurations(void) {
    shmem_team_t x, y;
    shmem_team_config_t mine = {.num_contexts = 1 + me / 2}, yours = {.num_contexts = 7}, got;
    EXPECT(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, &mine, SHMEM_TEAM_NUM_CONTEXTS, &x, &yours, 0,
                               &y) == 0,
           "split");
    got.num_contexts = -1;
    EXPECT(shmem_team_get_config(x, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0, "x");
    EXPECT(got.num_contexts == 1 + me / 2, "%d", got.num_contexts);
    got.num_contexts = -9;
    EXPECT(shmem_team_get_config(y, 0, &got) == 0 && got.num_contexts == -9, "an empty mask");
    EXPECT(shmem_team_get_config(y, 0, NULL) == 0, "an empty mask");
    EXPECT(shmem_team_get_config(SHMEM_TEAM_INVALID, SHMEM_TEAM_NUM_CONTEXTS, &got) != 0, "none");
    shmem_team_destroy(y);
    shmem_team_destroy(x);
}

/* Members of TEAM_SHARED load and store each other's heap; other PEs have no such promise. */
static void shared(void) {
    static const shmem_team_t initialised[2] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED};
    long *word = shmem_calloc(64, sizeof *word);
    int n = shmem_team_n_pes(initialised[1]), rank = shmem_team_my_pe(SHMEM_TEAM_SHARED);
    EXPECT(n >= 1 && rank >= 0 && rank < n, "%d of %d", rank, n);
    for (int pe = 0; pe < n; pe++) {
        int world = shmem_team_translate_pe(SHMEM_TEAM_SHARED, pe, initialised[0]);
        long *there = shmem_ptr(word, world);
        EXPECT(there && there == shmem_team_ptr(SHMEM_TEAM_SHARED, word, pe), "member %d", pe);
        if (there)
            there[rank] = 10 + rank;
    }
    shmem_team_sync(SHMEM_TEAM_SHARED);
    for (int pe = 0; pe < n; pe++)
        EXPECT(word[pe] == 10 + pe, "from member %d: %ld", pe, word[pe]);
    EXPECT(shmem_team_ptr(SHMEM_TEAM_INVALID, word, 0) == NULL, "no team");
    EXPECT(shmem_team_ptr(SHMEM_TEAM_SHARED, &n, 0) == NULL, "not symmetric");
    shmem_free(word);
}

/* A hundred teams at once, each with its own sync, destroyed in another order than they were
 * made. */
static void many(void) {
    enum { MANY = 100 };
    shmem_team_t all[MANY];
    int made = 0;
    for (int i = 0; i < MANY; i++)
        made += shmem_team_split_strided(SHMEM_TEAM_WORLD, i % 2 ? npes - 1 : 0, i % 2 ? -1 : 1,
                                         npes, NULL, 0, &all[i]) == 0;
    EXPECT(made == MANY, "%d teams", made);
    for (int i = 0; i < MANY; i++) {
        EXPECT(shmem_team_sync(all[i * 37 % MANY]) == 0, "team %d", i);
        for (int j = 0; j < i % 7; j++)
            EXPECT(all[j] != all[i] || i == j, "teams %d and %d are one", i, j);
    }
    for (int i = 0; i < MANY; i++)
        shmem_team_destroy(all[i * 61 % MANY]);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    tap_case("29: chains of splits");
    for (uint64_t seed = 1; seed <= 60; seed++)
        chain(seed);
    shmem_barrier_all();
    tap_case("30: grids of grids");
    struct model world = {.team = SHMEM_TEAM_WORLD, .npes = npes};
    for (int pe = 0; pe < npes; pe++)
        world.world[pe] = pe;
    grids(&world, 0);
    tap_case("29, 31: splits that fail");
    failures();
    tap_case("30, 31: configurations");
    configurations();
    tap_case("32: TEAM_SHARED");
    shared();
    tap_case("33: many teams at once");
    many();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
