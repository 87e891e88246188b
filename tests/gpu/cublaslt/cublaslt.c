/* SPDX-License-Identifier: BSD-3-Clause */
/* A libcublasLt.so.13 for the pretended driver: the calls that Weft uses, with the checks of the
 * real library, and one kernel that multiplies (tests/gpu/driver/product.cu). */
#include "fused/cublaslt.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include "tests/gpu/driver/product.h"

enum { INVALID_VALUE = 7, EXECUTION_FAILED = 13, ROOM_BYTES = 1 << 20, SCALE_ALIGNMENT = 16 };
enum { ALL_SCHEMES = 7, OUTPUT_TYPE = 4 };

struct weft_lt_opaque {
    int type, scale;         /* of a product: the types of computation and of scales */
    int transposed[2];       /* of a product */
    const float *scales[2];  /* of a product */
    uint64_t rows, cols, ld; /* of a matrix */
    uint64_t room_bytes;     /* of a preference */
    uint32_t alignments[4];  /* of a preference */
    uint32_t schemes;        /* of a preference */
};

static struct weft_cuda cuda;
static weft_cu_function kernel;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Tests have one GPU a process, so one context. */
static void find_kernel(void) {
    static const char image[] = "";
    weft_cu_module module;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
#define FIND(name, exported, arguments) *(void **)&cuda.name = dlsym(driver, exported);
    WEFT_CUDA_CALLS(FIND)
#undef FIND
    if (cuda.cuModuleLoadData(&module, image) ||
        cuda.cuModuleGetFunction(&kernel, module, "pretended_product"))
        abort();
}

const char *cublasLtGetStatusString(int status) {
    return status == INVALID_VALUE           ? "CUBLAS_STATUS_INVALID_VALUE"
           : status == WEFT_LT_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                             : "CUBLAS_STATUS_EXECUTION_FAILED";
}

int cublasLtCreate(weft_lt_handle *handle) {
    pthread_once(&once, find_kernel);
    *handle = (weft_lt_handle)&once;
    return 0;
}

/* --- Descriptions ----------------------------------------------------------------------------- */

static int make(struct weft_lt_opaque **made, struct weft_lt_opaque content) {
    *made = malloc(sizeof **made);
    if (!*made)
        return WEFT_LT_ALLOC_FAILED;
    **made = content;
    return 0;
}

static int destroy(struct weft_lt_opaque *made) {
    free(made);
    return 0;
}

int cublasLtMatmulDescCreate(weft_lt_desc *desc, int compute_type, int scale_type) {
    return make(desc, (struct weft_lt_opaque){.type = compute_type, .scale = scale_type});
}

int cublasLtMatmulDescDestroy(weft_lt_desc desc) {
    return destroy(desc);
}

int cublasLtMatmulDescSetAttribute(weft_lt_desc desc, int attribute, const void *value,
                                   size_t bytes) {
    bool is_op = attribute == WEFT_LT_DESC_TRANSA || attribute == WEFT_LT_DESC_TRANSB;
    bool is_scale =
        attribute == WEFT_LT_DESC_A_SCALE_POINTER || attribute == WEFT_LT_DESC_B_SCALE_POINTER;
    if (is_op && bytes == sizeof(int))
        desc->transposed[attribute - WEFT_LT_DESC_TRANSA] = *(const int *)value == WEFT_LT_OP_T;
    else if (is_scale && bytes == sizeof(void *))
        desc->scales[attribute - WEFT_LT_DESC_A_SCALE_POINTER] = *(const float *const *)value;
    else
        return INVALID_VALUE;
    return 0;
}

int cublasLtMatrixLayoutCreate(weft_lt_layout *layout, int type, uint64_t rows, uint64_t cols,
                               int64_t ld) {
    return make(layout, (struct weft_lt_opaque){
                            .type = type, .rows = rows, .cols = cols, .ld = (uint64_t)ld});
}

int cublasLtMatrixLayoutDestroy(weft_lt_layout layout) {
    return destroy(layout);
}

int cublasLtMatmulPreferenceCreate(weft_lt_preference *preference) {
    return make(preference, (struct weft_lt_opaque){.alignments = {256, 256, 256, 256},
                                                    .schemes = ALL_SCHEMES});
}

int cublasLtMatmulPreferenceDestroy(weft_lt_preference preference) {
    return destroy(preference);
}

