/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a wrong argument on one PE gives every member the same error, and a text that names
 * function, argument and PE. No output is written, and the next correct call works. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "ops/tensor.h"

enum { ROWS = 3, K = 4, N = 5, PES_MAX = 16 };

/* The arguments of all operators in one place; a fault changes some of them on one PE. */
static struct arguments {
    shmem_team_t team;
    weft_stream stream;
    weft_dtype dtype;
    weft_op op;
    size_t nelems;
    void *dest, *source;
    weft_matrix a, b, c, full;
    weft_matrix *a_at, *b_at, *c_at, *full_at;
    weft_matrix a_scale, b_scale, bias; /* of scaled products */
    weft_matrix *a_scale_at, *b_scale_at;
    int root;
    size_t to[PES_MAX], from[PES_MAX], offsets[PES_MAX], nparts; /* elements of all_to_allv */
    size_t *to_at, *from_at, *offsets_at;
} args;

static int me, npes;
static struct tensor a, b, c, full, source, dest;

typedef int operator(void);

static int all_reduce(void) {
    return weft_all_reduce(args.team, args.dest, args.source, args.nelems, args.dtype, args.op,
                           args.stream);
}
static int reduce_scatter(void) {
    return weft_reduce_scatter(args.team, args.dest, args.source, args.nelems, args.dtype, args.op,
                               args.stream);
}
static int all_gather(void) {
    return weft_all_gather(args.team, args.dest, args.source, args.nelems, args.dtype, args.stream);
}
static int broadcast(void) {
    return weft_broadcast(args.team, args.dest, args.source, args.nelems, args.dtype, args.root,
                          args.stream);
}
static int all_to_all(void) {
    return weft_all_to_all(args.team, args.dest, args.source, args.nelems, args.dtype, args.stream);
}
static int all_to_allv(void) {
    return weft_all_to_allv(args.team, args.dest, args.to_at, args.offsets_at, args.source,
                            args.from_at, NULL, args.nparts, args.dtype, args.stream);
}
static int all_gather_matmul(void) {
    return weft_all_gather_matmul(args.team, args.a_at, args.b_at, 1, args.c_at, args.full_at,
                                  args.stream);
}
static int matmul_reduce_scatter(void) {
    return weft_matmul_reduce_scatter(args.team, args.a_at, args.b_at, args.op, args.c_at,
                                      args.stream);
}
static int matmul_all_reduce(void) {
    return weft_matmul_all_reduce(args.team, args.a_at, args.b_at, args.op, args.c_at, args.stream);
}

static int all_gather_scaled_matmul(void) {
    return weft_all_gather_scaled_matmul(args.team, args.a_at, args.a_scale_at, args.b_at,
                                         args.b_scale_at, 1, &args.bias, args.c_at, args.full_at,
                                         args.stream);
}
static int scaled_matmul_reduce_scatter(void) {
    return weft_scaled_matmul_reduce_scatter(args.team, args.a_at, args.a_scale_at, args.b_at,
                                             args.b_scale_at, &args.bias, args.op, args.c_at,
                                             args.stream);
}

