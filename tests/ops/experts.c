/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_moe_dispatch and weft_moe_combine against a reference that loops over all
 * tokens of all members: random routes, all tokens to one expert, experts and members without
 * tokens, unused slots; all types and teams, private, heap and static memory, one band and many;
 * sums against doubles, and with the same bits in a second run; a combine is the transpose of a
 * dispatch; rows that do not fit, and wrong arguments, which are the same error on all members. */
#include <errno.h>
#include "expect.h"
#include "ops/tensor.h"

enum { TOP_K_MAX = 16, PES_MAX = 16, COLS_MAX = 600 };
enum routing { RANDOM, ONE_EXPERT, HALF_OF_THE_EXPERTS, UNUSED_SLOTS, ROUTINGS };

/* A layer: what all members know about all tokens of a round. */
struct layer {
    const struct test_team *t;
    weft_moe moe;
    weft_moe_shape shape;
    size_t each; /* experts of a member */
    enum routing routing;
    uint64_t round;
};

/* --- The tokens of all members --------------------------------------------------------------- */

static uint64_t seed_of(const struct layer *l, int member, size_t token, uint64_t what) {
    uint64_t pe = (uint64_t)(l->t->start + member * l->t->stride);
    return mix(mix(l->round * 64 + pe) * 4096 + token * 8 + what);
}

static size_t ntokens_of(const struct layer *l, int member) {
    uint64_t random = seed_of(l, member, 0, 1);
    return random % 5 == 0 ? 0 : random / 5 % (l->shape.tokens_max + 1);
}

static int32_t expert_of(const struct layer *l, int member, size_t token, size_t slot) {
    uint64_t random = mix(seed_of(l, member, token, 2) + slot);
    size_t experts = l->shape.experts;
    if (l->routing == ONE_EXPERT)
        return (int32_t)(l->round % experts);
    if (l->routing == HALF_OF_THE_EXPERTS)
        return (int32_t)(random % experts / 2 * 2);
    return l->routing == UNUSED_SLOTS && random % 3 == 0 ? -1 : (int32_t)(random / 3 % experts);
}

static float weight_of(const struct layer *l, int member, size_t token, size_t slot) {
    return (float)value_at(WEFT_F32, seed_of(l, member, token, 3), slot, 0);
}

static unsigned char byte_of(const struct layer *l, int member, size_t token, size_t i) {
    return (unsigned char)(mix(seed_of(l, member, token, 4) + i / 8) >> i % 8 * 8);
}

static float scale_of(const struct layer *l, int member, size_t token, size_t i) {
    return (float)value_at(WEFT_F32, seed_of(l, member, token, 5), i, 1);
}

/* The result of an expert for a slot. */
static double result_of(const struct layer *l, weft_dtype dtype, size_t source, size_t col) {
    return value_at(dtype, mix(l->round * 8 + 6), source, col);
}

static size_t source_of(const struct layer *l, int member, size_t token, size_t slot) {
    return ((size_t)member * l->shape.tokens_max + token) * l->shape.top_k + slot;
}

/* --- The arrays of this member ---------------------------------------------------------------- */

struct arrays {
    struct tensor tokens, data, sums;
    float *scales, *weights, *row_scales, *row_weights, *factors;
    int32_t *experts, *sources, *offsets;
    weft_moe_rows rows;
};

