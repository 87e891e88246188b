/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of matrices in bf16 or fp8 and their communication: Weft's fused calls, captured and
 * called one by one ("eager"), beside the product alone by the fastest of cuBLASLt's algorithms,
 * that product and a collective of Weft one after the other, and the same with NCCL where its
 * header is found.
 *
 *   oshrun -n 2 products FILE [SKIP]     rows as in products.txt; SKIP=3 takes every third
 *
 * Every way is a graph of CALLS calls. Each timed graph follows HEAT_US of the product alone and a
 * meeting of the GPUs, so that power and clock are alike for all: GPUs that multiply are limited by
 * power, and have a higher clock for some milliseconds after they have waited. Ways take turns,
 * ROUNDS times, and each is first in some rounds. Results are compared with those of the other ways
 * before that. */
#include <cublasLt.h>
#include <shmemx.h>
#include <weft.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#define HAVE_NCCL 1
#endif
#include "gpu.h"

enum { CALLS = 24, ROUNDS = 11, ALGORITHMS = 16, WORKSPACE = 32 << 20, HEAT_US = 20000 };
enum way { ALONE, FUSED, EAGER, APART, NCCL_APART, WAYS };
static const char *const names[WAYS] = {"alone", "weft", "weft, eager", "weft, apart",
                                        "nccl, apart"};

static struct row {
    char operation[16];
    size_t m, n, k; /* of what this PE multiplies */
    bool gathers, reduces;
    bool narrow;    /* factors of fp8, with one scale each */
    bool row_major; /* B; otherwise its columns are contiguous */
} row;

static void *a, *b, *c, *whole, *out, *workspace; /* `whole` and `out` are symmetric */
static float *scale;                              /* 1, on the GPU */
static cublasLtHandle_t lt;
static cublasLtMatmulDesc_t desc;
static cublasLtMatrixLayout_t layouts[3];
static cublasLtMatmulHeuristicResult_t algorithms[ALGORITHMS];
static int nalgorithms, chosen;

static void require(int result, const char *what) {
    if (result != 0)
        give_up(what, weft_last_error());
}

#define LT(call)                                         \
    do {                                                 \
        int status_ = (int)(call);                       \
        if (status_ != 0)                                \
            give_up(#call, "cuBLASLt returns an error"); \
    } while (0)

/* --- The product alone ------------------------------------------------------------------------ */

static size_t factor_bytes(size_t nelems) {
    return row.narrow ? nelems : 2 * nelems;
}

/* c (M x N) = x (M x K) times b; in cuBLASLt's order of columns, c' = b' x'. */
static void describe(void) {
    cublasOperation_t transposed = row.row_major ? CUBLAS_OP_N : CUBLAS_OP_T;
    cudaDataType factor = row.narrow ? CUDA_R_8F_E4M3 : CUDA_R_16BF;
    size_t b_rows = row.row_major ? row.n : row.k, b_cols = row.row_major ? row.k : row.n;
    cublasLtMatmulPreference_t preference;
    size_t room = WORKSPACE;
    LT(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    LT(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                      sizeof transposed));
    LT(cublasLtMatrixLayoutCreate(&layouts[0], factor, b_rows, b_cols, (int64_t)b_rows));
    LT(cublasLtMatrixLayoutCreate(&layouts[1], factor, row.k, row.m, (int64_t)row.k));
    LT(cublasLtMatrixLayoutCreate(&layouts[2], CUDA_R_16BF, row.n, row.m, (int64_t)row.n));
    LT(cublasLtMatmulPreferenceCreate(&preference));
    LT(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                            &room, sizeof room));
    LT(cublasLtMatmulAlgoGetHeuristic(lt, desc, layouts[0], layouts[1], layouts[2], layouts[2],
                                      preference, ALGORITHMS, algorithms, &nalgorithms));
    cublasLtMatmulPreferenceDestroy(preference);
    /* All PEs time the same number. */
    shmem_int_min_reduce(SHMEM_TEAM_WORLD, &nalgorithms, &nalgorithms, 1);
}

static void multiply(const void *x, void *to) {
    static const float one = 1, zero = 0;
    LT(cublasLtMatmul(lt, desc, &one, b, layouts[0], x, layouts[1], &zero, to, layouts[2], to,
                      layouts[2], &algorithms[chosen].algo, workspace, WORKSPACE, stream));
}

/* --- The ways --------------------------------------------------------------------------------- */

static weft_dtype factor_type(void) {
    return row.narrow ? WEFT_F8E4M3 : WEFT_BF16;
}

static weft_matrix matrix(void *data, size_t rows, size_t cols) {
    return (weft_matrix){data, rows, cols, cols, WEFT_BF16, false};
}