/* Correct arguments: A is a_rows x K here, B is K x N, C is c_rows x N. */
static weft_dtype factor_dtype = WEFT_F32; /* 8 bits for scaled products */
static void prepare(size_t nelems, size_t a_rows, size_t c_rows) {
    static const float scales[64];
    size_t all = (size_t)npes;
    tensors_reset();
    source = tensor_new(HEAP, 1, nelems * all, nelems * all, WEFT_F32);
    dest = tensor_new(HEAP, 1, nelems * all, nelems * all, WEFT_F32);
    a = tensor_new(HEAP, a_rows, K, K + 1, factor_dtype);
    b = tensor_new(HEAP, K, N, N, factor_dtype);
    c = tensor_new(HEAP, c_rows, N, N + 2, WEFT_F32);
    full = tensor_new(HEAP, ROWS * all, K, K, factor_dtype);
    tensor_fill(&source, 1);
    memset(a.m.data, 1, a_rows * a.m.ld); /* fits all types */
    memset(b.m.data, 1, K * N);
    weft_matrix row_scales = {(void *)scales, a_rows, 1, 1, WEFT_F32, false};
    weft_matrix col_scales = {(void *)scales, 1, N, N, WEFT_F32, false};
    args = (struct arguments){.team = SHMEM_TEAM_WORLD,
                              .stream = WEFT_STREAM_HOST,
                              .dtype = WEFT_F32,
                              .op = WEFT_SUM,
                              .nelems = nelems,
                              .dest = dest.m.data,
                              .source = source.m.data,
                              .a = a.m,
                              .b = b.m,
                              .c = c.m,
                              .full = full.m,
                              .a_at = &args.a,
                              .b_at = &args.b,
                              .c_at = &args.c,
                              .full_at = &args.full,
                              .a_scale = row_scales,
                              .b_scale = col_scales,
                              .bias = col_scales,
                              .a_scale_at = &args.a_scale,
                              .b_scale_at = &args.b_scale,
                              .root = npes - 1,
                              .nparts = 1,
                              .to_at = args.to,
                              .from_at = args.from,
                              .offsets_at = args.offsets};
    for (size_t pe = 0; pe < all; pe++) {
        args.to[pe] = args.from[pe] = nelems;
        args.offsets[pe] = pe * nelems;
    }
}

/* --- Faults ---------------------------------------------------------------------------------- */

