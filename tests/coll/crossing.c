/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: in a collective of 1 MiB a byte crosses to another host once, however many members
 * that has: counted by the bytes of all letters.
 * PEs: 4
 * Far: 2+2
 * Far: each
 * Far: cyclic:2
 * Far: 3+1 */
#include <shmem.h>
#include <weft.h>
#include "core/levels.h"
#include "core/link.h"
#include "core/team.h"
#include "tap.h"

enum { NELEMS = 128 << 10, MIB = 1 << 20, MEMBERS = 4 };

static double source[NELEMS * MEMBERS], dest[NELEMS * MEMBERS];
static long crossed, all_crossed;

static void broadcast(void) {
    shmem_double_broadcast(SHMEM_TEAM_WORLD, dest, source, NELEMS, 1);
}

static void fcollect(void) {
    shmem_double_fcollect(SHMEM_TEAM_WORLD, dest, source, NELEMS);
}

static void collect(void) {
    shmem_double_collect(SHMEM_TEAM_WORLD, dest, source, NELEMS);
}

static void reduce(void) {
    shmem_double_sum_reduce(SHMEM_TEAM_WORLD, dest, source, NELEMS);
}

static void scan(void) {
    shmem_double_sum_inscan(SHMEM_TEAM_WORLD, dest, source, NELEMS);
}

static void alltoall(void) {
    shmem_double_alltoall(SHMEM_TEAM_WORLD, dest, source, NELEMS);
}

static void all_to_allv(void) {
    size_t nelems[MEMBERS] = {NELEMS, NELEMS, NELEMS, NELEMS};
    int rc = weft_all_to_allv(SHMEM_TEAM_WORLD, dest, nelems, NULL, source, nelems, NULL, 1,
                              WEFT_F64, WEFT_STREAM_HOST);
    EXPECT(rc == 0, "%s", weft_last_error());
}

/* By all letters of this PE so far. */
static uint32_t bytes_sent(void) {
    uint32_t sent = 0;
    for (int pe = 0; pe < shmem_n_pes(); pe++)
        sent += weft_links.of[pe] ? weft_links.of[pe]->sent_bytes : 0;
    return sent;
}

/* What crosses is so many arrays, and some thousandths for the heads of letters, and for barriers.
 */
static void check(const char *name, void (*call)(void), int arrays) {
    shmem_barrier_all();
    uint32_t before = bytes_sent();
    call();
    shmem_quiet();
    crossed = (long)(bytes_sent() - before);
    shmem_barrier_all();
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all_crossed, &crossed, 1);
    long least = (long)arrays * MIB, most = least + least / 100 + 16384;
    if (shmem_my_pe() == 0)
        printf("# %s: %ld bytes cross, of %d MiB\n", name, all_crossed, arrays);
    EXPECT(all_crossed >= least && all_crossed <= most, "%s: %ld bytes cross, not %d MiB", name,
           all_crossed, arrays);
}

int main(void) {
    shmem_init();
    tap_start(shmem_my_pe());
    int npes = shmem_n_pes(), far_pairs = 0, turns = 0;
    const struct weft_levels *levels = weft_team_find(SHMEM_TEAM_WORLD)->levels;
    int others = levels->nleaders - 1;
    for (int a = 0; a < npes; a++)
        for (int b = 0; b < npes; b++)
            far_pairs += levels->hosts[a] != levels->hosts[b];
    tap_case("a byte crosses to another host once");
    check("broadcast", broadcast, others);
    check("fcollect", fcollect, npes * others);
    check("collect", collect, npes * others);
    check("alltoall", alltoall, far_pairs);
    check("all_to_allv", all_to_allv, far_pairs);
    turns = levels->in_turn ? others : far_pairs / npes;
    tap_case(
        "a partial result crosses between hosts once, and back; or sources to those that fold");
    check("reduce", reduce, turns + others);
    if (levels->in_turn)
        check("scan", scan, others);
    shmem_finalize();
    return tap_finish();
}
