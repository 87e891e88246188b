/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams: membership, numbers and translation of strided and two-dimensional splits against plain
 * arithmetic; results for invalid handles and arguments; teams in any number and order; sync of a
 * team. PEs: 1 2 3 4 7 */
#include <shmem.h>
#include <limits.h>
#include <stdbool.h>
#include "api/model.h"
#include "reach.h"
#include "tap.h"

static int me, npes;

/* Checks members against arithmetic: parent's PE start + i * stride for i < size, for all numbers
 * of the world. */
static void check_strided(shmem_team_t parent, int start, int stride, int size) {
    shmem_team_t team = SHMEM_TEAM_WORLD;
    int in_parent = shmem_team_my_pe(parent), expected = -1;
    int failed = shmem_team_split_strided(parent, start, stride, size, NULL, 0, &team);
    EXPECT(failed == 0, "split %d %d %d: %d", start, stride, size, failed);
    for (int i = 0; i < size; i++)
        if (start + i * stride == in_parent)
            expected = i;
    EXPECT((team != SHMEM_TEAM_INVALID) == (expected >= 0), "split %d %d %d: member or not", start,
           stride, size);
    EXPECT(shmem_team_my_pe(team) == expected, "split %d %d %d: I am %d, not %d", start, stride,
           size, shmem_team_my_pe(team), expected);
    EXPECT(shmem_team_n_pes(team) == (expected >= 0 ? size : -1), "split %d %d %d: %d members",
           start, stride, size, shmem_team_n_pes(team));
    for (int i = 0; i < size && expected >= 0; i++) {
        int there = start + i * stride;
        EXPECT(shmem_team_translate_pe(team, i, parent) == there, "member %d", i);
        EXPECT(shmem_team_translate_pe(parent, there, team) == i, "parent's %d", there);
        EXPECT(shmem_team_sync(team) == 0, "sync");
    }
    shmem_team_destroy(team);
}

static void every_strided(shmem_team_t parent) {
    int n = shmem_team_n_pes(parent);
    for (int start = 0; start < n; start++)
        for (int stride = -n; stride <= n; stride++)
            for (int size = 1; size <= n; size++) {
                int last = start + (size - 1) * stride;
                if (last >= 0 && last < n && (stride != 0 || size == 1))
                    check_strided(parent, start, stride, size);
            }
}

/* Refused on every member. */
static void refused(void) {
    static const int wrong[][3] = {{-1, 1, 1}, {0, 1, 0}, {0, 1, -1}, {0, 0, 2}, {0, -1, 2}};
    shmem_team_t team;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        team = SHMEM_TEAM_WORLD;
        int failed = shmem_team_split_strided(SHMEM_TEAM_WORLD, wrong[i][0], wrong[i][1],
                                              wrong[i][2], NULL, 0, &team);
        EXPECT(failed != 0 && team == SHMEM_TEAM_INVALID, "case %zu: %d", i, failed);
    }
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes + 1, NULL, 0, &team) != 0,
           "larger");
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, npes, 1, 1, NULL, 0, &team) != 0, "behind");
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0, "no parent");
    EXPECT(team == SHMEM_TEAM_INVALID, "no parent");
}

static void invalid_handles(void) {
    shmem_team_t wild = (shmem_team_t)(uintptr_t)0x7ffd12345678;
    shmem_team_config_t config = {5};
    EXPECT(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_my_pe(wild) == -1, "my_pe");
    EXPECT(shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(wild) == -1, "n_pes");
    EXPECT(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD) == -1, "from none");
    EXPECT(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_INVALID) == -1, "to none");
    EXPECT(shmem_team_translate_pe(SHMEM_TEAM_WORLD, npes, SHMEM_TEAM_WORLD) == -1, "no such PE");
    EXPECT(shmem_team_translate_pe(SHMEM_TEAM_WORLD, -1, SHMEM_TEAM_WORLD) == -1, "no such PE");
    EXPECT(shmem_team_sync(SHMEM_TEAM_INVALID) != 0, "sync");
    EXPECT(shmem_team_get_config(SHMEM_TEAM_INVALID, 0, NULL) != 0, "get_config");
    EXPECT(shmem_team_get_config(SHMEM_TEAM_WORLD, 0, NULL) == 0, "an empty mask");
    EXPECT(shmem_team_get_config(SHMEM_TEAM_WORLD, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0, "world");
    shmem_team_destroy(SHMEM_TEAM_INVALID);
}

