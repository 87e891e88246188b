/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: wherever the members are, collectives move the same data as on one host, and
 * reductions and scans of every operation and type have its bits: on teams, also in reverse order
 * and of every second PE, and on active sets, in place and not, with random sizes around every
 * change of algorithm.
 * PEs: 6
 * Far: each reorder=16,delay_us=50
 * Far: 3+3
 * Far: 2+2+2 reorder=16,delay_us=50
 * Far: cyclic:2 reorder=16,delay_us=50
 * Far: list:0,1,1,0,2,2
 * Far: 4+1+1 reorder=16 */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/team.h"
#include "coll/active.h"
#include "coll/choice.h"
#include "coll/collective.h"
#include "coll/values.h"
#include "api/model.h"
#include "tap.h"

enum { MEMBERS_MAX = 16, BYTES = 400 << 10 };

static _Alignas(64) char source[BYTES], dest[BYTES * MEMBERS_MAX];
static char *want, *theirs;
static long psync[2][SHMEM_SYNC_SIZE];
static struct random common;
static int nsync, draws = 1; /* of sizes, for each operation and type */
static uint64_t seed = 1;

/* Algorithms change at these sizes: a packet, the packets of all, a grain, a piece, several
 * pieces. */
static size_t draw_bytes(int npes, size_t most) {
    const size_t edges[] = {1,
                            64,
                            WEFT_POST_BYTES,
                            WEFT_PACKET_BYTES,
                            WEFT_PACKET_BYTES / (size_t)npes,
                            WEFT_RECEIVE_BYTES / (size_t)npes,
                            WEFT_RECEIVE_BYTES / (size_t)(npes * npes),
                            60 << 10,
                            120 << 10,
                            180 << 10,
                            BYTES};
    size_t edge = edges[random_below(&common, sizeof edges / sizeof *edges)];
    size_t bytes = edge + random_below(&common, 160) - 80;
    if (random_below(&common, 3) == 0)
        bytes = random_below(&common, most);
    return bytes == 0 || bytes > SIZE_MAX / 2 ? 1 : bytes > most ? most : bytes;
}

static void fill(char *at, enum weft_number number, int pe, size_t nelems) {
    size_t elem = weft_folds[WEFT_FOLD_SUM][number].elem_bytes;
    memset(at, 0, nelems * elem);
    switch (number) {
    case WEFT_NUMBER_FLOAT:
        FILL(float);
    case WEFT_NUMBER_DOUBLE:
        FILL(double);
    case WEFT_NUMBER_LONGDOUBLE:
        FILL(long double);
    case WEFT_NUMBER_COMPLEXF:
        FILL(float _Complex);
    case WEFT_NUMBER_COMPLEXD:
        FILL(double _Complex);
    default:
        random_fill(&(struct random){(uint64_t)pe}, at, nelems * elem);
    }
}

static void fill_bytes(char *at, int pe, size_t bytes) {
    fill(at, WEFT_NUMBER_U8, pe, bytes);
}

/* --- Reductions and scans -------------------------------------------------------------------- */

/* want = the fold of the first n members' sources, in their order; zeros if n is 0. */
static void fold_all(const struct weft_group *group, enum weft_number number,
                     const struct weft_folding *folding, int n) {
    size_t bytes = folding->nelems * folding->fold->elem_bytes;
    memset(want, 0, bytes);
    for (int member = 0; member < n; member++) {
        fill(member == 0 ? want : theirs, number, weft_group_pe(group, member), folding->nelems);
        if (member > 0)
            folding->fold->pair(want, want, theirs, folding->nelems);
    }
}