static void no_team(void) {
    args.team = SHMEM_TEAM_INVALID;
}
static void wild_team(void) {
    args.team = (shmem_team_t)(uintptr_t)0xdeadbeef;
}
static void no_dest(void) {
    args.dest = NULL;
}
static void no_source(void) {
    args.source = NULL;
}
static void odd_dtype(void) {
    args.dtype = (weft_dtype)99;
}
static void other_dtype(void) {
    args.dtype = WEFT_BF16;
}
static void odd_op(void) {
    args.op = (weft_op)0;
}
static void other_op(void) {
    args.op = args.op == WEFT_SUM ? WEFT_AVG : WEFT_SUM;
}
static void op_max(void) {
    args.op = WEFT_MAX;
}
static void other_nelems(void) {
    args.nelems--;
}
static void vast_nelems(void) {
    args.nelems = SIZE_MAX / 2;
}
static void device_stream(void) {
    args.stream = NULL;
}
static void op_of_no_integer(void) {
    args.dtype = WEFT_I16;
    args.op = WEFT_AVG;
}
static void dtype_not_reduced(void) {
    args.dtype = WEFT_F8E4M3;
}
static void wild_root(void) {
    args.root = npes;
}
static void negative_root(void) {
    args.root = -1;
}
static void other_root(void) {
    args.root = args.root == 0 ? npes - 1 : 0;
}
static void no_source_of_root(void) { /* the PE with this fault is the root */
    args.root = me;
    args.source = NULL;
}
static void no_to(void) {
    args.to_at = NULL;
}
static void no_from(void) {
    args.from_at = NULL;
}
static void expects_more(void) {
    args.to[npes - 1]++;
}
static void expects_less(void) {
    args.to[0] = 0;
}
static void sends_less(void) {
    args.from[npes / 2]--;
}
static void vast_parts(void) {
    args.from[npes - 1] = SIZE_MAX / 4;
}
static void vast_offset(void) {
    args.offsets[0] = SIZE_MAX;
}
static void sums_that_overflow(void) {
    args.from[0] = args.from[npes - 1] = (size_t)PTRDIFF_MAX / 4;
}
static void other_nparts(void) {
    args.nparts = 0;
}
static void vast_nparts(void) {
    args.nparts = SIZE_MAX;
}
static void no_a(void) {
    args.a_at = NULL;
}
static void no_b(void) {
    args.b_at = NULL;
}
static void no_c(void) {
    args.c_at = NULL;
}
static void a_without_data(void) {
    args.a.data = NULL;
}
static void a_small_ld(void) {
    args.a.ld = args.a.cols - 1;
}
static void b_small_ld(void) {
    args.b.ld = args.b.cols - 1;
}
static void c_small_ld(void) {
    args.c.ld = args.c.cols - 1;
}
static void a_transposed_small_ld(void) {
    args.a.transposed = true;
    args.a.ld = args.a.rows - 1;
}
static void b_transposed_small_ld(void) {
    args.b.transposed = true;
    args.b.ld = args.b.rows - 1;
}
static void c_transposed(void) {
    args.c.transposed = true;
}
static void full_transposed(void) {
    args.full.transposed = true;
}
static void a_scale_transposed(void) {
    args.a_scale.transposed = true;
}
static void b_scale_transposed(void) {
    args.b_scale.transposed = true;
}
static void bias_transposed(void) {
    args.bias.transposed = true;
}
static void a_odd_dtype(void) {
    args.a.dtype = (weft_dtype)77;
}
static void b_dtype(void) {
    args.b.dtype = WEFT_F64;
}
static void c_dtype(void) {
    args.c.dtype = WEFT_F16;
}
static void b_rows(void) {
    args.b.rows--;
}
static void c_rows(void) {
    args.c.rows--;
}
static void c_rows_without_full(void) {
    args.full_at = NULL;
    args.c.rows--;
}
static void c_cols(void) {
    args.c.cols--;
}
static void full_cols(void) {
    args.full.cols--;
}
static void full_rows(void) {
    args.full.rows--;
}
static void other_k(void) {
    args.a.cols = args.b.rows = args.full.cols = K - 1;
}
static void other_n(void) {
    args.b.cols = args.c.cols = N - 1;
}
static void other_m(void) {
    args.a.rows--;
}
static void other_m_and_c(void) {
    args.a.rows--;
    args.c.rows--;
}
static void no_a_scale(void) {
    args.a_scale_at = NULL;
}
static void no_b_scale(void) {
    args.b_scale_at = NULL;
}
static void a_scale_dtype(void) {
    args.a_scale.dtype = WEFT_BF16;
}
static void a_scale_rows(void) {
    args.a_scale.rows++;
}
static void a_scale_cols(void) {
    args.a_scale.cols = args.a_scale.ld = 2;
}
static void b_scale_cols(void) {
    args.b_scale.cols--;
}
static void b_scale_without_data(void) {
    args.b_scale.data = NULL;
}
static void bias_cols(void) {
    args.bias.cols--;
}
static void bias_rows(void) {
    args.bias.rows = 2;
}
static void bias_dtype(void) {
    args.bias.dtype = WEFT_I32;
}
static void c_eight_bits(void) {
    args.c.dtype = WEFT_F8E4M3;
}
static void c_other_float(void) {
    args.c.dtype = WEFT_F16;
}
static void a_vast_rows(void) { /* valid for a matrix without columns */
    args.a.rows = SIZE_MAX / 2;
    args.a.cols = args.a.ld = args.b.rows = args.full.cols = 0;
    args.a_scale.rows = 1;
}
static void a_wide(void) {
    args.a.dtype = WEFT_BF16;
    args.a.rows = args.a_scale.rows = 1; /* stays inside the memory */
}
static void other_eight_bits(void) {
    args.a.dtype = args.full.dtype = WEFT_F8E5M2;
}
static void integers(void) {
    args.a.dtype = args.b.dtype = args.c.dtype = args.full.dtype = WEFT_I32;
}
static void all_f64(void) {
    args.a.dtype = args.b.dtype = args.c.dtype = args.full.dtype = WEFT_F64;
    args.a.ld = K; /* stays inside the memory of half the size */
    args.a.rows = 1;
}