/* SHARED has the PEs to which this PE has a pointer, in the order of WORLD. */
static void predefined(void) {
    static long object;
    int near = 0;
    EXPECT(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_WORLD) == npes,
           "WORLD: %d of %d", me, npes);
    for (int pe = 0; pe < npes; pe++) {
        int there = shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED);
        EXPECT(!!shmem_ptr(&object, pe) == reach_is_near(pe), "pointer to PE %d", pe);
        EXPECT(there == (reach_is_near(pe) ? near : -1), "PE %d is %d of SHARED", pe, there);
        near += reach_is_near(pe);
    }
    EXPECT(shmem_team_n_pes(SHMEM_TEAM_SHARED) == near, "SHARED has other members");
    EXPECT(shmem_team_my_pe(SHMEM_TEAM_SHARED) ==
               shmem_team_translate_pe(SHMEM_TEAM_WORLD, me, SHMEM_TEAM_SHARED),
           "SHARED: I am %d", shmem_team_my_pe(SHMEM_TEAM_SHARED));
}

static void config(void) {
    shmem_team_config_t wanted = {3}, got = {-1};
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, &wanted, SHMEM_TEAM_NUM_CONTEXTS, &team);
    EXPECT(shmem_team_get_config(team, 0, NULL) == 0, "an empty mask");
    EXPECT(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0 && got.num_contexts == 3,
           "%d contexts", got.num_contexts);
    shmem_team_destroy(team);
}

/* Checks row and column of a grid of `xrange` columns whose last row may be short. */
static void check_grid(int xrange) {
    shmem_team_t x, y;
    int failed = shmem_team_split_2d(SHMEM_TEAM_WORLD, xrange, NULL, 0, &x, NULL, 0, &y);
    int width = xrange < npes ? xrange : npes, row = me / width, column = me % width;
    int in_row = npes - row * width < width ? npes - row * width : width;
    int in_column = (npes - column + width - 1) / width;
    EXPECT(failed == 0, "xrange %d: %d", xrange, failed);
    EXPECT(shmem_team_my_pe(x) == column && shmem_team_n_pes(x) == in_row, "xrange %d: %d of %d",
           xrange, shmem_team_my_pe(x), shmem_team_n_pes(x));
    EXPECT(shmem_team_my_pe(y) == row && shmem_team_n_pes(y) == in_column, "xrange %d: %d of %d",
           xrange, shmem_team_my_pe(y), shmem_team_n_pes(y));
    for (int i = 0; i < in_row; i++)
        EXPECT(shmem_team_translate_pe(x, i, SHMEM_TEAM_WORLD) == row * width + i, "x %d", i);
    for (int i = 0; i < in_column; i++)
        EXPECT(shmem_team_translate_pe(y, i, SHMEM_TEAM_WORLD) == i * width + column, "y %d", i);
    EXPECT(shmem_team_sync(x) == 0 && shmem_team_sync(y) == 0, "sync");
    shmem_team_destroy(x);
    shmem_team_destroy(y);
}

/* A single member may have any stride; members of the new team must pass equal arguments. */
static void odd_arguments(void) {
    static const int strides[] = {0, 1, -1, 7, INT_MAX, INT_MIN};
    shmem_team_config_t wanted = {2};
    const long mask = SHMEM_TEAM_NUM_CONTEXTS;
    shmem_team_t team;
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        check_strided(SHMEM_TEAM_WORLD, npes - 1, strides[i], 1);
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, INT_MIN, INT_MIN, INT_MAX, NULL, 0, &team) &&
               shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, INT_MAX, 3, NULL, 0, &team),
           "far away");
    wanted.num_contexts = me == npes - 1 ? -1 : 2;
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, &wanted, mask, &team) != 0 &&
               team == SHMEM_TEAM_INVALID,
           "minus one context on one PE");
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, &wanted, 1L << 9, &team) != 0,
           "no such parameter");
    wanted.num_contexts = me;
    int failed = shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, &wanted, mask, &team);
    EXPECT((failed != 0) == (npes > 1) && (team == SHMEM_TEAM_INVALID) == (npes > 1),
           "parameters that differ");
    shmem_team_destroy(team);
    failed = shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, &wanted, mask, &team);
    EXPECT(failed == 0, "parameters of a PE that is not a member");
    shmem_team_destroy(team);
}