static void check_fold(const struct weft_group *group, enum weft_fold_op op,
                       enum weft_number number, enum weft_fold_of of, bool in_place) {
    const struct weft_fold *fold = &weft_folds[op][number];
    size_t elem = fold->elem_bytes, bytes = draw_bytes(group->npes, BYTES - elem) + elem - 1;
    struct weft_folding folding = {fold, bytes / elem, of, NULL};
    char *to = in_place ? source : dest;
    int n = of == WEFT_FOLD_OF_ALL ? group->npes : group->me + (of == WEFT_FOLD_UP_TO_OWN);
    fold_all(group, number, &folding, n);
    fill(source, number, shmem_my_pe(), folding.nelems);
    weft_group_fold(group, to, source, &folding);
    EXPECT(same(number, to, want, folding.nelems * elem),
           "op %d of number %d, of %d: other bits in %zu elements of %d members, in place %d", op,
           number, of, folding.nelems, group->npes, in_place);
}

/* Returns a group for each call: an active set alternates between two pSyncs. */
typedef struct weft_group group_maker(const void *of);

static void check_folds(group_maker *make, const void *of) {
    for (int op = 0; op < WEFT_FOLD_OPS; op++)
        for (int number = 0; number < WEFT_NUMBER_BF16; number++)
            for (int draw = 0; draw < draws && weft_folds[op][number].pair; draw++) {
                struct weft_group group = make(of);
                check_fold(&group, (enum weft_fold_op)op, (enum weft_number)number,
                           WEFT_FOLD_OF_ALL, random_below(&common, 2));
            }
}

/* Only for teams. */
static void check_scans(group_maker *make, const void *of) {
    for (int number = 0; number < WEFT_NUMBER_BF16; number++)
        for (int draw = 0; draw < 2 * draws; draw++) {
            struct weft_group group = make(of);
            check_fold(&group, WEFT_FOLD_SUM, (enum weft_number)number,
                       draw % 2 ? WEFT_FOLD_UP_TO_OWN : WEFT_FOLD_BEFORE_OWN,
                       random_below(&common, 2));
        }
}

/* --- Copies ----------------------------------------------------------------------------------- */

static void expect_block(const char *at, int pe, size_t from, size_t bytes, const char *what) {
    fill_bytes(theirs, pe, from + bytes);
    EXPECT(memcmp(at, theirs + from, bytes) == 0, "%s: other bytes than PE %d has, of %zu", what,
           pe, bytes);
}

static void check_broadcast(const struct weft_group *group) {
    size_t bytes = draw_bytes(group->npes, BYTES);
    int root = (int)random_below(&common, (size_t)group->npes);
    fill_bytes(source, shmem_my_pe(), bytes);
    memset(dest, 1, bytes + 1);
    weft_group_broadcast(group, dest, source, bytes, root);
    if (group->team || group->me != root)
        expect_block(dest, weft_group_pe(group, root), 0, bytes, "broadcast");
    EXPECT(dest[bytes] == 1, "broadcast: a byte after %zu", bytes);
}

static void check_fcollect(const struct weft_group *group) {
    size_t bytes = draw_bytes(group->npes, BYTES);
    fill_bytes(source, shmem_my_pe(), bytes);
    weft_group_fcollect(group, dest, source, bytes);
    for (int member = 0; member < group->npes; member++)
        expect_block(dest + (size_t)member * bytes, weft_group_pe(group, member), 0, bytes,
                     "fcollect");
}

/* Some members contribute nothing; each member computes the sizes of all. */
static void check_collect(const struct weft_group *group) {
    size_t sizes[MEMBERS_MAX], offset = 0;
    bool small = random_below(&common, 3) == 0;
    for (int member = 0; member < group->npes; member++)
        sizes[member] =
            random_below(&common, 4) == 0 ? 0 : draw_bytes(group->npes, small ? 100 : BYTES);
    fill_bytes(source, shmem_my_pe(), sizes[group->me]);
    weft_group_collect(group, dest, source, sizes[group->me]);
    for (int member = 0; member < group->npes; offset += sizes[member++])
        expect_block(dest + offset, weft_group_pe(group, member), 0, sizes[member], "collect");
}

static void check_alltoall(const struct weft_group *group) {
    size_t bytes = draw_bytes(group->npes, BYTES / (size_t)group->npes);
    fill_bytes(source, shmem_my_pe(), bytes * (size_t)group->npes);
    weft_group_alltoall(group, dest, source, bytes);
    for (int member = 0; member < group->npes; member++)
        expect_block(dest + (size_t)member * bytes, weft_group_pe(group, member),
                     (size_t)group->me * bytes, bytes, "alltoall");
}