struct fault {
    void (*inject)(void);
    const char *text; /* must be in weft_last_error() */
    int code;
    bool needs_peers; /* its peers notice it; on a PE alone nothing is wrong, or the fault cannot be
                         noticed */
};

static const struct fault reduce_faults[] = {{no_team, "team", EINVAL, true},
                                             {wild_team, "team", EINVAL, true},
                                             {no_dest, "dest", EINVAL, false},
                                             {no_source, "source", EINVAL, false},
                                             {odd_dtype, "dtype", EINVAL, false},
                                             {other_dtype, "dtype", EINVAL, true},
                                             {odd_op, "op", EINVAL, false},
                                             {other_op, "op", EINVAL, true},
                                             {other_nelems, "nelems", EINVAL, true},
                                             {vast_nelems, "nelems", EINVAL, false},
                                             {op_of_no_integer, "WEFT_I16", EINVAL, false},
                                             {dtype_not_reduced, "WEFT_F8E4M3", EINVAL, false}};
static const struct fault broadcast_faults[] = {{no_team, "team", EINVAL, true},
                                                {wild_team, "team", EINVAL, true},
                                                {no_dest, "dest", EINVAL, false},
                                                {no_source_of_root, "source", EINVAL, false},
                                                {odd_dtype, "dtype", EINVAL, false},
                                                {other_dtype, "dtype", EINVAL, true},
                                                {other_nelems, "nelems", EINVAL, true},
                                                {wild_root, "root", EINVAL, false},
                                                {negative_root, "root is -1", EINVAL, false},
                                                {other_root, "root", EINVAL, true}};
static const struct fault parts_faults[] = {{no_team, "team", EINVAL, true},
                                            {wild_team, "team", EINVAL, true},
                                            {no_dest, "dest", EINVAL, false},
                                            {no_source, "source", EINVAL, false},
                                            {no_to, "dest_nelems is NULL", EINVAL, false},
                                            {no_from, "source_nelems is NULL", EINVAL, false},
                                            {odd_dtype, "dtype", EINVAL, false},
                                            {other_dtype, "dtype", EINVAL, true},
                                            {expects_more, "but dest_nelems[", EINVAL, false},
                                            {expects_less, "dest_nelems[0] is 0", EINVAL, false},
                                            {sends_less, "source_nelems[", EINVAL, false},
                                            {vast_parts, "source_nelems[", EINVAL, false},
                                            {vast_offset, "dest_nelems[0]", EINVAL, false},
                                            {sums_that_overflow, "source_nelems[", EINVAL, false},
                                            {other_nparts, "nparts", EINVAL, true},
                                            {vast_nparts, "nparts", ENOMEM, false},
                                            {device_stream, "stream", ENOTSUP, false}};
static const struct fault gather_faults[] = {
    {no_team, "team", EINVAL, true},       {wild_team, "team", EINVAL, true},
    {no_dest, "dest", EINVAL, false},      {no_source, "source", EINVAL, false},
    {odd_dtype, "dtype", EINVAL, false},   {other_dtype, "dtype", EINVAL, true},
    {other_nelems, "nelems", EINVAL, true}};