/* Makes teams until there are no more: all members get the error, and room for one team is room for
 * exactly one. */
enum { MOST_TEAMS = 300 };
static shmem_team_t many[MOST_TEAMS];

static int split_half(int parity, shmem_team_t *team) {
    int size = (npes - parity + 1) / 2;
    return shmem_team_split_strided(SHMEM_TEAM_WORLD, parity, 2, size, NULL, 0, team);
}

static void all_slots(void) {
    shmem_team_t team;
    static long least;
    int made = 0;
    while (made < MOST_TEAMS && split_half(0, &many[made]) == 0)
        made++;
    least = made;
    shmem_barrier_all();
    EXPECT(made >= 200 && made < MOST_TEAMS, "%d teams", made);
    for (int pe = 0; pe < npes; pe++)
        EXPECT(shmem_long_g(&least, pe) == made, "PE %d has %ld, I have %d", pe,
               shmem_long_g(&least, pe), made);
    EXPECT(many[made] == SHMEM_TEAM_INVALID, "a team from a failure");
    int failed = shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
    EXPECT(failed != 0 && team == SHMEM_TEAM_INVALID, "a team of all PEs, some without room");
    EXPECT(npes == 1 || split_half(1, &team) == 0, "the others have room");
    if (npes > 1)
        shmem_team_destroy(team);
    for (int i = 0; i < made;
         i++) { /* odd ones first, from the end; even ones from the beginning */
        int which = i < made / 2 ? made - 1 - (made % 2) - 2 * i : 2 * (i - made / 2);
        EXPECT(which >= 0 && which < made, "%d", which);
        if (i % 50 == 0)
            shmem_team_sync(many[which]);
        shmem_team_destroy(many[which]);
    }
    for (int i = 0; i < 600; i++) {
        failed = shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
        EXPECT(failed == 0 && shmem_team_sync(team) == 0, "again, %d", i);
        shmem_team_destroy(team);
    }
}

/* A tree of teams against lists of their members. All PEs draw equal numbers, so each knows all
 * teams, including those that it is not in; teams end in any order, also parents before children.
 */
enum { NODES = 12, MEMBERS = 16 };
struct node {
    bool alive;
    int size, member[MEMBERS];
    shmem_team_t team;
};
static struct node tree[NODES] = {{.alive = true}};

static int place_in(const struct node *node, int pe) {
    for (int i = 0; i < node->size; i++)
        if (node->member[i] == pe)
            return i;
    return -1;
}

static void grow(struct random *random, const struct node *parent, struct node *node) {
    int start, stride, size;
    do {
        start = (int)random_below(random, (size_t)parent->size);
        stride = (int)random_below(random, (size_t)(2 * parent->size + 1)) - parent->size;
        size = 1 + (int)random_below(random, (size_t)parent->size);
    } while (start + stride * (size - 1) < 0 || start + stride * (size - 1) >= parent->size ||
             (stride == 0 && size > 1));
    *node = (struct node){.alive = true, .size = size};
    for (int i = 0; i < size; i++)
        node->member[i] = parent->member[start + i * stride];
    if (place_in(parent, me) < 0)
        return;
    int failed = shmem_team_split_strided(parent->team, start, stride, size, NULL, 0, &node->team);
    EXPECT(failed == 0, "split %d %d %d of %d", start, stride, size, parent->size);
}

