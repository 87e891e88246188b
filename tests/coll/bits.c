/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: reductions and scans have the bits of one fold in the order of the members, wherever
 * the members are: on teams, also in reverse order, on active sets and in tensor calls, in place
 * and not, with sizes on both sides of every change of algorithm. PEs: 1 2 3 4 7 */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>
#include "coll/elements.h"
#include "coll/fold.h"
#include "coll/values.h"
#include "tap.h"

enum { NELEMS = 70000, ELEM_MAX = 16 };
static const size_t sizes[] = {1, 3, 12, 25, 49, 300, 2100, 9000, NELEMS};

/* The sources of all members, computed from the numbers of their PEs. */
static _Alignas(64) char source[NELEMS * ELEM_MAX], dest[NELEMS * ELEM_MAX];
static char *all[64], *want;
static long psync[2][SHMEM_SYNC_SIZE];

struct members {
    shmem_team_t team;
    int start, stride, npes, me;
};

static void fill(char *at, enum weft_number number, int pe, size_t nelems) {
    switch (number) {
    case WEFT_NUMBER_I32:
        FILL(int32_t);
    case WEFT_NUMBER_FLOAT:
        FILL(float);
    case WEFT_NUMBER_DOUBLE:
        FILL(double);
    case WEFT_NUMBER_COMPLEXD:
        FILL(double _Complex);
    default:
        FILL(long double);
    }
}

/* want = the fold of the first n members' sources, in the order of the members. Returns the
 * bytes. */
static size_t fold(enum weft_fold_op op, enum weft_number number, int n, size_t nelems) {
    const struct weft_fold *fold = &weft_folds[op][number];
    memset(want, 0, nelems * fold->elem_bytes);
    for (int member = 0; member < n; member++)
        if (member == 0)
            memcpy(want, all[0], nelems * fold->elem_bytes);
        else
            fold->pair(want, want, all[member], nelems);
    return nelems * fold->elem_bytes;
}

static void fill_all(const struct members *m, enum weft_number number, size_t nelems) {
    for (int member = 0; member < m->npes; member++)
        fill(all[member], number, m->start + member * m->stride, nelems);
    fill(source, number, shmem_my_pe(), nelems);
}

#define CHECK(CALL, OP, T, N)                                                                    \
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)                                    \
        for (int in_place = 0; in_place < 2; in_place++) {                                       \
            size_t nelems = sizes[s];                                                            \
            T *from = (T *)source, *to = in_place ? from : (T *)dest;                            \
            fill_all(m, WEFT_NUMBER_OF(T), nelems);                                              \
            size_t bytes = fold(WEFT_FOLD_##OP, WEFT_NUMBER_OF(T), N, nelems);                   \
            CALL;                                                                                \
            EXPECT(same(WEFT_NUMBER_OF(T), (char *)to, want, bytes),                             \
                   "%s: other bits in %zu elements, %d members from PE %d by %d", #CALL, nelems, \
                   m->npes, m->start, m->stride);                                                \
        }
#define REDUCE(NAME, OP, T) CHECK(shmem_##NAME##_reduce(m->team, to, from, nelems), OP, T, m->npes)

static void reduce(const struct members *m) {
    REDUCE(int_sum, SUM, int)
    REDUCE(float_sum, SUM, float)
    REDUCE(float_prod, PROD, float)
    REDUCE(double_sum, SUM, double)
    REDUCE(double_max, MAX, double)
    REDUCE(complexd_sum, SUM, double _Complex)
    REDUCE(longdouble_sum, SUM, long double)
    CHECK(shmem_float_sum_inscan(m->team, to, from, nelems), SUM, float, m->me + 1)
    CHECK(shmem_double_sum_exscan(m->team, to, from, nelems), SUM, double, m->me)
}

static void reduce_active_set(const struct members *m) {
    static float work[NELEMS / 2 + 1 + SHMEM_REDUCE_MIN_WRKDATA_SIZE];
    int n = 0;
    CHECK(shmem_float_sum_to_all(to, from, (int)nelems, 0, 0, m->npes, work, psync[n++ % 2]), SUM,
          float, m->npes)
}

/* Whether a member's inputs are in symmetric memory depends on its number. */
static void reduce_tensors(const struct members *m, weft_dtype dtype, weft_op op, size_t nelems) {
    size_t bytes = nelems * weft_element_bytes(dtype), n = (size_t)m->npes;
    char *private = malloc(bytes * n), *from = m->me % 2 ? private : source;
    float *wide = malloc(nelems * n * sizeof *wide);
    weft_matrix sources[64], result = {want, 1, nelems, nelems, dtype, false};
    for (int member = 0; member < m->npes; member++) {
        fill((char *)wide, WEFT_NUMBER_FLOAT, m->start + member * m->stride, nelems * n);
        if (dtype == WEFT_F32)
            memcpy(all[member], wide, bytes * n);
        else
            weft_elements_narrow(all[member], dtype, wide, nelems * n);
    }
    memcpy(from, all[m->me], bytes * n);
    for (int scatter = 0; scatter < 2; scatter++) {
        size_t offset = scatter ? bytes * (size_t)m->me : 0;
        for (int member = 0; member < m->npes; member++)
            sources[member] = (weft_matrix){all[member] + offset, 1, nelems, nelems, dtype, false};
        weft_elements_reduce(&result, sources, m->npes, op);
        int error = (scatter ? weft_reduce_scatter : weft_all_reduce)(m->team, dest, from, nelems,
                                                                      dtype, op, WEFT_STREAM_HOST);
        EXPECT(error == 0 && memcmp(dest, want, bytes) == 0,
               "type %d op %d, %zu elements, scatter %d: %d, or other bits", (int)dtype, (int)op,
               nelems, scatter, error);
    }
    free(wide);
    free(private);
}

static void with_team(int start, int stride, int npes) {
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, npes, NULL, 0, &team);
    struct members m = {team, start, stride, npes, shmem_team_my_pe(team)};
    if (team == SHMEM_TEAM_INVALID)
        return;
    reduce(&m);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t most = sizeof source / sizeof(float) / (size_t)npes;
        size_t nelems = sizes[s] < most ? sizes[s] : most;
        reduce_tensors(&m, WEFT_F32, WEFT_SUM, nelems);
        reduce_tensors(&m, WEFT_BF16, WEFT_AVG, nelems);
    }
    shmem_team_destroy(team);
}

int main(void) {
    shmem_init();
    tap_start(shmem_my_pe());
    int npes = shmem_n_pes();
    for (int member = 0; member < npes; member++)
        all[member] = aligned_alloc(64, sizeof source);
    want = aligned_alloc(64, sizeof source);
    tap_case("of all PEs in their order, and turned round");
    with_team(0, 1, npes);
    with_team(npes - 1, npes > 1 ? -1 : 1, npes);
    tap_case("of every second PE");
    with_team(0, 2, (npes + 1) / 2);
    tap_case("of an active set");
    reduce_active_set(&(struct members){SHMEM_TEAM_WORLD, 0, 1, npes, shmem_my_pe()});
    shmem_finalize();
    return tap_finish();
}