static struct arrays arrays_new(const struct layer *l, weft_dtype dtype, enum memory memory) {
    const weft_moe_shape *s = &l->shape;
    size_t ntokens = ntokens_of(l, l->t->me), slots = s->tokens_max * s->top_k + 1;
    struct arrays a = {
        .tokens = tensor_new(memory, ntokens, s->cols, s->cols, dtype),
        .data = tensor_new((memory + l->round) % MEMORIES, s->rows_max, s->cols, s->cols, dtype),
        .sums = tensor_new((memory + 1) % MEMORIES, ntokens, s->cols, s->cols, dtype),
        .scales = calloc(s->tokens_max * s->scale_cols + 1, sizeof(float)),
        .weights = calloc(slots, sizeof(float)),
        .row_scales = calloc(s->rows_max * s->scale_cols + 1, sizeof(float)),
        .row_weights = calloc(s->rows_max + 1, sizeof(float)),
        .factors = calloc(s->rows_max + 1, sizeof(float)),
        .experts = calloc(slots, sizeof(int32_t)),
        .sources = calloc(s->rows_max + 1, sizeof(int32_t)),
        .offsets = calloc(l->each + 1, sizeof(int32_t))};
    a.rows = (weft_moe_rows){a.data.m.data, a.row_scales, a.row_weights, a.sources, a.offsets};
    size_t bytes = s->cols * weft_dtype_bytes(dtype);
    for (size_t token = 0; token < ntokens; token++) {
        for (size_t i = 0; i < bytes; i++)
            ((unsigned char *)a.tokens.m.data)[token * bytes + i] = byte_of(l, l->t->me, token, i);
        for (size_t i = 0; i < s->scale_cols; i++)
            a.scales[token * s->scale_cols + i] = scale_of(l, l->t->me, token, i);
        for (size_t slot = 0; slot < s->top_k; slot++) {
            a.experts[token * s->top_k + slot] = expert_of(l, l->t->me, token, slot);
            a.weights[token * s->top_k + slot] = weight_of(l, l->t->me, token, slot);
        }
    }
    return a;
}

static void arrays_free(struct arrays *a) {
    void *const private[] = {a->scales,  a->weights, a->row_scales, a->row_weights,
                             a->factors, a->experts, a->sources,    a->offsets};
    for (size_t i = 0; i < sizeof private / sizeof *private; i++)
        free(private[i]);
    tensor_free(&a->tokens);
    tensor_free(&a->data);
    tensor_free(&a->sums);
    tensors_reset();
}

/* --- Dispatch ----------------------------------------------------------------------------------
 */

/* Compares a row with the token from which it must come. */
static void expect_row(const struct layer *l, const struct arrays *a, size_t row, int member,
                       size_t token, size_t slot) {
    size_t bytes = l->shape.cols * weft_dtype_bytes(a->data.m.dtype), i = 0;
    const unsigned char *data = (const unsigned char *)a->data.m.data + row * bytes;
    while (i < bytes && data[i] == byte_of(l, member, token, i))
        i++;
    EXPECT(i == bytes, "row %zu, byte %zu of %zu: token %zu of member %d", row, i, bytes, token,
           member);
    EXPECT(a->sources[row] == (int32_t)source_of(l, member, token, slot), "row %zu: source %d", row,
           a->sources[row]);
    EXPECT(a->row_weights[row] == weight_of(l, member, token, slot), "row %zu: weight", row);
    for (size_t s = 0; s < l->shape.scale_cols; s++)
        EXPECT(a->row_scales[row * l->shape.scale_cols + s] == scale_of(l, member, token, s),
               "row %zu: scale %zu", row, s);
}

static void expect_rows(const struct layer *l, const struct arrays *a) {
    size_t row = 0;
    for (size_t e = 0; e < l->each; e++) {
        EXPECT(a->offsets[e] == (int32_t)row, "expert %zu begins at %d, not %zu", e, a->offsets[e],
               row);
        for (int member = 0; member < l->t->npes; member++)
            for (size_t token = 0; token < ntokens_of(l, member); token++)
                for (size_t slot = 0; slot < l->shape.top_k; slot++)
                    if (expert_of(l, member, token, slot) ==
                        (int32_t)((size_t)l->t->me * l->each + e))
                        expect_row(l, a, row++, member, token, slot);
    }
    EXPECT(a->offsets[l->each] == (int32_t)row, "%d rows, not %zu", a->offsets[l->each], row);
    struct tensor rest = a->data;
    size_t used = row * l->shape.cols * weft_dtype_bytes(a->data.m.dtype);
    bool clean = true;
    for (size_t at = GUARD_BYTES + used; at < rest.bytes; at++)
        clean &= rest.block[at] == GUARD;
    EXPECT(clean, "something is written after the last row");
}

static int dispatch(const struct layer *l, const struct arrays *a, weft_dtype dtype) {
    size_t ntokens = ntokens_of(l, l->t->me);
    bool scales = l->shape.scale_cols > 0;
    int error =
        weft_moe_dispatch(l->moe, dtype, ntokens > 0 ? a->tokens.m.data : NULL,
                          scales && ntokens > 0 ? a->scales : NULL, ntokens > 0 ? a->experts : NULL,
                          ntokens > 0 ? a->weights : NULL, ntokens, &a->rows, WEFT_STREAM_HOST);
    EXPECT(error == 0, "dispatch: %d, %s", error, weft_last_error());
    return error;
}

