/* SPDX-License-Identifier: BSD-3-Clause */
/* The matmul operators beside their parts, in turn on random data: "fused" is the operator,
 * "unfused" the collective and one matmul before or after it, "matmul" only the same total local
 * product, on all PEs at once. Every time is a median, of the slowest PE. JSON lines; M and N are
 * global. N is split over the PEs for all-gather-matmul, K for the others. With 8-bit factors the
 * operators are the scaled ones, with a scale for each row and column and bf16 results.
 *
 *   oshrun -n 2 operators [SECONDS_PER_ROW [OPERATOR [real|cpu [all|MxNxK [rows|columns]]]]]
 *
 * With sizes there is one row, of f32. "cpu" measures the processor time of a PE instead of real
 * time, for a loaded machine: it shows the work, but not the waiting. "columns" stores b by
 * columns, as weights of PyTorch are. */
#include <shmem.h>
#include <stdbool.h>
#include <string.h>
#include <weft.h>
#include "bench.h"

enum { REPEATS_MIN = 7, REPEATS_MAX = 400 };
enum { FUSED, UNFUSED, MATMUL, WAYS };

static int me, npes;
static shmem_team_t alone; /* this PE only: its matmul is the local one */
static double seconds_per_row = 2;
static clockid_t clock_used = CLOCK_MONOTONIC;
static bool b_transposed;

/* Matrices of a row. The factors that are communicated are symmetric, as in a careful user's
 * program. */
static struct row {
    const char *name;
    weft_dtype dtype, result;
    size_t m, n, k;
    bool scaled;
    weft_matrix a_scale, b_scale, shard_scale;
    weft_matrix a, b, c; /* this PE's whole local product: c = a x b */
    weft_matrix shard;   /* this PE's rows of a, or of the reduced c */
    weft_matrix fused;   /* the output of the fused operator */
    weft_matrix alone;   /* of the matmul alone: cache lines of c are also in the peers' caches */
} row;

typedef void way(void);
struct subject {
    const char *name, *scaled_name;
    void (*prepare)(size_t m, size_t n, size_t k);
    way *ways[WAYS];
};

static void check(int error) {
    if (error == 0)
        return;
    fprintf(stderr, "operators: %s\n", weft_last_error());
    shmem_global_exit(1);
}

/* Numbers in (-1, 1): the upper byte of small floats varies little, which suits all types. */
static void fill(const weft_matrix *m, unsigned seed) {
    for (size_t i = 0; i < m->rows * m->cols; i++) {
        seed = seed * 1664525 + 1013904223;
        float x = (float)(int)seed * 0x1p-31f;
        double d = (double)x;
        unsigned bits;
        memcpy(&bits, &x, sizeof bits);
        unsigned short upper = (unsigned short)(bits >> 16);
        if (m->dtype == WEFT_F16)
            upper = (unsigned short)(0x3000 | (seed >> 16 & 0x83ff));
        if (m->dtype == WEFT_F8E4M3)
            upper = seed >> 16 & 0xbf;
        char *at = (char *)m->data + i * weft_dtype_bytes(m->dtype);
        memcpy(at,
               m->dtype == WEFT_F64   ? (void *)&d
               : m->dtype == WEFT_F32 ? (void *)&x
                                      : &upper,
               weft_dtype_bytes(m->dtype));
    }
}

static weft_matrix symmetric(size_t rows, size_t cols, weft_dtype dtype) {
    void *p = shmem_malloc(rows * cols * weft_dtype_bytes(dtype));
    if (!p)
        shmem_global_exit(1);
    return (weft_matrix){p, rows, cols, cols, dtype, false};
}

static weft_matrix private(size_t rows, size_t cols, weft_dtype dtype) {
    size_t bytes = rows * cols * weft_dtype_bytes(dtype);
    void *p = memset(aligned_alloc(4096, (bytes + 4095) / 4096 * 4096), 0, bytes);
    return (weft_matrix){p, rows, cols, cols, dtype, false};
}

static weft_matrix second_factor(size_t rows, size_t cols, weft_dtype dtype) {
    weft_matrix b = private(rows, cols, dtype);
    b.transposed = b_transposed;
    b.ld = b_transposed ? rows : cols;
    return b;
}

static void multiply(weft_matrix *c) {
    if (row.scaled)
        check(weft_all_gather_scaled_matmul(alone, &row.a, &row.a_scale, &row.b, &row.b_scale, 1,
                                            NULL, c, NULL, WEFT_STREAM_HOST));
    else
        check(weft_all_gather_matmul(alone, &row.a, &row.b, 1, c, NULL, WEFT_STREAM_HOST));
}

static void matmul_alone(void) {
    multiply(&row.alone);
}

/* --- All-gather, matmul ---------------------------------------------------------------------- */