int cublasLtMatmulPreferenceSetAttribute(weft_lt_preference preference, int attribute,
                                         const void *value, size_t bytes) {
    int matrix = attribute - WEFT_LT_PREF_ALIGNMENT_A;
    if (attribute == WEFT_LT_PREF_WORKSPACE_BYTES && bytes == sizeof(uint64_t))
        preference->room_bytes = *(const uint64_t *)value;
    else if (attribute == WEFT_LT_PREF_REDUCTION_SCHEMES && bytes == sizeof(uint32_t))
        preference->schemes = *(const uint32_t *)value;
    else if (matrix >= 0 && matrix < 4 && bytes == sizeof(uint32_t))
        preference->alignments[matrix] = *(const uint32_t *)value;
    else
        return INVALID_VALUE;
    return 0;
}

/* --- Products --------------------------------------------------------------------------------- */

static uint64_t op_rows(const struct weft_lt_opaque *m, bool transposed) {
    return transposed ? m->cols : m->rows;
}

static bool is_narrow(int type) {
    return type == WEFT_LT_R_8F_E4M3 || type == WEFT_LT_R_8F_E5M2;
}

static bool types_fit(const struct weft_lt_opaque *desc, int a, int b, int d) {
    bool wide = d == WEFT_LT_R_64F, narrow = is_narrow(a) && is_narrow(b);
    bool alike = a == b && (a == d || (a == WEFT_LT_R_16BF && d == WEFT_LT_R_32F));
    bool result = d == WEFT_LT_R_32F || d == WEFT_LT_R_16BF || d == WEFT_LT_R_16F;
    bool computes = desc->type == (wide ? WEFT_LT_COMPUTE_64F : WEFT_LT_COMPUTE_32F) ||
                    (desc->type == WEFT_LT_COMPUTE_32F_FAST_TF32 && a == WEFT_LT_R_32F);
    return computes && (narrow ? result : alike);
}

/* Checks what the library requires of 8-bit factors beyond their types. */
static bool narrow_suits(const struct weft_lt_opaque *desc, const struct weft_lt_opaque *a,
                         const struct weft_lt_opaque *b, const struct weft_lt_opaque *d,
                         const uint32_t *alignments) {
    uint64_t element = d->type == WEFT_LT_R_32F ? 4 : 2;
    bool aligned = alignments[0] >= 16 && alignments[1] >= 16 && alignments[3] >= 16;
    bool whole = (a->rows | a->ld | b->ld | d->rows * element | d->ld * element) % 16 == 0;
    bool both = a->type == WEFT_LT_R_8F_E5M2 && b->type == WEFT_LT_R_8F_E5M2;
    return desc->transposed[0] && !desc->transposed[1] && aligned && whole && !both;
}

static bool shapes_fit(const struct weft_lt_opaque *desc, const struct weft_lt_opaque *a,
                       const struct weft_lt_opaque *b, const struct weft_lt_opaque *d) {
    bool ta = desc->transposed[0], tb = desc->transposed[1];
    bool leading = a->ld >= a->rows && b->ld >= b->rows && d->ld >= d->rows;
    return leading && types_fit(desc, a->type, b->type, d->type) && op_rows(a, ta) == d->rows &&
           op_rows(a, !ta) == op_rows(b, tb) && op_rows(b, !tb) == d->cols && d->rows > 0 &&
           d->cols > 0 && op_rows(b, tb) > 0;
}

/* An algorithm is the alignments that it relies on, its number, how often it multiplies, and
 * whether it rounds parts of sums to the type of the result, as it may unless a preference forbids
 * that. Of WEFT_FAKE_ALGORITHMS the last one is the fastest, and multiplies WEFT_FAKE_TIMES.
 * WEFT_FAKE_UNCAPTURED is the number of one that fails in a capture. */
enum { NUMBER = 4, TIMES = 5, ROUNDS = 6, ALGORITHMS_MAX = 16, TIMES_MAX = 100000 };

int cublasLtMatmulAlgoGetHeuristic(weft_lt_handle handle, weft_lt_desc desc, weft_lt_layout a,
                                   weft_lt_layout b, weft_lt_layout c, weft_lt_layout d,
                                   weft_lt_preference preference, int wanted,
                                   struct weft_lt_heuristic *found, int *count) {
    *count = 0;
    if (handle != (weft_lt_handle)&once || c != d || wanted < 1 || !shapes_fit(desc, a, b, d))
        return INVALID_VALUE;
    if (preference->room_bytes < ROOM_BYTES ||
        (is_narrow(a->type) && !narrow_suits(desc, a, b, d, preference->alignments)))
        return WEFT_LT_NOT_SUPPORTED;
    const char *algorithms = getenv("WEFT_FAKE_ALGORITHMS");
    int most = algorithms ? atoi(algorithms) : 1;
    const char *times = getenv("WEFT_FAKE_TIMES");
    uint64_t least = times ? strtoull(times, NULL, 10) : 1;
    *count = wanted < most ? wanted : most;
    for (int a = 0; a < *count; a++) {
        found[a] = (struct weft_lt_heuristic){.workspace_bytes = ROOM_BYTES};
        for (int i = 0; i < 4; i++)
            found[a].algorithm[i] = preference->alignments[i];
        found[a].algorithm[NUMBER] = (uint64_t)a;
        found[a].algorithm[ROUNDS] = (preference->schemes & OUTPUT_TYPE) != 0;
        found[a].algorithm[TIMES] = a == *count - 1 ? least : 4 * least;
    }
    return 0;
}

