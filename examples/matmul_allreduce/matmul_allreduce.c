/* SPDX-License-Identifier: BSD-3-Clause */
/* C = the sum over all PEs of A x B, on every PE, as a layer of a tensor-parallel model needs it:
 * each PE has K of the columns of a wide A, and the rows of B that belong to them. The sum is made
 * by one call that hides its communication, and for comparison by a product and an all-reduce one
 * after the other. Elements drawn at random are compared with a sum in double.
 *
 *   examples/matmul_allreduce/run.sh -ranks 2 -M 1024 -K 2048 -N 8192 [-type f32] [-device cpu]
 *
 * With -device auto, matrices are in GPU memory if there is a GPU. */
#include <math.h>
#include "../transfer.h"

enum { TIMES = 5, SAMPLES = 2000 };

static size_t rows = 1024, cols = 8192, depth = 2048; /* M, N, and K of each PE */
static weft_dtype dtype = WEFT_BF16;
static const char *device = "auto";

static weft_matrix a, b, c, product;
static shmem_team_t alone; /* this PE's own team */

/* --- Data that every PE can compute for all PEs ----------------------------------------------- */

/* Returns a number between -1 and 1 that bf16 represents exactly. */
static float value_of(int pe, int matrix, size_t row, size_t col) {
    uint64_t x = ((uint64_t)pe * 2 + (uint64_t)matrix) << 56 ^ (uint64_t)row << 28 ^ (uint64_t)col;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (float)((int)(x >> 40 & 255) - 128) / 128;
}

static size_t element_bytes(void) {
    return weft_dtype_bytes(dtype);
}

/* The upper half of a float is a bf16. */
static void set(void *data, size_t i, float value) {
    if (dtype == WEFT_F32)
        memcpy((float *)data + i, &value, sizeof value);
    else
        memcpy((uint16_t *)data + i, (char *)&value + 2, sizeof(uint16_t));
}

static float get(const void *data, size_t i) {
    float value = 0;
    if (dtype == WEFT_F32)
        memcpy(&value, (const float *)data + i, sizeof value);
    else
        memcpy((char *)&value + 2, (const uint16_t *)data + i, sizeof(uint16_t));
    return value;
}

/* --- Matrices --------------------------------------------------------------------------------- */

static weft_matrix matrix_new(size_t matrix_rows, size_t matrix_cols) {
    size_t bytes = matrix_rows * matrix_cols * element_bytes();
    return (weft_matrix){symmetric(bytes), matrix_rows, matrix_cols, matrix_cols, dtype, false};
}

/* Puts to this PE itself also write to GPU memory. */
static void fill(const weft_matrix *m, int matrix) {
    size_t bytes = m->rows * m->cols * element_bytes();
    void *image = malloc(bytes);
    if (!image)
        give_up("no memory");
    for (size_t row = 0; row < m->rows; row++)
        for (size_t col = 0; col < m->cols; col++)
            set(image, row * m->cols + col, value_of(me, matrix, row, col));
    shmem_putmem(m->data, image, bytes, me);
    free(image);
}

/* --- The two ways ----------------------------------------------------------------------------- */

static void fused(void) {
    require(weft_matmul_all_reduce(SHMEM_TEAM_WORLD, &a, &b, WEFT_SUM, &c, stream));
}

/* On a team of one PE the sum is the product. */
static void one_after_the_other(void) {
    require(weft_matmul_all_reduce(alone, &a, &b, WEFT_SUM, &product, stream));
    require(weft_all_reduce(SHMEM_TEAM_WORLD, product.data, product.data, rows * cols, dtype,
                            WEFT_SUM, stream));
}

/* Returns the median of some rounds in ms; the first call is not counted. */
static double time_of(void (*way)(void)) {
    double times[TIMES];
    for (int i = -1; i < TIMES; i++) {
        shmem_barrier_all();
        double begin = now_us();
        way();
        finish();
        if (i >= 0)
            times[i] = 1e-3 * (now_us() - begin);
    }
    return median(times, TIMES);
}

/* --- The check -------------------------------------------------------------------------------- */

/* Adds up an element's products in double. Returns the bound of the error: each PE's sum is made in
 * float and, like the sum of all, rounded once. */
