/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: wherever the members are, the vectors of weft.h move the same data as on one host,
 * and reductions have its bits, also of 16-bit floats: with symmetric arrays, with other arrays,
 * and with arrays that are symmetric on some members only, in place and not, with random sizes
 * around every change of algorithm, and of several bands.
 * PEs: 6
 * Far: each reorder=16,delay_us=50
 * Far: 3+3 reorder=16,delay_us=50
 * Far: 2+2+2 reorder=16,delay_us=50
 * Far: cyclic:2 reorder=16,delay_us=50
 * Far: 4+2 reorder=16 */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>
#include "core/team.h"
#include "coll/elements.h"
#include "coll/values.h"
#include "api/model.h"
#include "tap.h"

enum { PES = 6, BYTES = 6 << 20, CALLS = 36, PERIOD = 8191 };

static const struct {
    weft_dtype dtype;
    weft_op op;
} folds[] = {{WEFT_BF16, WEFT_SUM}, {WEFT_BF16, WEFT_AVG}, {WEFT_F16, WEFT_SUM},
             {WEFT_F16, WEFT_PROD}, {WEFT_F16, WEFT_MAX},  {WEFT_F32, WEFT_SUM},
             {WEFT_F32, WEFT_AVG},  {WEFT_F64, WEFT_AVG},  {WEFT_I16, WEFT_SUM},
             {WEFT_U8, WEFT_MIN},   {WEFT_C64, WEFT_AVG},  {WEFT_BOOL, WEFT_SUM}};

static struct random common;
static char *symmetric[2], *own[2]; /* a source and a dest of BYTES each */
static char *want, *all[PES];       /* all members' sources */
static float *wide;

/* A call. All members draw the same values, except in `mixed` memory. */
struct call {
    shmem_team_t team;
    struct weft_team *found;
    weft_dtype dtype;
    size_t nelems, bytes; /* of a block */
    char *source, *dest;
};

static char *array(int which, uint64_t memory) {
    bool here = memory == 0 || (memory == 1 && shmem_my_pe() % 2);
    return here ? symmetric[which] : own[which];
}

static struct call draw(shmem_team_t team, weft_dtype dtype) {
    const size_t edges[] = {1, 16, 128, 340, 2032, 10 << 10, 60 << 10, 180 << 10, 900 << 10};
    struct call call = {.team = team, .found = weft_team_find(team), .dtype = dtype};
    size_t elem = weft_element_bytes(dtype), most = BYTES / (size_t)call.found->npes;
    size_t edge = edges[random_below(&common, sizeof edges / sizeof *edges)];
    call.bytes = edge / 2 + random_below(&common, edge) + elem;
    call.bytes = (call.bytes < most ? call.bytes : most) / elem * elem;
    call.nelems = call.bytes / elem;
    call.source = array(0, random_below(&common, 3));
    call.dest = array(1, random_below(&common, 3));
    return call;
}

/* Fills `blocks` blocks with a member's values. Their sums depend on the order of additions, and
 * the period of the values is longer than a block or a piece. */
static void fill(char *at, const struct call *call, int member, size_t blocks) {
    static double values[PES][PERIOD];
    int pe = weft_team_world_pe(call->found, member);
    size_t n = call->nelems * blocks, bytes = call->bytes * blocks;
    for (size_t i = 0; i < PERIOD && values[pe][PERIOD - 1] == 0; i++)
        values[pe][i] = value_of(pe, i);
    for (size_t i = 0; i < n && call->dtype == WEFT_F64; i++)
        ((double *)at)[i] = values[pe][i % PERIOD];
    if (call->dtype == WEFT_F64)
        return;
    bool floats = call->dtype == WEFT_F32 || call->dtype == WEFT_C64;
    bool narrow = call->dtype == WEFT_BF16 || call->dtype == WEFT_F16;
    size_t nwide = floats ? bytes / sizeof(float) : narrow ? n : 0;
    for (size_t i = 0; i < nwide; i++)
        wide[i] = (float)values[pe][i % PERIOD];
    if (floats)
        memcpy(at, wide, bytes);
    else if (narrow)
        weft_elements_narrow(at, call->dtype, wide, n);
    for (size_t i = 0; i < bytes && nwide == 0; i++)
        at[i] = ((const char *)values[pe])[i % (8 * PERIOD)] & (call->dtype == WEFT_BOOL ? 1 : -1);
}