static const struct fault gather_matmul_faults[] = {
    {no_team, "team", EINVAL, true},
    {wild_team, "team", EINVAL, true},
    {no_a, "a_shard", EINVAL, false},
    {no_b, "b is NULL", EINVAL, false},
    {no_c, "c is NULL", EINVAL, false},
    {a_without_data, "a_shard->data", EINVAL, false},
    {a_small_ld, "a_shard->ld", EINVAL, false},
    {b_small_ld, "b[0].ld", EINVAL, false},
    {c_small_ld, "c[0].ld", EINVAL, false},
    {a_transposed_small_ld, "a_shard->ld is 2, less than its rows 3", EINVAL, false},
    {b_transposed_small_ld, "b[0].ld is 3, less than its rows 4", EINVAL, false},
    {c_transposed, "c[0].transposed is true", EINVAL, false},
    {full_transposed, "a_full->transposed is true", EINVAL, false},
    {a_odd_dtype, "a_shard->dtype", EINVAL, false},
    {b_dtype, "b[0].dtype", EINVAL, false},
    {c_dtype, "c[0].dtype", EINVAL, false},
    {b_rows, "b[0].rows", EINVAL, false},
    {c_rows, "c[0].rows", EINVAL, false},
    {c_rows_without_full, "c[0].rows", EINVAL, false},
    {c_cols, "c[0].cols", EINVAL, false},
    {full_cols, "a_full->cols", EINVAL, false},
    {full_rows, "rows", EINVAL, false},
    {other_k, "a_shard->cols", EINVAL, true},
    {all_f64, "dtype", EINVAL, true},
    {integers, "WEFT_I32", EINVAL, false}};
static const struct fault scatter_faults[] = {{no_team, "team", EINVAL, true},
                                              {wild_team, "team", EINVAL, true},
                                              {no_a, "a is NULL", EINVAL, false},
                                              {no_b, "b is NULL", EINVAL, false},
                                              {no_c, "c_shard is NULL", EINVAL, false},
                                              {a_small_ld, "a->ld", EINVAL, false},
                                              {b_transposed_small_ld, "b->ld is 3", EINVAL, false},
                                              {c_transposed, "c_shard->transposed", EINVAL, false},
                                              {b_rows, "b->rows", EINVAL, false},
                                              {c_cols, "c_shard->cols", EINVAL, false},
                                              {c_rows, "c_shards have", EINVAL, false},
                                              {op_max, "op", EINVAL, false},
                                              {other_op, "op", EINVAL, true},
                                              {other_m, "a->rows", EINVAL, true},
                                              {other_n, "b->cols", EINVAL, true},
                                              {all_f64, "dtype", EINVAL, true},
                                              {c_dtype, "c_shard->dtype", EINVAL, false}};
static const struct fault gather_scaled_faults[] = {
    {no_team, "team", EINVAL, true},
    {no_a, "a_shard is NULL", EINVAL, false},
    {no_b, "b is NULL", EINVAL, false},
    {no_c, "c is NULL", EINVAL, false},
    {no_a_scale, "a_scale is NULL", EINVAL, false},
    {no_b_scale, "b_scale is NULL", EINVAL, false},
    {a_scale_dtype, "a_scale->dtype is WEFT_BF16, not WEFT_F32", EINVAL, false},
    {a_scale_rows, "a_scale->rows x cols is 4 x 1, not 1 x 1 or 3 x 1", EINVAL, false},
    {a_scale_cols, "a_scale->rows x cols", EINVAL, false},
    {a_scale_transposed, "a_scale->transposed is true", EINVAL, false},
    {b_scale_transposed, "b_scale[0].transposed is true", EINVAL, false},
    {bias_transposed, "bias[0].transposed is true", EINVAL, false},
    {full_transposed, "a_full->transposed is true", EINVAL, false},
    {a_transposed_small_ld, "a_shard->ld is 2, less than its rows 3", EINVAL, false},
    {b_scale_cols, "b_scale[0].rows x cols is 1 x 4, not 1 x 1 or 1 x 5", EINVAL, false},
    {b_scale_without_data, "b_scale[0].data", EINVAL, false},
    {bias_cols, "bias[0].cols is 4", EINVAL, false},
    {bias_rows, "bias[0].rows is 2", EINVAL, false},
    {bias_dtype, "bias[0].dtype is WEFT_I32", EINVAL, false},
    {c_eight_bits, "c[0].dtype is WEFT_F8E4M3", EINVAL, false},
    {a_vast_rows, "the scales of", ENOMEM, true},
    {a_wide, "a_shard->dtype is WEFT_BF16, not WEFT_F8E4M3", EINVAL, false},
    {b_dtype, "b[0].dtype is WEFT_F64", EINVAL, false},
    {other_eight_bits, "dtype", EINVAL, true},
    {b_rows, "b[0].rows", EINVAL, false},
    {c_rows, "c[0].rows", EINVAL, false},
    {c_rows_without_full, "c[0].rows", EINVAL, false},
    {c_cols, "c[0].cols", EINVAL, false},
    {full_rows, "rows", EINVAL, false},
    {other_k, "a_shard->cols", EINVAL, true}};