/* --- Combine -----------------------------------------------------------------------------------
 */

static void fill_results(const struct layer *l, struct arrays *a, bool factors) {
    for (size_t row = 0; row < (size_t)a->offsets[l->each]; row++) {
        size_t source = (size_t)a->sources[row];
        for (size_t col = 0; col < l->shape.cols; col++)
            element_set(a->data.m.dtype, tensor_at(&a->data, row, col),
                        result_of(l, a->data.m.dtype, source, col));
        a->factors[row] = factors ? a->row_weights[row] : 1;
        a->row_weights[row] = (float)source;
    }
}

/* Each member's sum is rounded to the type, and so is the whole. */
static void expect_sum(const struct layer *l, const struct arrays *a, size_t token, size_t col) {
    double sum = 0, magnitude = 0;
    for (size_t slot = 0; slot < l->shape.top_k; slot++) {
        if (a->experts[token * l->shape.top_k + slot] < 0)
            continue;
        size_t source = source_of(l, l->t->me, token, slot);
        double factor = l->round % 2 ? weight_of(l, l->t->me, token, slot) : 1;
        double part = factor * result_of(l, a->data.m.dtype, source, col);
        sum += part;
        magnitude += fabs(part);
    }
    double bound = magnitude * (2.5 * dtype_epsilon(a->data.m.dtype) + 20 * 0x1p-24) + 0x1p-40;
    if (a->data.m.dtype == WEFT_F64)
        bound = magnitude * 40 * 0x1p-53;
    else if (a->data.m.dtype == WEFT_F16)
        bound += 0x1p-23; /* subnormal sums */
    double found = tensor_get(&a->sums, token, col);
    EXPECT(fabs(found - sum) <= bound, "token %zu, col %zu: %g, not %g", token, col, found, sum);
}

static void expect_sums(const struct layer *l, const struct arrays *a) {
    size_t ntokens = ntokens_of(l, l->t->me);
    for (size_t token = 0; token < ntokens; token++) {
        for (size_t col = 0; col < l->shape.cols; col++)
            expect_sum(l, a, token, col);
        for (size_t slot = 0; slot < l->shape.top_k; slot++) {
            size_t at = token * l->shape.top_k + slot;
            float want = a->experts[at] < 0 ? 0 : (float)source_of(l, l->t->me, token, slot);
            EXPECT(a->weights[at] == want, "weight of slot %zu of token %zu: %g, not %g", slot,
                   token, a->weights[at], want);
        }
    }
    EXPECT(tensor_guarded(&a->sums), "something is written outside of the sums");
}

static int combine(const struct layer *l, const struct arrays *a) {
    size_t ntokens = ntokens_of(l, l->t->me);
    int error =
        weft_moe_combine(l->moe, a->data.m.dtype, &a->rows, l->round % 2 ? a->factors : NULL,
                         a->experts, ntokens, a->sums.m.data, a->weights, WEFT_STREAM_HOST);
    EXPECT(error == 0, "combine: %d, %s", error, weft_last_error());
    return error;
}

/* --- Layers ------------------------------------------------------------------------------------
 */

static struct layer layer_of(const struct test_team *t, uint64_t round, size_t tokens_max,
                             size_t cols, weft_dtype dtype) {
    static const size_t top_ks[] = {1, 2, 8, 16};
    struct layer l = {.t = t, .round = round, .routing = (enum routing)(round % ROUTINGS)};
    l.each = 1 + round % 4;
    l.shape = (weft_moe_shape){.experts = l.each * (size_t)t->npes,
                               .top_k = top_ks[round / 4 % 4],
                               .cols = cols,
                               .scale_cols = round % 3,
                               .tokens_max = tokens_max,
                               .dtype = dtype};
    l.shape.rows_max = (size_t)t->npes * tokens_max * l.shape.top_k;
    int error = weft_moe_create(t->team, &l.shape, &l.moe);
    EXPECT(error == 0, "create: %d, %s", error, weft_last_error());
    return l;
}