static weft_matrix factor_a(size_t rows) {
    return (weft_matrix){a, rows, row.k, row.k, factor_type(), false};
}

static weft_matrix factor_b(void) {
    return (weft_matrix){
        b, row.k, row.n, row.row_major ? row.n : row.k, factor_type(), !row.row_major};
}

static weft_matrix one(void) {
    return (weft_matrix){scale, 1, 1, 1, WEFT_F32, false};
}

static void alone(int i) {
    (void)i;
    multiply(row.gathers ? whole : a, out);
}

static void fused_gather(weft_stream on) {
    weft_matrix shard = factor_a(row.m / (size_t)npes), right = factor_b(), scales = one();
    weft_matrix result = matrix(c, row.m, row.n);
    if (row.narrow)
        require(weft_all_gather_scaled_matmul(SHMEM_TEAM_WORLD, &shard, &scales, &right, &scales, 1,
                                              NULL, &result, NULL, on),
                "weft_all_gather_scaled_matmul");
    else
        require(weft_all_gather_matmul(SHMEM_TEAM_WORLD, &shard, &right, 1, &result, NULL, on),
                "weft_all_gather_matmul");
}

static void fused_scatter(weft_stream on) {
    weft_matrix rows = factor_a(row.m), right = factor_b(), scales = one();
    weft_matrix result = matrix(c, row.m / (size_t)npes, row.n);
    if (row.narrow)
        require(weft_scaled_matmul_reduce_scatter(SHMEM_TEAM_WORLD, &rows, &scales, &right, &scales,
                                                  NULL, WEFT_SUM, &result, on),
                "weft_scaled_matmul_reduce_scatter");
    else
        require(weft_matmul_reduce_scatter(SHMEM_TEAM_WORLD, &rows, &right, WEFT_SUM, &result, on),
                "weft_matmul_reduce_scatter");
}

static void fused_reduce(weft_stream on) {
    weft_matrix rows = factor_a(row.m), right = factor_b(), result = matrix(c, row.m, row.n);
    require(weft_matmul_all_reduce(SHMEM_TEAM_WORLD, &rows, &right, WEFT_SUM, &result, on),
            "weft_matmul_all_reduce");
}

static void fused(int i) {
    (void)i;
    (row.gathers ? fused_gather : row.reduces ? fused_reduce : fused_scatter)((weft_stream)stream);
}

static void apart(int i) {
    weft_stream on = (weft_stream)stream;
    size_t part = row.m / (size_t)npes;
    (void)i;
    if (row.gathers) {
        require(weft_all_gather(SHMEM_TEAM_WORLD, whole, a, part * row.k, factor_type(), on),
                "weft_all_gather");
        multiply(whole, c);
        return;
    }
    multiply(a, out);
    if (row.reduces)
        require(weft_all_reduce(SHMEM_TEAM_WORLD, out, out, row.m * row.n, WEFT_BF16, WEFT_SUM, on),
                "weft_all_reduce");
    else
        require(weft_reduce_scatter(SHMEM_TEAM_WORLD, (char *)out + (size_t)me * part * row.n * 2,
                                    out, part * row.n, WEFT_BF16, WEFT_SUM, on),
                "weft_reduce_scatter");
}

#ifdef HAVE_NCCL
static ncclComm_t comm;

static void nccl_open(void) {
    ncclUniqueId id;
    if (me == 0 && ncclGetUniqueId(&id) != ncclSuccess)
        give_up("ncclGetUniqueId", "failed");
    hand_out("products", &id, sizeof id);
    if (ncclCommInitRank(&comm, npes, id, me) != ncclSuccess)
        give_up("ncclCommInitRank", "failed");
}

static void nccl_apart(int i) {
    size_t part = row.m / (size_t)npes;
    ncclResult_t result;
    (void)i;
    if (row.gathers) {
        result = ncclAllGather(a, whole, factor_bytes(part * row.k), ncclUint8, comm, stream);
        multiply(whole, c);
    } else {
        multiply(a, out);
        result = row.reduces
                     ? ncclAllReduce(out, out, row.m * row.n, ncclBfloat16, ncclSum, comm, stream)
                     : ncclReduceScatter(out, (char *)out + (size_t)me * part * row.n * 2,
                                         part * row.n, ncclBfloat16, ncclSum, comm, stream);
    }
    if (result != ncclSuccess)
        give_up("NCCL", ncclGetErrorString(result));
}
#endif

/* --- Timing ----------------------------------------------------------------------------------- */

static void meet(void) {
    CUDA(cudaStreamSynchronize(stream));
    shmem_barrier_all();
}