static void gather_prepare(size_t m, size_t n, size_t k) {
    size_t cols = n / (size_t)npes, rows = m / (size_t)npes;
    row.a = symmetric(m, k, row.dtype);
    row.shard = symmetric(rows, k, row.dtype);
    row.b = second_factor(k, cols, row.dtype);
    row.c = private(m, cols, row.result);
    row.fused = private(m, cols, row.result);
}

static void gather_fused(void) {
    if (row.scaled)
        check(weft_all_gather_scaled_matmul(SHMEM_TEAM_WORLD, &row.shard, &row.shard_scale, &row.b,
                                            &row.b_scale, 1, NULL, &row.fused, NULL,
                                            WEFT_STREAM_HOST));
    else
        check(weft_all_gather_matmul(SHMEM_TEAM_WORLD, &row.shard, &row.b, 1, &row.fused, NULL,
                                     WEFT_STREAM_HOST));
}

static void gather_unfused(void) {
    check(weft_all_gather(SHMEM_TEAM_WORLD, row.a.data, row.shard.data,
                          row.shard.rows * row.shard.cols, row.dtype, WEFT_STREAM_HOST));
    if (row.scaled)
        check(weft_all_gather(SHMEM_TEAM_WORLD, row.a_scale.data, row.shard_scale.data,
                              row.shard.rows, WEFT_F32, WEFT_STREAM_HOST));
    multiply(&row.c);
}

/* --- Matmul, reduce-scatter ------------------------------------------------------------------ */

static void scatter_prepare(size_t m, size_t n, size_t k) {
    size_t depth = k / (size_t)npes, rows = m / (size_t)npes;
    row.a = private(m, depth, row.dtype);
    row.b = second_factor(depth, n, row.dtype);
    row.c = symmetric(m, n, row.result);
    row.shard = private(rows, n, row.result);
    row.fused = private(rows, n, row.result);
}

static void scatter_fused(void) {
    if (row.scaled)
        check(weft_scaled_matmul_reduce_scatter(SHMEM_TEAM_WORLD, &row.a, &row.a_scale, &row.b,
                                                &row.b_scale, NULL, WEFT_SUM, &row.fused,
                                                WEFT_STREAM_HOST));
    else
        check(weft_matmul_reduce_scatter(SHMEM_TEAM_WORLD, &row.a, &row.b, WEFT_SUM, &row.fused,
                                         WEFT_STREAM_HOST));
}

static void scatter_unfused(void) {
    multiply(&row.c);
    check(weft_reduce_scatter(SHMEM_TEAM_WORLD, row.shard.data, row.c.data,
                              row.shard.rows * row.shard.cols, row.result, WEFT_SUM,
                              WEFT_STREAM_HOST));
}

/* --- Matmul, all-reduce ---------------------------------------------------------------------- */

static void reduce_prepare(size_t m, size_t n, size_t k) {
    size_t depth = k / (size_t)npes;
    row.a = private(m, depth, row.dtype);
    row.b = second_factor(depth, n, row.dtype);
    row.c = symmetric(m, n, row.result);
    row.shard = symmetric(m, n, row.result);
    row.fused = symmetric(m, n, row.result);
}

static void reduce_fused(void) {
    check(weft_matmul_all_reduce(SHMEM_TEAM_WORLD, &row.a, &row.b, WEFT_SUM, &row.fused,
                                 WEFT_STREAM_HOST));
}

static void reduce_unfused(void) {
    multiply(&row.c);
    check(weft_all_reduce(SHMEM_TEAM_WORLD, row.shard.data, row.c.data, row.m * row.n, row.dtype,
                          WEFT_SUM, WEFT_STREAM_HOST));
}

/* --- Measuring ------------------------------------------------------------------------------- */

static const struct subject operators[] = {
    {"all_gather_matmul",
     "all_gather_scaled_matmul",
     gather_prepare,
     {gather_fused, gather_unfused, matmul_alone}},
    {"matmul_reduce_scatter",
     "scaled_matmul_reduce_scatter",
     scatter_prepare,
     {scatter_fused, scatter_unfused, matmul_alone}},
    {"matmul_all_reduce", NULL, reduce_prepare, {reduce_fused, reduce_unfused, matmul_alone}},
};