static void layer_end(const struct layer *l) {
    int error = weft_moe_destroy(l->moe);
    EXPECT(error == 0, "destroy: %d, %s", error, weft_last_error());
}

static void forth_and_back(const struct test_team *t, weft_dtype dtype, size_t tokens_max,
                           size_t cols, uint64_t round) {
    struct layer l = layer_of(t, round, tokens_max, cols, dtype);
    struct arrays a = arrays_new(&l, dtype, round % MEMORIES);
    if (dispatch(&l, &a, dtype) == 0)
        expect_rows(&l, &a);
    if (dtype <= WEFT_F16) {
        fill_results(&l, &a, round % 2);
        combine(&l, &a);
        expect_sums(&l, &a);
        uint64_t hash = tensor_hash(&a.sums);
        combine(&l, &a);
        EXPECT(tensor_hash(&a.sums) == hash, "a second combine has other bits");
    }
    layer_end(&l);
    arrays_free(&a);
}

/* --- A combine is the transpose of a dispatch ---------------------------------------------------
 */

/* The sum over all members of a * b, for small whole numbers. */
static double dot(const struct layer *l, const struct tensor *a, const double *b, size_t nelems) {
    double sum = 0, all;
    for (size_t i = 0; i < nelems; i++)
        sum += ((const double *)a->m.data)[i] * b[i];
    int error = weft_all_reduce(l->t->team, &all, &sum, 1, WEFT_F64, WEFT_SUM, WEFT_STREAM_HOST);
    EXPECT(error == 0, "all_reduce: %s", weft_last_error());
    return all;
}

static void transpose(const struct test_team *t, uint64_t round) {
    struct layer l = layer_of(t, round, 23, 17, WEFT_F64);
    struct arrays a = arrays_new(&l, WEFT_F64, PRIVATE);
    size_t ntokens = ntokens_of(&l, t->me), cols = l.shape.cols;
    double *x = a.tokens.m.data, *row = a.data.m.data;
    for (size_t i = 0; i < ntokens * cols; i++)
        x[i] = (double)random_below(17) - 8;
    dispatch(&l, &a, WEFT_F64);
    size_t nrows = (size_t)a.offsets[l.each];
    double *r = malloc((nrows * cols + 1) * sizeof *r);
    for (size_t i = 0; i < nrows * cols; i++)
        r[i] = (double)random_below(17) - 8;
    double forth = dot(&l, &a.data, r, nrows * cols);
    memcpy(row, r, nrows * cols * sizeof *r);
    int error = weft_moe_combine(l.moe, WEFT_F64, &a.rows, NULL, a.experts, ntokens, a.sums.m.data,
                                 NULL, WEFT_STREAM_HOST);
    EXPECT(error == 0, "combine: %s", weft_last_error());
    double back = dot(&l, &a.sums, x, ntokens * cols);
    EXPECT(forth == back, "%g, but %g", forth, back);
    free(r);
    layer_end(&l);
    arrays_free(&a);
}

/* --- Errors ------------------------------------------------------------------------------------
 */

/* All tokens of all members have one expert, whose member has room for all but one. */
static void overflow(const struct test_team *t) {
    struct layer l = {.t = t, .each = 2, .routing = ONE_EXPERT, .round = 3};
    size_t npes = (size_t)t->npes, total = 0;
    l.shape = (weft_moe_shape){2 * npes, 2, 8, 0, 40, 0, WEFT_F32};
    for (int member = 0; member < t->npes; member++)
        total += 2 * ntokens_of(&l, member);
    l.shape.rows_max = total - 1;
    char text[64];
    int expert = (int)(l.round % l.shape.experts);
    snprintf(text, sizeof text, "PE %d would receive %zu rows, %zu of them for its expert %d",
             t->start + expert / 2 * t->stride, total, total, expert);
    int error = weft_moe_create(t->team, &l.shape, &l.moe);
    EXPECT(error == 0, "create: %s", weft_last_error());
    EXPECT(weft_moe_rows_max(l.moe) == total - 1, "%zu", weft_moe_rows_max(l.moe));
    struct arrays a = arrays_new(&l, WEFT_F32, HEAP);
    a.offsets[0] = 77;
    error = weft_moe_dispatch(l.moe, WEFT_F32, a.tokens.m.data, NULL, a.experts, a.weights,
                              ntokens_of(&l, t->me), &a.rows, WEFT_STREAM_HOST);
    expect_error(error, -ENOSPC, text);
    EXPECT(tensor_untouched(&a.data) && a.offsets[0] == 77, "something is written");
    arrays_free(&a);
    l.routing = UNUSED_SLOTS; /* these fit */
    struct arrays fits = arrays_new(&l, WEFT_F32, HEAP);
    if (t->npes > 1 && dispatch(&l, &fits, WEFT_F32) == 0)
        expect_rows(&l, &fits);
    arrays_free(&fits);
    layer_end(&l);
}