static void check_fold(shmem_team_t team, bool scatter) {
    size_t which = random_below(&common, sizeof folds / sizeof *folds);
    struct call call = draw(team, folds[which].dtype);
    int npes = call.found->npes, me = call.found->my_pe;
    bool in_place = !scatter && random_below(&common, 3) == 0;
    weft_matrix sources[PES], result = {want, 1, call.nelems, call.nelems, call.dtype, false};
    for (int member = 0; member < npes; member++) {
        fill(all[member], &call, member, scatter ? (size_t)npes : 1);
        sources[member] = result;
        sources[member].data = all[member] + (scatter ? (size_t)me * call.bytes : 0);
    }
    weft_elements_reduce(&result, sources, npes, folds[which].op);
    if (in_place)
        call.source = call.dest;
    memcpy(call.source, all[me], call.bytes * (scatter ? (size_t)npes : 1));
    int error = (scatter ? weft_reduce_scatter : weft_all_reduce)(
        team, call.dest, call.source, call.nelems, call.dtype, folds[which].op, WEFT_STREAM_HOST);
    EXPECT(error == 0 && memcmp(call.dest, want, call.bytes) == 0,
           "%s op %d, %zu elements, scatter %d, in place %d: %d, or other bits",
           weft_element_name(call.dtype), (int)folds[which].op, call.nelems, scatter, in_place,
           error);
    if (!in_place) /* no member reads it any more */
        memset(call.source, 0xa5, call.bytes);
}

static void check_all_gather(shmem_team_t team) {
    struct call call = draw(team, WEFT_U8);
    size_t mine = (size_t)call.found->my_pe * call.bytes;
    if (random_below(&common, 3) == 0)
        call.source = call.dest + mine;
    fill(call.source, &call, call.found->my_pe, 1);
    int error =
        weft_all_gather(team, call.dest, call.source, call.nelems, call.dtype, WEFT_STREAM_HOST);
    for (int member = 0; member < call.found->npes; member++) {
        fill(want, &call, member, 1);
        EXPECT(error == 0 && memcmp(call.dest + (size_t)member * call.bytes, want, call.bytes) == 0,
               "all-gather of %zu: %d, or other bytes of member %d", call.nelems, error, member);
    }
}

static void check_all_to_all(shmem_team_t team) {
    struct call call = draw(team, WEFT_U8);
    size_t npes = (size_t)call.found->npes, mine = (size_t)call.found->my_pe * call.bytes;
    fill(call.source, &call, call.found->my_pe, npes);
    int error =
        weft_all_to_all(team, call.dest, call.source, call.nelems, call.dtype, WEFT_STREAM_HOST);
    for (int member = 0; member < call.found->npes; member++) {
        fill(want, &call, member, npes);
        EXPECT(error == 0 &&
                   memcmp(call.dest + (size_t)member * call.bytes, want + mine, call.bytes) == 0,
               "all-to-all of %zu: %d, or other bytes of member %d", call.nelems, error, member);
    }
}

static void check_broadcast(shmem_team_t team) {
    struct call call = draw(team, WEFT_U8);
    int root = (int)random_below(&common, (size_t)call.found->npes);
    bool sends = root == call.found->my_pe;
    if (random_below(&common, 3) == 0)
        call.source = call.dest;
    fill(want, &call, root, 1);
    if (sends)
        memcpy(call.source, want, call.bytes);
    int error = weft_broadcast(team, call.dest, sends ? call.source : NULL, call.nelems, call.dtype,
                               root, WEFT_STREAM_HOST);
    EXPECT(error == 0 && memcmp(call.dest, want, call.bytes) == 0,
           "broadcast of %zu: %d, or other bytes", call.nelems, error);
}

static void with_team(int start, int stride, int npes) {
    shmem_team_t team;
    int calls = getenv("WEFT_TEST_LONG") ? 10 * CALLS : CALLS;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, npes, NULL, 0, &team);
    common = random_of(1, start * 100 + stride);
    for (int i = 0; i < calls && team != SHMEM_TEAM_INVALID; i++) {
        if (i % 2)
            check_fold(team, i % 4 == 1);
        else
            (i % 6 == 0 ? check_all_gather : i % 6 == 2 ? check_all_to_all : check_broadcast)(team);
    }
    shmem_team_destroy(team);
}

int main(void) {
    shmem_init();
    tap_start(shmem_my_pe());
    for (int which = 0; which < 2; which++) {
        symmetric[which] = shmem_malloc(BYTES);
        own[which] = malloc(BYTES);
    }
    for (int pe = 0; pe < PES; pe++)
        all[pe] = malloc(BYTES);
    want = malloc(BYTES);
    wide = malloc(BYTES / 2 * sizeof *wide);
    tap_case("of all PEs in their order, and in reverse order");
    with_team(0, 1, PES);
    with_team(PES - 1, -1, PES);
    tap_case("of every second PE, and of all but the first");
    with_team(0, 2, 3);
    with_team(1, 1, 5);
    shmem_finalize();
    return tap_finish();
}