static const struct fault scatter_scaled_faults[] = {
    {no_team, "team", EINVAL, true},
    {no_a, "a is NULL", EINVAL, false},
    {no_b, "b is NULL", EINVAL, false},
    {no_c, "c_shard is NULL", EINVAL, false},
    {no_a_scale, "a_scale is NULL", EINVAL, false},
    {no_b_scale, "b_scale is NULL", EINVAL, false},
    {a_scale_rows, "a_scale->rows x cols", EINVAL, false},
    {b_scale_cols, "b_scale->rows x cols is 1 x 4, not 1 x 1 or 1 x 5", EINVAL, false},
    {bias_cols, "bias->cols is 4", EINVAL, false},
    {bias_transposed, "bias->transposed is true", EINVAL, false},
    {c_eight_bits, "c_shard->dtype is WEFT_F8E4M3", EINVAL, false},
    {c_other_float, "c_shard->dtype is WEFT_F", EINVAL, true},
    {a_wide, "a->dtype is WEFT_BF16", EINVAL, false},
    {b_dtype, "b->dtype is WEFT_F64", EINVAL, false},
    {b_rows, "b->rows", EINVAL, false},
    {c_cols, "c_shard->cols", EINVAL, false},
    {c_rows, "c_shards have", EINVAL, false},
    {op_max, "op", EINVAL, false},
    {other_op, "op", EINVAL, true}};
static const struct fault product_faults[] = {{no_team, "team", EINVAL, true},
                                              {wild_team, "team", EINVAL, true},
                                              {no_a, "a is NULL", EINVAL, false},
                                              {no_b, "b is NULL", EINVAL, false},
                                              {no_c, "c is NULL", EINVAL, false},
                                              {c_small_ld, "c->ld", EINVAL, false},
                                              {b_rows, "b->rows", EINVAL, false},
                                              {c_cols, "c->cols", EINVAL, false},
                                              {c_rows, "c->rows", EINVAL, false},
                                              {op_max, "op", EINVAL, false},
                                              {c_transposed, "c->transposed", EINVAL, false},
                                              {a_transposed_small_ld, "a->ld", EINVAL, false},
                                              {other_op, "op", EINVAL, true},
                                              {other_m_and_c, "a->rows", EINVAL, true},
                                              {other_n, "b->cols", EINVAL, true},
                                              {b_dtype, "b->dtype", EINVAL, false}};

/* The text names the function and, except for sums over all members, the PE. */
static void expect_text(const char *function, const struct fault *fault, int culprit) {
    char pe[16];
    snprintf(pe, sizeof pe, "PE %d", culprit);
    const char *text = weft_last_error();
    bool names_pe = strstr(text, pe) || strstr(fault->text, "c_shards");
    EXPECT(strstr(text, function) && strstr(text, fault->text) && names_pe,
           "%s with PE %d wrong about %s: \"%s\"", function, culprit, fault->text, text);
}

static void expect_fault(const char *function, operator* call, const struct fault *fault,
                         int culprit, size_t nelems, size_t a_rows, size_t c_rows) {
    prepare(nelems, a_rows, c_rows);
    if (me == culprit)
        fault->inject();
    int error = call();
    EXPECT(error == -fault->code, "%s, %s: %d", function, fault->text, error);
    expect_text(function, fault, culprit);
    EXPECT(tensor_untouched(&dest) && tensor_untouched(&c) && tensor_untouched(&full),
           "%s, %s: an output was written", function, fault->text);
}

