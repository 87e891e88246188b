/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain matrix products of oneDNN, versions 2 and 3, and f32 products with a factor packed before.
 *
 * Uses two exported functions that have C types only and are the same in both versions: dnnl_sgemm
 * (oneapi/dnnl/dnnl.h) and dnnl_gemm_bf16bf16f32 (exported, declared in oneDNN's
 * src/common/gemm.cpp). They need no engine, no descriptors and no primitive cache, and are faster:
 * 226 GFLOP/s, and 202-208 with the matmul primitive (bf16, 2048 x 4096 x 1024, one Zen 4 core). */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include "ops/matmul.h"
#include "ops/matmul_exit.h"

typedef int64_t dnnl_dim;                          /* dnnl_dim_t */
enum { DNNL_SUCCESS = 0, DNNL_OUT_OF_MEMORY = 1 }; /* of dnnl_status_t */

static int (*dnnl_sgemm)(char transa, char transb, dnnl_dim m, dnnl_dim n, dnnl_dim k, float alpha,
                         const float *a, dnnl_dim lda, const float *b, dnnl_dim ldb, float beta,
                         float *c, dnnl_dim ldc);
static int (*dnnl_bf16gemm)(char transa, char transb, dnnl_dim m, dnnl_dim n, dnnl_dim k,
                            float alpha, const uint16_t *a, dnnl_dim lda, const uint16_t *b,
                            dnnl_dim ldb, float beta, float *c, dnnl_dim ldc);

/* Products with a packed factor (DNNL_API in oneDNN's src/cpu/gemm/gemm_pack.hpp). These are C++
 * functions, so the names contain the types of the arguments: a version with other types lacks the
 * names. They are the same from 2.6 to 3.13. */
#define NAMESPACE "_ZN4dnnl4impl3cpu"
static int (*sgemm_pack_get_size)(const char *identifier, const char *transa, const char *transb,
                                  const dnnl_dim *m, const dnnl_dim *n, const dnnl_dim *k,
                                  const dnnl_dim *lda, const dnnl_dim *ldb, size_t *bytes,
                                  bool *worth);
static int (*sgemm_pack)(const char *identifier, const char *transa, const char *transb,
                         const dnnl_dim *m, const dnnl_dim *n, const dnnl_dim *k,
                         const dnnl_dim *lda, const dnnl_dim *ldb, const float *source,
                         float *packed);
static int (*sgemm_compute)(const char *transa, const char *transb, const dnnl_dim *m,
                            const dnnl_dim *n, const dnnl_dim *k, const float *a,
                            const dnnl_dim *lda, const float *b, const dnnl_dim *ldb,
                            const float *beta, float *c, const dnnl_dim *ldc);

/* A function of the OpenMP runtime that oneDNN is linked with; it changes the calling thread only.
 */
static void (*omp_set_num_threads)(int);
static int (*omp_get_max_threads)(void);

/* Returns an argument of a library's function. */
static char trans(bool transposed) {
    return transposed ? 'T' : 'N';
}

/* Limits the calling thread to `threads`. Returns the old limit for threads_restore; 0 if nothing
 * has to be restored. */
static int threads_limit(int threads) {
    if (!omp_set_num_threads || !omp_get_max_threads)
        return 0;
    int before = omp_get_max_threads();
    if (before == threads)
        return 0;
    omp_set_num_threads(threads);
    return before;
}

static void threads_restore(int before) {
    if (before > 0)
        omp_set_num_threads(before);
}

static int errno_of(int status) {
    if (status == DNNL_SUCCESS)
        return 0;
    return status == DNNL_OUT_OF_MEMORY ? -ENOMEM : -ENOTSUP;
}

static int multiply_f32(struct weft_matmul_sizes s, int threads, const float *a, const float *b,
                        float *c) {
    int before = threads_limit(threads);
    int status =
        dnnl_sgemm(trans(s.a_transposed), trans(s.b_transposed), (dnnl_dim)s.m, (dnnl_dim)s.n,
                   (dnnl_dim)s.k, 1, a, (dnnl_dim)s.lda, b, (dnnl_dim)s.ldb, 0, c, (dnnl_dim)s.ldc);
    threads_restore(before);
    return errno_of(status);
}

static int multiply_bf16(struct weft_matmul_sizes s, int threads, const uint16_t *a,
                         const uint16_t *b, float *c) {
    int before = threads_limit(threads);
    int status = dnnl_bf16gemm(trans(s.a_transposed), trans(s.b_transposed), (dnnl_dim)s.m,
                               (dnnl_dim)s.n, (dnnl_dim)s.k, 1, a, (dnnl_dim)s.lda, b,
                               (dnnl_dim)s.ldb, 0, c, (dnnl_dim)s.ldc);
    threads_restore(before);
    return errno_of(status);
}

