/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams: membership, numbers and translation of strided and two-dimensional splits against plain
 * arithmetic; what invalid handles and arguments give; sync of a team. */
#include <shmem.h>
#include "tap.h"

static int me, npes;

/* Members by arithmetic: parent's PE start + i * stride for i < size; all of the world's numbers.
 */
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

/* Refused on every member alike. */
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

static void predefined(void) {
    static const shmem_team_t all[] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED};
    for (int i = 0; i < 2; i++) {
        EXPECT(shmem_team_my_pe(all[i]) == me, "team %d: I am %d", i, shmem_team_my_pe(all[i]));
        EXPECT(shmem_team_n_pes(all[i]) == npes, "team %d: %d PEs", i, shmem_team_n_pes(all[i]));
    }
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

/* Row and column of a grid of `xrange` columns whose last row may be short. */
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

/* A handle that was destroyed is none, also after its place was taken again. */
static void stale_handle(void) {
    shmem_team_t team, again;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
    shmem_team_destroy(team);
    EXPECT(shmem_team_n_pes(team) == -1, "destroyed, and still there");
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &again);
    EXPECT(team != again && shmem_team_n_pes(team) == -1, "the old handle names the new team");
    shmem_team_destroy(again);
}

/* What was stored before the sync is visible after it. */
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
        long *there = shmem_ptr(&stored, first + (rank + 1) % size);
        *there = turn;
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
    tap_case("sync of half the PEs");
    sync_of_a_team();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