static void expect_faults(const char *function, operator* call, const struct fault *faults,
                          size_t nfaults, size_t nelems, size_t a_rows, size_t c_rows) {
    tap_case(function);
    for (size_t f = 0; f < nfaults; f++)
        for (int culprit = 0; culprit < npes; culprit++)
            if (npes > 1 || !faults[f].needs_peers)
                expect_fault(function, call, &faults[f], culprit, nelems, a_rows, c_rows);
    prepare(nelems, a_rows, c_rows);
    int error = call();
    EXPECT(error == 0, "a correct call after wrong ones: %d, %s", error, weft_last_error());
}
#define FAULTS(list) (list), sizeof(list) / sizeof *(list)

static void expect_no_team(void) {
    tap_case("a team that is none, on every PE");
    prepare(8, ROWS, ROWS);
    args.team = SHMEM_TEAM_INVALID;
    EXPECT(all_reduce() == -EINVAL, "SHMEM_TEAM_INVALID");
    EXPECT(strstr(weft_last_error(), "team"), "\"%s\"", weft_last_error());
    args.team = (shmem_team_t)(uintptr_t)0xdeadbeef;
    EXPECT(matmul_all_reduce() == -EINVAL, "a wild handle");
}

/* The last PE of each of two teams is lost, early or late, and immediately makes the next call. */
static void expect_team_found(void) {
    tap_case("a lost member is found by the right one of two teams, early or late");
    shmem_team_t even, odd, mine;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (npes + 1) / 2, NULL, 0, &even);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, npes > 1, 2, npes > 1 ? npes / 2 : 1, NULL, 0, &odd);
    mine = me % 2 == 0 ? even : odd;
    int members = shmem_team_n_pes(mine), rank = shmem_team_my_pe(mine);
    for (int turn = 0; turn < 20 && members > 1; turn++) {
        prepare(8, ROWS, ROWS);
        bool is_lost = rank == members - 1;
        args.team = is_lost ? SHMEM_TEAM_INVALID : mine;
        if (is_lost == (turn % 2 == 0))
            usleep(1000u * (unsigned)turn);
        EXPECT(all_reduce() == -EINVAL, "turn %d", turn);
        EXPECT(strstr(weft_last_error(), "team"), "turn %d: \"%s\"", turn, weft_last_error());
        args.team = mine;
        EXPECT(all_reduce() == 0, "the call after turn %d: %s", turn, weft_last_error());
    }
    shmem_barrier_all();
    shmem_team_destroy(even);
    shmem_team_destroy(odd);
}

/* Replaces the yield of the library's waits. On a machine with more runnable threads than
 * processors a yield returns only after the others' turns. */
static atomic_uint yield_us;
int sched_yield(void) {
    return yield_us ? usleep(yield_us) : (int)syscall(SYS_sched_yield);
}

static void expect_found_by_crowded(void) {
    tap_case("a lost member is found by peers that hardly get to run");
    yield_us = 10000;
    for (int lost = 0; lost < npes && npes > 1; lost++) {
        prepare(8, ROWS, ROWS);
        args.team = me == lost ? SHMEM_TEAM_INVALID : SHMEM_TEAM_WORLD;
        if (me == lost)
            usleep(50000); /* its peers are already waiting */
        EXPECT(all_reduce() == -EINVAL, "PE %d is lost", lost);
        EXPECT(strstr(weft_last_error(), "PE "), "PE %d is lost: \"%s\"", lost, weft_last_error());
        args.team = SHMEM_TEAM_WORLD;
        EXPECT(all_reduce() == 0, "the call after PE %d: %s", lost, weft_last_error());
    }
    yield_us = 0;
}