/* Translates every number of one team to another, and checks the pointers that belong to it. */
static void check_pair(const struct node *from, const struct node *to) {
    static long object;
    EXPECT(shmem_team_my_pe(from->team) == place_in(from, me), "my number");
    if (place_in(from, me) < 0)
        return;
    EXPECT(shmem_team_n_pes(from->team) == from->size, "size");
    for (int i = -1; i <= from->size; i++) {
        bool exists = i >= 0 && i < from->size;
        int there = exists && place_in(to, me) >= 0 ? place_in(to, from->member[i]) : -1;
        EXPECT(shmem_team_translate_pe(from->team, i, to->team) == there, "%d in the other: %d", i,
               there);
        void *pointer = exists ? shmem_ptr(&object, from->member[i]) : NULL;
        EXPECT(shmem_team_ptr(from->team, &object, i) == pointer, "pointer to %d", i);
    }
}

static void random_tree(void) {
    struct random random = random_of(11, 0);
    tree[0] = (struct node){.alive = true, .size = npes, .team = SHMEM_TEAM_WORLD};
    for (int pe = 0; pe < npes; pe++)
        tree[0].member[pe] = pe;
    for (int turn = 0; turn < 400; turn++) {
        struct node *node = &tree[1 + random_below(&random, NODES - 1)];
        struct node *parent = &tree[random_below(&random, NODES)];
        if (node->alive) {
            shmem_team_destroy(node->team);
            *node = (struct node){0};
        } else if (parent->alive) {
            grow(&random, parent, node);
        }
        for (int i = 0; i < NODES; i++)
            if (node->alive && tree[i].alive) {
                check_pair(node, &tree[i]);
                check_pair(&tree[i], node);
            }
    }
    for (int i = 1; i < NODES; i++)
        shmem_team_destroy(tree[i].team);
}

/* A destroyed handle is invalid, also after its place was reused. */
static void stale_handle(void) {
    shmem_team_t team, again;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
    shmem_team_destroy(team);
    EXPECT(shmem_team_n_pes(team) == -1, "destroyed, and still there");
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &again);
    EXPECT(team != again && shmem_team_n_pes(team) == -1, "the old handle names the new team");
    shmem_team_destroy(again);
}

/* Stores before the sync are visible after it. */
static void sync_of_a_team(void) {
    static long stored;
    shmem_team_t team;
    int half = (npes + 1) / 2, first = me < half ? 0 : half;
    int size = me < half ? half : npes - half, rank = me - first;
    shmem_team_t lower, upper;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, half, NULL, 0, &lower);
    if (npes > half)
        shmem_team_split_strided(SHMEM_TEAM_WORLD, half, 1, npes - half, NULL, 0, &upper);
    team = me < half ? lower : upper;
    for (long turn = 1; turn <= 100; turn++) {
        reach_store(&stored, turn, first + (rank + 1) % size);
        shmem_team_sync(team);
        EXPECT(stored == turn, "%ld in turn %ld", stored, turn);
        shmem_team_sync(team);
    }
    shmem_team_destroy(team);
    shmem_sync(SHMEM_TEAM_WORLD);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    tap_case("predefined teams");
    predefined();
    tap_case("every strided split of the world");
    every_strided(SHMEM_TEAM_WORLD);
    tap_case("every strided split of a team in reverse order");
    shmem_team_t reversed;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, NULL, 0, &reversed);
    every_strided(reversed);
    shmem_team_destroy(reversed);
    tap_case("splits that cannot be");
    refused();
    tap_case("invalid handles");
    invalid_handles();
    tap_case("configuration");
    config();
    tap_case("grids");
    for (int xrange = 1; xrange <= npes + 2; xrange++)
        check_grid(xrange);
    shmem_team_t x, y;
    EXPECT(shmem_team_split_2d(SHMEM_TEAM_WORLD, 0, NULL, 0, &x, NULL, 0, &y) != 0, "no columns");
    EXPECT(x == SHMEM_TEAM_INVALID && y == SHMEM_TEAM_INVALID, "no columns");
    tap_case("a destroyed handle");
    stale_handle();
    tap_case("odd arguments");
    odd_arguments();
    tap_case("all teams in use");
    all_slots();
    tap_case("a tree of teams");
    random_tree();
    tap_case("sync of half the PEs");
    sync_of_a_team();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