static double element_of(size_t row, size_t col, double *sum) {
    double size = 0, rounded = 0;
    *sum = 0;
    for (int pe = 0; pe < npes; pe++) {
        double part = 0;
        for (size_t k = 0; k < depth; k++) {
            double term = (double)value_of(pe, 0, row, k) * (double)value_of(pe, 1, k, col);
            part += term;
            size += fabs(term);
        }
        *sum += part;
        rounded += fabs(part);
    }
    double rounding = dtype == WEFT_F32 ? 0x1p-24 : 0x1p-8;
    return size * (double)depth * 0x1p-24 + rounding * (rounded + fabs(*sum));
}

/* Returns how many of the samples are wrong. */
static int check(const weft_matrix *m) {
    size_t bytes = rows * cols * element_bytes();
    char *image = malloc(bytes);
    int wrong = 0;
    if (!image)
        give_up("no memory");
    shmem_getmem(image, m->data, bytes, me);
    srand(1 + (unsigned)me);
    for (int i = 0; i < SAMPLES; i++) {
        size_t row = (size_t)rand() % rows, col = (size_t)rand() % cols;
        double sum, bound = element_of(row, col, &sum);
        wrong += !(fabs((double)get(image, row * cols + col) - sum) <= bound);
    }
    free(image);
    return wrong;
}

/* --- Options ---------------------------------------------------------------------------------- */

static bool take_option(const char *name, const char *value) {
    size_t *sizes[] = {&rows, &cols, &depth};
    for (size_t i = 0; i < 3; i++)
        if (name[0] == '-' && name[1] == "MNK"[i] && name[2] == '\0')
            return (*sizes[i] = strtoull(value, NULL, 10)) > 0;
    if (strcmp(name, "-type") == 0) {
        dtype = strcmp(value, "f32") == 0 ? WEFT_F32 : WEFT_BF16;
        return dtype == WEFT_F32 || strcmp(value, "bf16") == 0;
    }
    device = value;
    return strcmp(name, "-device") == 0 &&
           (strcmp(value, "auto") == 0 || strcmp(value, "cpu") == 0 || strcmp(value, "gpu") == 0);
}

static void read_options(int argc, char **argv) {
    for (int i = 1; i < argc; i += 2)
        if (i + 1 == argc || !take_option(argv[i], argv[i + 1])) {
            if (me == 0)
                fprintf(stderr,
                        "matmul_allreduce: %s: options are -M, -N and -K with a number, "
                        "-type f32 or bf16, -device auto, cpu or gpu\n",
                        argv[i]);
            shmem_global_exit(2);
        }
}

/* GPUs are used if all PEs have one. */
static void choose_device(void) {
    void *trial = strcmp(device, "cpu") == 0 ? NULL : shmemx_malloc(SHMEMX_SPACE_DEVICE, 1);
    if (!trial && strcmp(device, "gpu") == 0)
        give_up("%s", weft_last_error());
    if (trial)
        use_gpu();
    shmem_free(trial);
}

static void open_team(void) {
    for (int pe = 0; pe < npes; pe++) {
        shmem_team_t team;
        shmem_team_split_strided(SHMEM_TEAM_WORLD, pe, 1, 1, NULL, 0, &team);
        alone = pe == me ? team : alone;
    }
}

int main(int argc, char **argv) {
    static int wrong;
    job_begin("matmul_allreduce");
    read_options(argc, argv);
    choose_device();
    open_team();
    a = matrix_new(rows, depth), b = matrix_new(depth, cols);
    c = matrix_new(rows, cols), product = matrix_new(rows, cols);
    fill(&a, 0);
    fill(&b, 1);
    double ms = time_of(fused), apart_ms = time_of(one_after_the_other);
    wrong = check(&c) + check(&product);
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &wrong, &wrong, 1);
    if (me == 0)
        printf("%d PEs on %ss, M=%zu N=%zu K=%zu: %s; fused %.3f ms, product then all-reduce %.3f "
               "ms\n",
               npes, on_gpu ? "GPU" : "CPU", rows, cols, depth, wrong == 0 ? "right" : "WRONG", ms,
               apart_ms);
    shmem_finalize();
    return wrong != 0;
}