static void wrong_shapes(void) {
    int npes = shmem_n_pes(), me = shmem_my_pe();
    weft_moe_shape right = {2 * (size_t)npes, 2, 8, 0, 4, 0, WEFT_F32}, wrong = right;
    weft_moe moe;
    wrong.top_k = 17;
    expect_error(weft_moe_create(SHMEM_TEAM_WORLD, me == npes - 1 ? &wrong : &right, &moe), -EINVAL,
                 "shape->top_k is 17");
    wrong = right, wrong.experts = 2 * (size_t)npes + 1;
    expect_error(weft_moe_create(SHMEM_TEAM_WORLD, npes > 1 ? &wrong : NULL, &moe), -EINVAL,
                 npes > 1 ? "pass a multiple" : "shape is NULL");
    wrong = right, wrong.cols = 0;
    expect_error(weft_moe_create(SHMEM_TEAM_WORLD, &wrong, &moe), -EINVAL, "shape->cols is 0");
    wrong = right, wrong.tokens_max = 0;
    expect_error(weft_moe_create(SHMEM_TEAM_WORLD, &wrong, &moe), -EINVAL, "tokens_max is 0");
    wrong = right, wrong.tokens_max = (size_t)1 << 40;
    expect_error(weft_moe_create(SHMEM_TEAM_WORLD, &wrong, &moe), -EINVAL, "less than 2^31");
    wrong = right, wrong.cols = 1 << 24;
    expect_error(weft_moe_create(SHMEM_TEAM_WORLD, &wrong, &moe), -ENOMEM, "do not fit");
    wrong = right, wrong.cols = 9;
    if (npes > 1)
        expect_error(weft_moe_create(SHMEM_TEAM_WORLD, me == npes - 1 ? &wrong : &right, &moe),
                     -EINVAL, "shape->cols is 8 on PE 0, but 9 on PE");
    if (npes > 1)
        expect_error(weft_moe_create(me == 1 ? SHMEM_TEAM_INVALID : SHMEM_TEAM_WORLD, &right, &moe),
                     -EINVAL, "team is not a team");
    EXPECT(weft_moe_create(SHMEM_TEAM_WORLD, &right, &moe) == 0, "%s", weft_last_error());
    EXPECT(weft_moe_rows_max(moe) == (size_t)npes * 4 * 2, "%zu", weft_moe_rows_max(moe));
    EXPECT(weft_moe_destroy(moe) == 0, "%s", weft_last_error());
}