static void expect_different_calls(void) {
    tap_case("members that make different calls");
    prepare(8, ROWS, ROWS);
    int error = me == 0 ? all_reduce() : all_gather();
    EXPECT(error == (npes > 1 ? -EINVAL : 0), "%d", error);
    EXPECT(npes == 1 || strstr(weft_last_error(), "weft_all_gather"), "\"%s\"", weft_last_error());
}

static void expect_no_workspace(void) {
    tap_case("a workspace that one member cannot have");
    int error = weft_reserve(SHMEM_TEAM_WORLD, me == npes - 1 ? (size_t)1 << 50 : 4096);
    EXPECT(error == -ENOMEM, "%d", error);
    EXPECT(strstr(weft_last_error(), "weft_reserve: PE "), "\"%s\"", weft_last_error());
    error = weft_reserve(SHMEM_TEAM_WORLD, 4096);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
}

static void expect_small_answers(void) {
    tap_case("types have sizes, and waiting is counted once");
    static const size_t bytes[] = {0, 4, 8, 2, 2, 1, 1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 8, 16};
    for (int dtype = WEFT_F32; dtype <= WEFT_C128; dtype++)
        EXPECT(weft_dtype_bytes((weft_dtype)dtype) == bytes[dtype], "%s", dtype_names[dtype]);
    EXPECT(weft_dtype_bytes((weft_dtype)0) == 0 && weft_dtype_bytes((weft_dtype)18) == 0,
           "no types");
    EXPECT(weft_wait_seconds() >= 0 && weft_wait_seconds() == 0, "the second is %g",
           weft_wait_seconds());
}

int main(void) {
    tensors_open(true);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    size_t all = ROWS * (size_t)npes;
    expect_faults("weft_all_reduce", all_reduce, FAULTS(reduce_faults), 8, ROWS, all);
    expect_faults("weft_all_reduce", all_reduce, FAULTS(reduce_faults), 5000, ROWS, all);
    expect_faults("weft_reduce_scatter", reduce_scatter, FAULTS(reduce_faults), 5000, ROWS, all);
    expect_faults("weft_all_gather", all_gather, FAULTS(gather_faults), 8, ROWS, all);
    expect_faults("weft_broadcast", broadcast, FAULTS(broadcast_faults), 8, ROWS, all);
    expect_faults("weft_broadcast", broadcast, FAULTS(broadcast_faults), 5000, ROWS, all);
    expect_faults("weft_all_to_all", all_to_all, FAULTS(gather_faults), 8, ROWS, all);
    expect_faults("weft_all_to_all", all_to_all, FAULTS(gather_faults), 5000, ROWS, all);
    expect_faults("weft_all_to_allv", all_to_allv, FAULTS(parts_faults), 8, ROWS, all);
    expect_faults("weft_all_to_allv", all_to_allv, FAULTS(parts_faults), 5000, ROWS, all);
    expect_faults("weft_all_gather_matmul", all_gather_matmul, FAULTS(gather_matmul_faults), 8,
                  ROWS, all);
    expect_faults("weft_matmul_reduce_scatter", matmul_reduce_scatter, FAULTS(scatter_faults), 8,
                  all, ROWS);
    expect_faults("weft_matmul_all_reduce", matmul_all_reduce, FAULTS(product_faults), 8, all, all);
    factor_dtype = WEFT_F8E4M3;
    expect_faults("weft_all_gather_scaled_matmul", all_gather_scaled_matmul,
                  FAULTS(gather_scaled_faults), 8, ROWS, all);
    expect_faults("weft_scaled_matmul_reduce_scatter", scaled_matmul_reduce_scatter,
                  FAULTS(scatter_scaled_faults), 8, all, ROWS);
    factor_dtype = WEFT_F32;
    expect_no_team();
    expect_team_found();
    expect_found_by_crowded();
    expect_different_calls();
    expect_no_workspace();
    expect_small_answers();
    shmem_free(heap_arena);
    return tap_finish();
}