/* Sizes for the packing functions, which are column-major: the first factor is b, transposed. */
struct by_columns {
    dnnl_dim m, n, k, lda, ldb, ldc;
    char transa, transb;
};

static struct by_columns by_columns(struct weft_matmul_sizes s) {
    return (struct by_columns){(dnnl_dim)s.n,         (dnnl_dim)s.m,        (dnnl_dim)s.k,
                               (dnnl_dim)s.ldb,       (dnnl_dim)s.lda,      (dnnl_dim)s.ldc,
                               trans(s.b_transposed), trans(s.a_transposed)};
}

static size_t packed_f32_bytes(struct weft_matmul_sizes sizes, int threads) {
    struct by_columns s = by_columns(sizes);
    size_t bytes = 0;
    bool worth = false;
    int before = threads_limit(threads);
    int status = sgemm_pack_get_size("A", &s.transa, &s.transb, &s.m, &s.n, &s.k, &s.lda, &s.ldb,
                                     &bytes, &worth);
    threads_restore(before);
    return status == DNNL_SUCCESS && worth ? bytes : 0;
}

static int pack_f32(struct weft_matmul_sizes sizes, int threads, const float *b, float *packed) {
    struct by_columns s = by_columns(sizes);
    int before = threads_limit(threads);
    int status = sgemm_pack("A", &s.transa, &s.transb, &s.m, &s.n, &s.k, &s.lda, &s.ldb, b, packed);
    threads_restore(before);
    return errno_of(status);
}

static int multiply_packed_f32(struct weft_matmul_sizes sizes, int threads, const float *a,
                               const float *packed, float *c) {
    struct by_columns s = by_columns(sizes);
    const float beta = 0;
    int before = threads_limit(threads);
    int status = sgemm_compute("P", &s.transb, &s.m, &s.n, &s.k, packed, &s.lda, a, &s.ldb, &beta,
                               c, &s.ldc);
    threads_restore(before);
    return errno_of(status);
}

/* Returns whether oneDNN multiplies bf16, found by a product of one element. It refuses on
 * processors without AVX-512, and if ONEDNN_MAX_CPU_ISA forbids AVX-512. In these cases its f32
 * kernels differ, too: the kernels for AVX2 take six rows at a time, and the last rows in another
 * order (2.6.3, measured). */
static bool bf16_works(void) {
    const uint16_t one = 0x3f80;
    const struct weft_matmul_sizes unit = {1, 1, 1, 1, 1, 1, false, false};
    float product = 0;
    return dnnl_bf16gemm && multiply_bf16(unit, 1, &one, &one, &product) == 0 && product == 1;
}

static bool find_packing(void *dnnl) {
    *(void **)&sgemm_pack_get_size =
        dlsym(dnnl, NAMESPACE "19sgemm_pack_get_sizeEPKcS3_S3_PKlS5_S5_S5_S5_PmPb");
    *(void **)&sgemm_pack = dlsym(dnnl, NAMESPACE "10sgemm_packEPKcS3_S3_PKlS5_S5_S5_S5_PKfPf");
    *(void **)&sgemm_compute =
        dlsym(dnnl, NAMESPACE "13sgemm_computeEPKcS3_PKlS5_S5_PKfS5_S7_S5_S7_PfS5_");
    return sgemm_pack_get_size && sgemm_pack && sgemm_compute;
}

void weft_matmul_open_onednn(struct weft_matmul_library *library) {
    void *dnnl = dlopen("libdnnl.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!dnnl)
        dnnl = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!dnnl)
        return;
    weft_matmul_outlast(dnnl);
    *(void **)&dnnl_sgemm = dlsym(dnnl, "dnnl_sgemm");
    *(void **)&dnnl_bf16gemm = dlsym(dnnl, "dnnl_gemm_bf16bf16f32");
    *(void **)&omp_set_num_threads = dlsym(dnnl, "omp_set_num_threads");
    *(void **)&omp_get_max_threads = dlsym(dnnl, "omp_get_max_threads");
    if (!library->f32 && dnnl_sgemm)
        library->f32 = multiply_f32;
    if (library->f32 == multiply_f32 && find_packing(dnnl)) {
        library->packed_f32_bytes = packed_f32_bytes;
        library->pack_f32 = pack_f32;
        library->packed_f32 = multiply_packed_f32;
    }
    if (!library->bf16 && bf16_works())
        library->bf16 = multiply_bf16;
    library->parts_are_alike = library->f32 == multiply_f32 && library->bf16 == multiply_bf16;
}
