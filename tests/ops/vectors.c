/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_all_reduce, weft_reduce_scatter and weft_all_gather against float64: all types,
 * operations and teams, sizes on both sides of every change of algorithm, private, heap and static
 * memory in any mixture over the members, in place, and the same bits on all members. */
#include "ops/tensor.h"

static const weft_op ops[] = {WEFT_SUM, WEFT_AVG, WEFT_MAX, WEFT_MIN, WEFT_PROD};

static uint64_t seed_of(const struct test_team *t, int member, uint64_t round) {
    return round * 1000 + (uint64_t)(t->start + member * t->stride);
}

/* Returns the reduction of element j of the members' sources. */
static double reduced_at(const struct test_team *t, weft_dtype dtype, weft_op op, uint64_t round,
                         size_t j) {
    double result = value_at(dtype, seed_of(t, 0, round), 0, j);
    for (int member = 1; member < t->npes; member++) {
        double x = value_at(dtype, seed_of(t, member, round), 0, j);
        result = op == WEFT_MAX    ? fmax(result, x)
                 : op == WEFT_MIN  ? fmin(result, x)
                 : op == WEFT_PROD ? result * x
                                   : result + x;
    }
    return op == WEFT_AVG ? result / t->npes : result;
}

static void expect_reduced(const struct test_team *t, const struct tensor *dest, weft_op op,
                           uint64_t round, size_t first) {
    weft_dtype dtype = dest->m.dtype;
    for (size_t j = 0; j < dest->m.cols; j++) {
        double want = reduced_at(t, dtype, op, round, first + j), got = tensor_get(dest, 0, j);
        double least = dtype == WEFT_F64 ? 1e-15 : dtype == WEFT_F16 ? 1e-6 : 1e-7;
        double allowed = fabs(want) * dtype_epsilon(dtype) * 1.01 + least * t->npes;
        EXPECT(fabs(got - want) <= allowed, "%s %s op %d, %zu elements: [%zu] is %g, not %g",
               t->name, dtype_names[dtype], (int)op, dest->m.cols, j, got, want);
    }
    EXPECT(tensor_guarded(dest), "wrote outside of dest");
}

static struct tensor vector_new(enum memory memory, size_t nelems, weft_dtype dtype) {
    return tensor_new(memory, 1, nelems, nelems, dtype);
}

static void all_reduce(const struct test_team *t, weft_dtype dtype, weft_op op, size_t nelems,
                       uint64_t round, enum memory memory, bool in_place) {
    struct tensor source = vector_new(memory, nelems, dtype);
    struct tensor dest = vector_new((memory + round) % MEMORIES, nelems, dtype);
    struct tensor *to = in_place ? &source : &dest;
    tensor_fill(&source, seed_of(t, t->me, round));
    int error =
        weft_all_reduce(t->team, to->m.data, source.m.data, nelems, dtype, op, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    if (!in_place)
        memset(source.block, 0xff, source.bytes);
    expect_reduced(t, to, op, round, 0);
    uint64_t mine = tensor_hash(to), all[64];
    weft_all_gather(t->team, all, &mine, 1, WEFT_F64, WEFT_STREAM_HOST);
    for (int member = 0; member < t->npes; member++)
        EXPECT(all[member] == mine, "%s: member %d has other bits", t->name, member);
    tensor_free(&source);
    tensor_free(&dest);
}

static void reduce_scatter(const struct test_team *t, weft_dtype dtype, weft_op op, size_t nelems,
                           uint64_t round, enum memory memory) {
    struct tensor source = vector_new(memory, nelems * (size_t)t->npes, dtype);
    struct tensor dest = vector_new((memory + round) % MEMORIES, nelems, dtype);
    tensor_fill(&source, seed_of(t, t->me, round));
    int error = weft_reduce_scatter(t->team, dest.m.data, source.m.data, nelems, dtype, op,
                                    WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    memset(source.block, 0xff, source.bytes);
    expect_reduced(t, &dest, op, round, nelems * (size_t)t->me);
    tensor_free(&source);
    tensor_free(&dest);
}

static void all_gather(const struct test_team *t, weft_dtype dtype, size_t nelems, uint64_t round,
                       enum memory memory, bool in_place) {
    struct tensor dest = vector_new((memory + round) % MEMORIES, nelems * (size_t)t->npes, dtype);
    struct tensor source = vector_new(memory, nelems, dtype);
    tensor_fill(&source, seed_of(t, t->me, round));
    void *from = source.m.data, *own = tensor_at(&dest, 0, nelems * (size_t)t->me);
    if (in_place)
        from = memcpy(own, source.m.data, nelems * weft_dtype_bytes(dtype));
    int error = weft_all_gather(t->team, dest.m.data, from, nelems, dtype, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    memset(source.block, 0xff, source.bytes);
    for (int member = 0; member < t->npes; member++)
        for (size_t j = 0; j < nelems; j++)
            EXPECT(tensor_get(&dest, 0, (size_t)member * nelems + j) ==
                       value_at(dtype, seed_of(t, member, round), 0, j),
                   "%s %s: member %d, element %zu of %zu", t->name, dtype_names[dtype], member, j,
                   nelems);
    EXPECT(tensor_guarded(&dest), "wrote outside of dest");
    tensor_free(&source);
    tensor_free(&dest);
}

static void one_of_each(const struct test_team *t, weft_dtype dtype, size_t nelems,
                        uint64_t round) {
    weft_op op = ops[round % 5];
    enum memory memory = (enum memory)((round + (uint64_t)shmem_my_pe()) % MEMORIES);
    tensors_reset();
    all_reduce(t, dtype, op, nelems, round, memory, round % 2);
    tensors_reset();
    reduce_scatter(t, dtype, op, nelems, round + 7, memory);
    tensors_reset();
    all_gather(t, dtype, nelems, round, memory, round % 2);
}

static void not_a_number_wins(void) {
    tap_case("MAX and MIN give NaN where any member has one");
    int npes = shmem_n_pes(), me = shmem_my_pe();
    for (int which = 0; which < npes; which++)
        for (weft_op op = WEFT_MAX; op <= WEFT_MIN; op++) {
            float x = me == which ? NAN : (float)me, y = 0;
            weft_all_reduce(SHMEM_TEAM_WORLD, &y, &x, 1, WEFT_F32, op, WEFT_STREAM_HOST);
            EXPECT(isnan(y), "PE %d's NaN gave %g", which, (double)y);
        }
}

int main(void) {
    static const size_t sizes[] = {0, 1, 2, 7, 16, 33, 64, 65, 500, 1025, 2100, 5000};
    tensors_open(true);
    struct test_team teams[4];
    int nteams = teams_open(teams);
    uint64_t round = 0;
    for (size_t d = 0; d < 4; d++) {
        tap_case(dtype_names[all_dtypes[d]]);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t o = 0; o < (sizes[s] < 100 ? 5 : 2); o++, round++)
                for (int team = 0; team < nteams; team++)
                    one_of_each(&teams[team], all_dtypes[d], sizes[s], round);
    }
    tap_case("several bands");
    for (round = 0; round < 6; round++)
        one_of_each(&teams[0], all_dtypes[round % 3], 40003, round);
    not_a_number_wins();
    shmem_free(heap_arena);
    return tap_finish();
}