/* An algorithm of another library, or none at all, is refused. */
int cublasLtMatmulAlgoCheck(weft_lt_handle handle, weft_lt_desc desc, weft_lt_layout a,
                            weft_lt_layout b, weft_lt_layout c, weft_lt_layout d,
                            const uint64_t *algorithm, struct weft_lt_heuristic *found) {
    *found = (struct weft_lt_heuristic){.workspace_bytes = ROOM_BYTES};
    bool fits = handle == (weft_lt_handle)&once && c == d && shapes_fit(desc, a, b, d) &&
                algorithm[NUMBER] < ALGORITHMS_MAX && algorithm[TIMES] >= 1 &&
                algorithm[TIMES] <= TIMES_MAX;
    return fits ? 0 : WEFT_LT_NOT_SUPPORTED;
}

size_t cublasLtGetVersion(void) {
    return 130100;
}

static bool aligned(const void *p, uint64_t alignment) {
    return (uintptr_t)p % alignment == 0;
}

static bool fails_in_capture(uint64_t number, weft_cu_stream stream) {
    const char *uncaptured = getenv("WEFT_FAKE_UNCAPTURED");
    int captured = 0;
    return uncaptured && strtoull(uncaptured, NULL, 10) == number &&
           (cuda.cuStreamIsCapturing(stream, &captured) || captured);
}

int cublasLtMatmul(weft_lt_handle handle, weft_lt_desc desc, const void *alpha, const void *a,
                   weft_lt_layout a_layout, const void *b, weft_lt_layout b_layout,
                   const void *beta, const void *c, weft_lt_layout c_layout, void *d,
                   weft_lt_layout d_layout, const uint64_t *algorithm, void *workspace,
                   size_t workspace_bytes, weft_cu_stream stream) {
    static uint64_t token;
    bool wide = d_layout->type == WEFT_LT_R_64F;
    bool plain = wide ? *(const double *)alpha == 1 && *(const double *)beta == 0
                      : *(const float *)alpha == 1 && *(const float *)beta == 0;
    if (handle != (weft_lt_handle)&once || !plain || c != d || c_layout != d_layout ||
        desc->scale != (wide ? WEFT_LT_R_64F : WEFT_LT_R_32F) ||
        !shapes_fit(desc, a_layout, b_layout, d_layout) || workspace_bytes < ROOM_BYTES ||
        !aligned(workspace, 256) || !aligned(a, algorithm[0]) || !aligned(b, algorithm[1]) ||
        !aligned(d, algorithm[3]))
        return INVALID_VALUE;
    if (!aligned(desc->scales[0], SCALE_ALIGNMENT) || !aligned(desc->scales[1], SCALE_ALIGNMENT))
        return WEFT_LT_NOT_SUPPORTED;
    struct product p = {.m = d_layout->rows,
                        .n = d_layout->cols,
                        .k = op_rows(b_layout, desc->transposed[1]),
                        .lda = a_layout->ld,
                        .ldb = b_layout->ld,
                        .ldd = d_layout->ld,
                        .type_a = a_layout->type,
                        .type_b = b_layout->type,
                        .type_d = d_layout->type,
                        .scale_a = desc->scales[0],
                        .scale_b = desc->scales[1],
                        .transposed_a = desc->transposed[0],
                        .transposed_b = desc->transposed[1],
                        .narrow = desc->type == WEFT_LT_COMPUTE_32F_FAST_TF32,
                        .rounds = algorithm[ROUNDS] != 0,
                        .token = __atomic_add_fetch(&token, 1, __ATOMIC_RELAXED)};
    if (fails_in_capture(algorithm[NUMBER], stream))
        return EXECUTION_FAILED;
    void *arguments[] = {&a, &b, &d, &workspace, &p};
    for (uint64_t times = algorithm[TIMES]; times > 0; times--)
        if (cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL))
            return EXECUTION_FAILED;
    return 0;
}