static cudaGraphExec_t capture(enqueue *body) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    body(0);
    meet();
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    for (int i = 0; i < CALLS; i++)
        body(i);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return exec;
}

static int heats; /* graphs of the product alone before a timed graph */

/* Returns the microseconds of a call in the graph, after graphs of `before` and a meeting; of an
 * eager call of `fused` if there is no graph. */
static double hot_us(cudaGraphExec_t before, cudaGraphExec_t timed) {
    static cudaEvent_t first, last;
    if (!first) {
        CUDA(cudaEventCreate(&first));
        CUDA(cudaEventCreate(&last));
    }
    meet();
    for (int i = 0; i < heats; i++)
        CUDA(cudaGraphLaunch(before, stream));
    require(shmemx_barrier_all_on_stream((shmemx_stream_t)stream), "shmemx_barrier_all_on_stream");
    CUDA(cudaEventRecord(first, stream));
    if (timed)
        CUDA(cudaGraphLaunch(timed, stream));
    for (int i = 0; i < CALLS && !timed; i++)
        fused(i);
    CUDA(cudaEventRecord(last, stream));
    return elapsed_us(first, last) / CALLS;
}

/* Sets `heats`, the same on all PEs, so that they take HEAT_US. */
static void set_heats(cudaGraphExec_t before) {
    heats = 1;
    heats = 1 + (int)(HEAT_US / (hot_us(before, before) * CALLS));
    shmem_int_max_reduce(SHMEM_TEAM_WORLD, &heats, &heats, 1);
}

/* Chooses the algorithm that is fastest on all GPUs at once, each for itself. */
static void choose_algorithm(void) {
    double best = INFINITY;
    int fastest = 0;
    chosen = 0;
    cudaGraphExec_t before = capture(alone);
    set_heats(before);
    for (chosen = 0; chosen < nalgorithms; chosen++) {
        double samples[3];
        cudaGraphExec_t graph = capture(alone);
        for (int i = 0; i < 3; i++)
            samples[i] = hot_us(before, graph);
        double us = median(samples, 3);
        if (us < best)
            best = us, fastest = chosen;
        CUDA(cudaGraphExecDestroy(graph));
    }
    CUDA(cudaGraphExecDestroy(before));
    chosen = fastest;
}

