/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the split of an array covers it once, in whole grains; the ranges of a plan match on
 * both sides; and a member that contributes nothing to a collect receives the others'
 * contributions. PEs: 1 2 3 4 */
#include <shmem.h>
#include <string.h>
#include "core/team.h"
#include "coll/collective.h"
#include "coll/split.h"
#include "tap.h"

static void split(void) {
    static const size_t totals[] = {0, 1, 31, 32, 33, 1000, 4096, 100003};
    static const size_t grains[] = {1, 8, 32, 128};
    tap_case("a split covers an array in whole grains, which differ by one at most");
    for (size_t t = 0; t < sizeof totals / sizeof *totals; t++)
        for (size_t g = 0; g < sizeof grains / sizeof *grains; g++)
            for (int npes = 1; npes < 9; npes++) {
                size_t total = totals[t], grain = grains[g], least = SIZE_MAX, most = 0;
                EXPECT(weft_split_begin(total, grain, 0, npes) == 0, "it does not begin at 0");
                EXPECT(weft_split_begin(total, grain, npes, npes) == total, "it does not end");
                for (int member = 0; member < npes; member++) {
                    size_t begin = weft_split_begin(total, grain, member, npes);
                    size_t end = weft_split_begin(total, grain, member + 1, npes);
                    size_t grains_of = (end - begin + grain - 1) / grain;
                    EXPECT(begin <= end && (begin % grain == 0 || begin == total),
                           "%zu by %zu: member %d of %d begins at %zu", total, grain, member, npes,
                           begin);
                    least = grains_of < least ? grains_of : least;
                    most = grains_of > most ? grains_of : most;
                }
                EXPECT(most - least <= 1, "%zu by %zu among %d: %zu to %zu grains", total, grain,
                       npes, least, most);
            }
}

/* Makes all members' transfers in one process: block b of a plan's source holds the values that its
 * receiver must find. */
static void check_plan(const struct weft_plan *plan, const char *name) {
    enum { N = 3, BYTES = 64 };
    char source[N][BYTES], dest[N][BYTES];
    for (int from = 0; from < N; from++)
        for (int i = 0; i < BYTES; i++)
            source[from][i] = (char)(from * 80 + i);
    memset(dest, -1, sizeof dest);
    for (int to = 0; to < N; to++)
        for (int from = 0; from < N; from++) {
            if (weft_plan_sends(plan, from))
                weft_pieces_copy(weft_plan_dest(plan, dest[to], from),
                                 weft_plan_source(plan, source[from], to), &plan->pieces);
        }
    for (int to = 0; to < N; to++)
        for (int from = 0; from < N; from++)
            for (size_t piece = 0; piece < plan->pieces.count && weft_plan_sends(plan, from);
                 piece++) {
                char *at =
                    dest[to] + from * plan->dest_block + (ptrdiff_t)piece * plan->pieces.dest_step;
                char want = (char)(from * 80 + to * (int)plan->source_block +
                                   (int)piece * (int)plan->pieces.source_step);
                EXPECT(*at == want, "%s: from %d to %d, piece %zu: %d, not %d", name, from, to,
                       piece, *at, want);
            }
}

static void plans(void) {
    tap_case("each member gets the block that the sender has for it");
    struct weft_plan broadcast = weft_plan_broadcast(16, 1), fcollect = weft_plan_fcollect(16);
    struct weft_plan alltoall = weft_plan_alltoall(16);
    struct weft_plan alltoalls = weft_plan_alltoalls(&(struct weft_blocks_shape){
        .nelems = 4, .elem_bytes = 2, .dest_stride = 2, .source_stride = 1});
    check_plan(&broadcast, "broadcast");
    check_plan(&fcollect, "fcollect");
    check_plan(&alltoall, "alltoall");
    check_plan(&alltoalls, "alltoalls");
}

enum { NELEMS = 5000 };
static long source[NELEMS], dest[4 * NELEMS];

static void collect(void) {
    tap_case("a member that contributes nothing gets the others' contributions");
    struct weft_group group = weft_group_of(weft_team_find(SHMEM_TEAM_WORLD));
    size_t bytes = group.me == 0 ? 0 : sizeof source;
    for (int i = 0; i < NELEMS; i++)
        source[i] = group.me * 10000 + i;
    weft_group_collect(&group, dest, bytes ? source : NULL, bytes);
    for (int member = 1; member < group.npes; member++)
        for (int i = 0; i < NELEMS; i++)
            EXPECT(dest[(member - 1) * NELEMS + i] == member * 10000 + i,
                   "element %d of member %d is %ld", i, member, dest[(member - 1) * NELEMS + i]);
}

int main(void) {
    shmem_init();
    tap_start(shmem_my_pe());
    split();
    plans();
    collect();
    shmem_finalize();
    return tap_finish();
}