/* Each fault is on the last PE alone, and every member gets its text. */
static void wrong_calls(void) {
    int npes = shmem_n_pes(), me = shmem_my_pe();
    bool last = me == npes - 1;
    weft_moe_shape shape = {(size_t)npes, 1, 2, 1, 2, 0, WEFT_BF16};
    weft_moe moe;
    uint16_t tokens[4] = {0}, data[64];
    float scales[2] = {1, 1}, weights[2] = {1, 1}, row_scales[32], row_weights[32];
    int32_t experts[2] = {0, 0}, wrong[2] = {npes, 0}, sources[32], offsets[2];
    weft_moe_rows rows = {data, row_scales, row_weights, sources, offsets}, few = rows;
    EXPECT(weft_moe_create(SHMEM_TEAM_WORLD, &shape, &moe) == 0, "%s", weft_last_error());
#define DISPATCH(DTYPE, TOKENS, SCALES, EXPERTS, WEIGHTS, NTOKENS, ROWS) \
    weft_moe_dispatch(moe, DTYPE, TOKENS, SCALES, EXPERTS, WEIGHTS, NTOKENS, ROWS, WEFT_STREAM_HOST)
    expect_error(DISPATCH(last ? WEFT_F32 : WEFT_BF16, tokens, scales, experts, weights, 2, &rows),
                 -EINVAL, "wider than the shape's WEFT_BF16");
    expect_error(DISPATCH(WEFT_BF16, tokens, scales, last ? wrong : experts, weights, 2, &rows),
                 -EINVAL, "slot 0 of token 0 has expert");
    expect_error(DISPATCH(WEFT_BF16, tokens, scales, experts, weights, last ? 3 : 2, &rows),
                 -EINVAL, "ntokens is 3, but the shape's tokens_max is 2");
    expect_error(DISPATCH(WEFT_BF16, last ? NULL : tokens, scales, experts, weights, 2, &rows),
                 -EINVAL, "tokens is NULL");
    few.weights = last ? NULL : row_weights;
    expect_error(DISPATCH(WEFT_BF16, tokens, scales, experts, weights, 2, &few), -EINVAL,
                 "but rows->weights is NULL on PE");
    few.sources = NULL;
    expect_error(DISPATCH(WEFT_BF16, tokens, scales, experts, weights, 2, last ? &few : &rows),
                 -EINVAL, "rows->sources is NULL");
    if (npes > 1)
        expect_error(DISPATCH(WEFT_BF16, tokens, last ? NULL : scales, experts, weights, 2, &rows),
                     -EINVAL, "but scales is NULL on PE");
    EXPECT(DISPATCH(WEFT_BF16, tokens, scales, experts, weights, 2, &rows) == 0, "%s",
           weft_last_error());
#undef DISPATCH
    uint16_t sums[4];
    expect_error(weft_moe_combine(moe, last ? WEFT_I16 : WEFT_BF16, &rows, NULL, experts, 2, sums,
                                  NULL, WEFT_STREAM_HOST),
                 -EINVAL, "WEFT_I16, which this call does not add");
    int32_t strange = 99;
    few = rows;
    few.sources = me == 0 ? &strange : sources;
    expect_error(
        weft_moe_combine(moe, WEFT_BF16, &few, NULL, experts, 2, sums, NULL, WEFT_STREAM_HOST),
        -EINVAL, "rows->sources[0] is 99");
    few = rows;
    few.weights = NULL;
    expect_error(
        weft_moe_combine(moe, WEFT_BF16, &few, NULL, experts, 2, sums, weights, WEFT_STREAM_HOST),
        -EINVAL, "but rows->weights is NULL on PE 0");
    if (npes > 1)
        expect_error(weft_moe_destroy(last ? NULL : moe), -EINVAL, "moe is NULL");
    EXPECT(weft_moe_destroy(moe) == 0, "%s", weft_last_error());
}

int main(void) {
    static const weft_dtype moved[] = {WEFT_F32, WEFT_F64,    WEFT_BF16,
                                       WEFT_F16, WEFT_F8E4M3, WEFT_C128};
    tensors_open(true);
    struct test_team teams[4];
    int nteams = teams_open(teams);
    random_state = (uint64_t)shmem_my_pe() + 9;
    uint64_t round = 0;
    for (size_t d = 0; d < sizeof moved / sizeof *moved; d++) {
        tap_case(dtype_names[moved[d]]);
        for (int i = 0; i < 12; i++, round++)
            for (int team = 0; team < nteams; team++)
                forth_and_back(&teams[team], moved[d], 5 + round % 40, 1 + round * 7 % 90, round);
    }
    tap_case("several bands");
    for (round = 100; round < 108; round++)
        forth_and_back(&teams[0], round % 2 ? WEFT_F32 : WEFT_BF16, 60, COLS_MAX, round);
    tap_case("a combine is the transpose of a dispatch");
    for (round = 200; round < 216; round++)
        for (int team = 0; team < nteams; team++)
            transpose(&teams[team], round);
    tap_case("rows that do not fit");
    for (int team = 0; team < nteams; team++)
        overflow(&teams[team]);
    tap_case("wrong arguments are an error of all members");
    wrong_shapes();
    wrong_calls();
    shmem_free(heap_arena);
    return tap_finish();
}