static double now(void) {
    struct timespec time;
    clock_gettime(clock_used, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double timed(way *body) {
    shmem_barrier_all();
    double begin = now();
    body();
    return now() - begin;
}

/* Returns how often to repeat all variants, the same on all PEs. */
static int repeats(const struct subject *subject) {
    double once = 0;
    for (int w = 0; w < WAYS; w++) {
        subject->ways[w]();
        once += timed(subject->ways[w]);
    }
    double n = seconds_per_row / once, least;
    check(weft_all_reduce(SHMEM_TEAM_WORLD, &least, &n, 1, WEFT_F64, WEFT_MIN, WEFT_STREAM_HOST));
    return least < REPEATS_MIN ? REPEATS_MIN : least > REPEATS_MAX ? REPEATS_MAX : (int)least;
}

static void release(void *p) {
    if (shmem_addr_accessible(p, me))
        shmem_free(p);
    else
        free(p);
}

static void print(const char *name, const double *us) {
    static const char *const types[] = {"", "f32", "f64", "bf16", "f16", "f8e4m3"};
    bench_progress_end(me);
    if (me == 0)
        printf("{\"operator\": \"%s%s\", \"dtype\": \"%s\", \"M\": %zu, \"N\": %zu, \"K\": %zu, "
               "\"pes\": %d, \"fused_us\": %.1f, \"unfused_us\": %.1f, \"matmul_us\": %.1f, "
               "\"fused_per_matmul\": %.3f, \"fused_per_unfused\": %.3f}\n",
               name, b_transposed ? ", b by columns" : "", types[row.dtype], row.m, row.n, row.k,
               npes, us[FUSED], us[UNFUSED], us[MATMUL], us[FUSED] / us[MATMUL],
               us[FUSED] / us[UNFUSED]);
    fflush(stdout);
}

static void measure(const struct subject *subject) {
    static double samples[WAYS][REPEATS_MAX];
    double medians[WAYS], worst[WAYS];
    int n = repeats(subject);
    for (int i = 0; i < n; i++)
        for (int w = 0; w < WAYS; w++)
            samples[w][i] = timed(subject->ways[w]) * 1e6;
    for (int w = 0; w < WAYS; w++)
        medians[w] = bench_median(samples[w], n);
    check(weft_all_reduce(SHMEM_TEAM_WORLD, worst, medians, WAYS, WEFT_F64, WEFT_MAX,
                          WEFT_STREAM_HOST));
    print(row.name, worst);
}

static void run(const struct subject *subject, weft_dtype dtype, const size_t *shape) {
    bool scaled = dtype == WEFT_F8E4M3;
    row = (struct row){.name = scaled ? subject->scaled_name : subject->name,
                       .dtype = dtype,
                       .result = scaled ? WEFT_BF16 : dtype,
                       .m = shape[0],
                       .n = shape[1],
                       .k = shape[2],
                       .scaled = scaled};
    bench_progress(me, row.name);
    subject->prepare(row.m, row.n, row.k);
    row.alone = private(row.c.rows, row.c.cols, row.result);
    row.a_scale = symmetric(row.a.rows, 1, WEFT_F32);
    row.shard_scale = symmetric(row.shard.rows, 1, WEFT_F32);
    row.b_scale = private(1, row.b.cols, WEFT_F32);
    fill(&row.a_scale, 4u);
    fill(&row.shard_scale, 5u);
    fill(&row.b_scale, 6u);
    fill(&row.a, 1u + (unsigned)me);
    fill(&row.shard, 2u + (unsigned)me);
    fill(&row.b, 3u + (unsigned)me);
    measure(subject);
    void *memory[] = {row.a.data,       row.b.data,       row.c.data,
                      row.shard.data,   row.fused.data,   row.alone.data,
                      row.b_scale.data, row.a_scale.data, row.shard_scale.data};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        release(memory[i]);
}

static void run_all(const struct subject *subject, const size_t *shape, bool narrow) {
    run(subject, WEFT_F32, shape);
    if (narrow)
        run(subject, WEFT_BF16, shape);
    if (subject->scaled_name)
        run(subject, WEFT_F8E4M3, shape);
}

int main(int argc, char **argv) {
    static const size_t shapes[][3] = {{2048, 8192, 1024}, {2048, 1536, 384}, {1024, 1024, 1024},
                                       {512, 2048, 512},   {256, 256, 256},   {64, 4096, 1024},
                                       {64, 64, 64},       {8, 4096, 1024}};
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    if (argc > 1)
        seconds_per_row = atof(argv[1]);
    for (int pe = 0; pe < npes; pe++) {
        shmem_team_t team;
        shmem_team_split_strided(SHMEM_TEAM_WORLD, pe, 1, 1, NULL, 0, &team);
        if (pe == me)
            alone = team;
    }
    const char *only = argc > 2 ? argv[2] : NULL;
    if (argc > 3 && strcmp(argv[3], "cpu") == 0)
        clock_used = CLOCK_PROCESS_CPUTIME_ID;
    size_t sizes[3] = {0};
    b_transposed = argc > 5 && strcmp(argv[5], "columns") == 0;
    bool one = argc > 4 && sscanf(argv[4], "%zux%zux%zu", &sizes[0], &sizes[1], &sizes[2]) == 3;
    for (size_t o = 0; o < sizeof operators / sizeof *operators; o++) {
        const struct subject *subject = &operators[o];
        if (only && strcmp(only, subject->name) != 0)
            continue;
        if (one)
            run(subject, WEFT_F32, sizes);
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes && !one; s++)
            run_all(subject, shapes[s], s < 4);
    }
    shmem_finalize();
}
