/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: in a collective of 1 MiB, of shmem.h and of weft.h, each byte is sent to another
 * host once, however many members that host has. The test counts the bytes of all messages.
 * PEs: 4
 * Far: 2+2
 * Far: each
 * Far: cyclic:2
 * Far: 3+1 */
#include <shmem.h>
#include <stdlib.h>
#include <weft.h>
#include "far/channel.h"
#include "core/levels.h"
#include "core/team.h"
#include "tap.h"

enum { NELEMS = 128 << 10, NARROW = 512 << 10, MIB = 1 << 20, MEMBERS = 4 };

static double source[NELEMS * MEMBERS], dest[NELEMS * MEMBERS];
static double *from = source, *to = dest; /* of vectors */
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
    int error = weft_all_to_allv(SHMEM_TEAM_WORLD, dest, nelems, NULL, source, nelems, NULL, 1,
                                 WEFT_F64, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%s", weft_last_error());
}

/* --- Vectors ---------------------------------------------------------------------------------- */

static void weft_succeeds(int error) {
    EXPECT(error == 0, "%s", weft_last_error());
}

static void vector_broadcast(void) {
    weft_succeeds(
        weft_broadcast(SHMEM_TEAM_WORLD, to, from, NELEMS, WEFT_F64, 1, WEFT_STREAM_HOST));
}

static void all_gather(void) {
    weft_succeeds(weft_all_gather(SHMEM_TEAM_WORLD, to, from, NELEMS, WEFT_F64, WEFT_STREAM_HOST));
}

/* Gathers from the place in dest where this member's block belongs. */
static void all_gather_in_place(void) {
    weft_succeeds(weft_all_gather(SHMEM_TEAM_WORLD, to, to + shmem_my_pe() * NELEMS, NELEMS,
                                  WEFT_F64, WEFT_STREAM_HOST));
}

static void all_to_all(void) {
    weft_succeeds(weft_all_to_all(SHMEM_TEAM_WORLD, to, from, NELEMS, WEFT_F64, WEFT_STREAM_HOST));
}

static void all_reduce(void) {
    weft_succeeds(
        weft_all_reduce(SHMEM_TEAM_WORLD, to, from, NELEMS, WEFT_F64, WEFT_SUM, WEFT_STREAM_HOST));
}

static void all_reduce_in_place(void) {
    weft_succeeds(
        weft_all_reduce(SHMEM_TEAM_WORLD, to, to, NELEMS, WEFT_F64, WEFT_SUM, WEFT_STREAM_HOST));
}

static void all_reduce_narrow(void) {
    weft_succeeds(
        weft_all_reduce(SHMEM_TEAM_WORLD, to, from, NARROW, WEFT_BF16, WEFT_AVG, WEFT_STREAM_HOST));
}

static void reduce_scatter(void) {
    weft_succeeds(weft_reduce_scatter(SHMEM_TEAM_WORLD, to, from, NELEMS, WEFT_F64, WEFT_SUM,
                                      WEFT_STREAM_HOST));
}

static void reduce_scatter_narrow(void) {
    weft_succeeds(weft_reduce_scatter(SHMEM_TEAM_WORLD, to, from, NARROW, WEFT_F16, WEFT_SUM,
                                      WEFT_STREAM_HOST));
}

/* Returns the bytes of all messages that this PE has sent. */
static uint32_t bytes_sent(void) {
    uint32_t sent = 0;
    for (int pe = 0; pe < shmem_n_pes(); pe++)
        sent += weft_channels.of[pe] ? weft_channels.of[pe]->sent_bytes : 0;
    return sent;
}

/* Expects that `arrays` arrays are sent, and some thousandths for headers of messages and for
 * barriers. */
static void check(const char *name, void (*call)(void), double arrays) {
    shmem_barrier_all();
    uint32_t before = bytes_sent();
    call();
    shmem_quiet();
    crossed = (long)(bytes_sent() - before);
    shmem_barrier_all();
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all_crossed, &crossed, 1);
    long least = (long)(arrays * MIB), most = least + least / 100 + 16384;
    if (shmem_my_pe() == 0)
        printf("# %s: %ld bytes cross, of %g MiB\n", name, all_crossed, arrays);
    EXPECT(all_crossed >= least && all_crossed <= most, "%s: %ld bytes cross, not %g MiB", name,
           all_crossed, arrays);
}

/* Partial results are passed from host to host if they have fewer bytes than the sources of a
 * host's members; the last host sends the results to the other hosts. Partial results of 16-bit
 * floats have 32 bits. */
static void check_vectors(const struct weft_levels *levels, int npes, int far_pairs) {
    int others = levels->nleaders - 1, last = weft_levels_count(levels, others);
    int turns = levels->in_turn ? others : far_pairs / npes;
    bool narrow_on = levels->in_turn && levels->least >= 2;
    bool scatter_on = levels->in_turn && levels->least > 1;
    bool narrow_scatter_on = levels->in_turn && levels->least > 2;
    check("weft_broadcast", vector_broadcast, others);
    check("weft_all_gather", all_gather, npes * others);
    check("weft_all_gather in place", all_gather_in_place, npes * others);
    check("weft_all_to_all", all_to_all, far_pairs);
    check("weft_all_reduce", all_reduce, turns + others);
    check("weft_all_reduce in place", all_reduce_in_place, turns + others);
    check("weft_all_reduce of bf16", all_reduce_narrow,
          (narrow_on ? 2.0 * others : (double)far_pairs / npes) + others);
    check("weft_reduce_scatter", reduce_scatter,
          scatter_on ? npes * others + npes - last : far_pairs);
    check("weft_reduce_scatter of f16", reduce_scatter_narrow,
          narrow_scatter_on ? 2 * npes * others + npes - last : far_pairs);
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
    tap_case("vectors of symmetric arrays cross as often");
    check_vectors(levels, npes, far_pairs);
    tap_case("vectors of other arrays cross as often");
    from = calloc((size_t)npes, MIB), to = calloc((size_t)npes, MIB);
    check_vectors(levels, npes, far_pairs);
    shmem_finalize();
    return tap_finish();
}