static void check_alltoalls(const struct weft_group *group) {
    size_t most = BYTES / (size_t)group->npes / 8 / 3, n = (size_t)group->npes;
    size_t nelems = 1 + random_below(&common, random_below(&common, 2) ? most : 30);
    struct weft_blocks_shape shape = {nelems, 8, 1 + (ptrdiff_t)random_below(&common, 3),
                                      1 + (ptrdiff_t)random_below(&common, 3)};
    uint64_t *from = (uint64_t *)source, *to = (uint64_t *)dest;
    for (size_t i = 0; i < n * nelems; i++)
        from[i * (size_t)shape.source_stride] = bits_of(shmem_my_pe(), i);
    weft_group_alltoalls(group, dest, source, &shape);
    for (int member = 0; member < group->npes; member++)
        for (size_t i = 0; i < nelems; i++) {
            uint64_t got = to[((size_t)member * nelems + i) * (size_t)shape.dest_stride];
            EXPECT(got == bits_of(weft_group_pe(group, member), (size_t)group->me * nelems + i),
                   "alltoalls: element %zu of %zu from member %d", i, nelems, member);
        }
}

static void check_moves(group_maker *make, const void *of) {
    static void (*const checks[])(const struct weft_group *) = {
        check_broadcast, check_fcollect, check_collect, check_alltoall, check_alltoalls};
    for (int draw = 0; draw < 40 * draws; draw++) {
        struct weft_group group = make(of);
        checks[random_below(&common, sizeof checks / sizeof *checks)](&group);
    }
}

/* --- Groups ---------------------------------------------------------------------------------- */

static struct weft_group group_of_team(const void *team) {
    return weft_group_of((struct weft_team *)(uintptr_t)team);
}

struct set {
    int start, log_stride, size;
};

static struct weft_group group_of_set(const void *of) {
    const struct set *set = of;
    return weft_active_group(set->start, set->log_stride, set->size, psync[nsync++ % 2],
                             shmem_my_pe());
}

static void with_team(int start, int stride, int npes) {
    shmem_team_t handle;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, npes, NULL, 0, &handle);
    struct weft_team *team = weft_team_find(handle);
    common = random_of(seed, start * 100 + stride);
    if (!team)
        return;
    check_folds(group_of_team, team);
    check_scans(group_of_team, team);
    check_moves(group_of_team, team);
    shmem_team_destroy(handle);
}

static void with_set(int start, int log_stride, int size) {
    struct set set = {start, log_stride, size};
    int distance = shmem_my_pe() - start, stride = 1 << log_stride;
    common = random_of(seed, start * 100 + 50 + log_stride);
    if (distance < 0 || distance % stride != 0 || distance / stride >= size)
        return;
    check_folds(group_of_set, &set);
    check_moves(group_of_set, &set);
}

int main(void) {
    shmem_init();
    tap_start(shmem_my_pe());
    int npes = shmem_n_pes();
    if (getenv("WEFT_TEST_LONG"))
        draws = 5;
    if (getenv("WEFT_TEST_SEED"))
        seed = strtoull(getenv("WEFT_TEST_SEED"), NULL, 10);
    want = aligned_alloc(64, sizeof source);
    theirs = aligned_alloc(64, sizeof source);
    tap_case("teams of all PEs in their order, and in reverse order");
    with_team(0, 1, npes);
    with_team(npes - 1, npes > 1 ? -1 : 1, npes);
    tap_case("teams of every second PE, and of all but the first");
    with_team(0, 2, (npes + 1) / 2);
    if (npes > 1)
        with_team(1, 1, npes - 1);
    tap_case("active sets");
    with_set(0, 0, npes);
    shmem_barrier_all();
    with_set(npes > 2, 1, npes / 2);
    shmem_finalize();
    return tap_finish();
}