static float bf16_at(const uint16_t *data, size_t i) {
    uint32_t bits = (uint32_t)data[i] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Compares the fused result with that of the ways apart, relative to the size of both. */
static bool agrees(void) {
    size_t part = row.m / (size_t)npes, rows = row.gathers || row.reduces ? row.m : part;
    size_t nelems = rows * row.n, own = row.gathers || row.reduces ? 0 : (size_t)me * part * row.n;
    uint16_t *ours = (uint16_t *)malloc(nelems * 2), *theirs = (uint16_t *)malloc(nelems * 2);
    double difference = 0, size = 0;
    CUDA(cudaMemsetAsync(c, 0xee, nelems * 2, stream));
    fused(0);
    meet();
    CUDA(cudaMemcpy(ours, c, nelems * 2, cudaMemcpyDeviceToHost));
    apart(0);
    meet();
    CUDA(cudaMemcpy(theirs, row.gathers ? c : (char *)out + own * 2, nelems * 2,
                    cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < nelems; i++) {
        double x = (double)bf16_at(ours, i), y = (double)bf16_at(theirs, i);
        difference += (x - y) * (x - y);
        size += y * y;
    }
    free(ours);
    free(theirs);
    return difference <= 1e-4 * size;
}

static void measure(const char *text) {
    enqueue *bodies[WAYS] = {alone, fused, NULL, apart};
    cudaGraphExec_t graphs[WAYS] = {NULL};
    static double us[WAYS]; /* of the slowest GPU, which the others wait for */
    static int right;
    double samples[WAYS][ROUNDS];
    char line[256];
    int ways = NCCL_APART;
#ifdef HAVE_NCCL
    bodies[ways++] = nccl_apart;
#endif
    choose_algorithm();
    right = agrees();
    shmem_int_min_reduce(SHMEM_TEAM_WORLD, &right, &right, 1);
    for (int way = 0; way < ways; way++)
        if (bodies[way])
            graphs[way] = capture(bodies[way]);
    for (int i = -1; i < ROUNDS; i++)
        for (int j = 0; j < ways; j++) {
            int way = (i + 1 + j) % ways;
            double sample = hot_us(graphs[ALONE], graphs[way]);
            if (i >= 0)
                samples[way][i] = sample;
        }
    for (int way = 0; way < ways; way++)
        us[way] = median(samples[way], ROUNDS);
    shmem_double_max_reduce(SHMEM_TEAM_WORLD, us, us, (size_t)ways);
    for (int way = 0; way < ways; way++) {
        bool wrong = (way == FUSED || way == EAGER) && !right;
        us[way] = wrong ? NAN : us[way];
        report(text, us[way], "us", names[way]);
        if (graphs[way])
            CUDA(cudaGraphExecDestroy(graphs[way]));
    }
    snprintf(line, sizeof line, "%s, to the product alone", text);
    for (int way = FUSED; way < ways; way++)
        report(line, us[way] / us[ALONE], "", names[way]);
}

/* --- Rows ------------------------------------------------------------------------------------- */

/* Random factors with exponents that keep sums small. */
static void fill_factor(void *device, size_t nelems, uint64_t seed) {
    uint8_t *image = (uint8_t *)malloc(factor_bytes(nelems));
    for (size_t i = 0; i < nelems; i++) {
        uint64_t drawn = word_at(seed, i);
        uint16_t bf16 = (uint16_t)((drawn & 0x80ff) | 0x3d00);
        if (row.narrow)
            image[i] = (uint8_t)((drawn & 0x8f) | 0x20);
        else
            memcpy(image + 2 * i, &bf16, sizeof bf16);
    }
    CUDA(cudaMemcpy(device, image, factor_bytes(nelems), cudaMemcpyHostToDevice));
    free(image);
}

static void *symmetric(size_t bytes) {
    void *p = shmemx_malloc(SHMEMX_SPACE_DEVICE, bytes);
    if (!p)
        give_up("shmemx_malloc", weft_last_error());
    return p;
}

static void row_run(const char *text) {
    describe();
    CUDA(cudaMalloc(&a, factor_bytes(row.m * row.k)));
    CUDA(cudaMalloc(&b, factor_bytes(row.k * row.n)));
    CUDA(cudaMalloc(&c, row.m * row.n * 2));
    whole = symmetric(factor_bytes(row.m * row.k));
    out = symmetric(row.m * row.n * 2);
    fill_factor(a, row.m * row.k, 1 + (uint64_t)me);
    fill_factor(whole, row.m * row.k, 3);
    fill_factor(b, row.k * row.n, 5 + (uint64_t)me);
    measure(text);
    shmem_free(whole);
    shmem_free(out);
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaFree(c));
    for (int i = 0; i < 3; i++)
        cublasLtMatrixLayoutDestroy(layouts[i]);
    cublasLtMatmulDescDestroy(desc);
}

/* Returns whether a line of the file is a row; `row` is then this PE's part of it. */
static bool row_read(const char *line, char *text, size_t bytes) {
    size_t m, n, k;
    char model[32], layer[32];
    if (sscanf(line, "%15s %zu %zu %zu %31s %31s", row.operation, &m, &n, &k, model, layer) != 6 ||
        row.operation[0] == '#')
        return false;
    char *each = strchr(row.operation, '=');
    size_t parts = each ? 1 : (size_t)npes;
    if (each)
        *each = '\0';
    row.gathers = strncmp(row.operation, "gather", 6) == 0;
    row.reduces = strncmp(row.operation, "reduce", 6) == 0;
    row.narrow = strstr(row.operation, "8") != NULL;
    row.row_major = strstr(row.operation, "'") != NULL;
    row.m = m;
    row.n = row.gathers ? n / parts : n;
    row.k = row.gathers ? k : k / parts;
    snprintf(text, bytes, "%s %zu x %zu x %zu (%s %s)", row.operation, m, row.n, row.k, model,
             layer);
    return is_asked(text);
}

int main(int argc, char **argv) {
    FILE *file = fopen(argc > 1 ? argv[1] : "bench/gpu/products.txt", "r");
    int skip = argc > 2 ? atoi(argv[2]) : 1, number = 0;
    char line[256], text[160];
    begin();
    if (!file || skip < 1)
        give_up("products", "usage: products FILE [SKIP]");
    shmem_init();
    LT(cublasLtCreate(&lt));
    CUDA(cudaMalloc(&workspace, WORKSPACE));
    static const float one_scale = 1;
    CUDA(cudaMalloc((void **)&scale, 256));
    CUDA(cudaMemcpy(scale, &one_scale, sizeof one_scale, cudaMemcpyHostToDevice));
#ifdef HAVE_NCCL
    nccl_open();
#endif
    while (fgets(line, sizeof line, file))
        if (row_read(line, text, sizeof text) && number++ % skip == 0)
            row_run(text);
    fclose(file);
    shmem_finalize();
    return 0;
}
