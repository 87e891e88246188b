/* SPDX-License-Identifier: BSD-3-Clause */
/* A CBLAS, preferably OpenBLAS. The number of threads is a setting of the process, so a lock is
 * held from its change until it is restored. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include "ops/matmul.h"
#include "ops/matmul_exit.h"

enum { CBLAS_ROW_MAJOR = 101, CBLAS_NO_TRANS = 111, CBLAS_TRANS = 112 }; /* of cblas.h */

typedef void sgemm(int layout, int transa, int transb, int m, int n, int k, float alpha,
                   const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void dgemm(int layout, int transa, int transb, int m, int n, int k, double alpha,
                   const double *a, int lda, const double *b, int ldb, double beta, double *c,
                   int ldc);

static sgemm *cblas_sgemm;
static dgemm *cblas_dgemm;
static void (*set_threads)(int);
static int (*get_threads)(void);
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;

/* Limits OpenBLAS to `threads`, and holds the lock until threads_restore. Returns the old limit; 0,
 * without the lock, for another CBLAS. */
static int threads_limit(int threads) {
    if (!set_threads || !get_threads)
        return 0;
    pthread_mutex_lock(&threads_lock);
    int before = get_threads();
    if (before != threads)
        set_threads(threads);
    return before;
}

static void threads_restore(int before, int threads) {
    if (before == 0)
        return;
    if (before != threads)
        set_threads(before);
    pthread_mutex_unlock(&threads_lock);
}

static int trans(bool transposed) {
    return transposed ? CBLAS_TRANS : CBLAS_NO_TRANS;
}

/* Returns whether the sizes fit into the int of the interface. */
static bool fits(struct weft_matmul_sizes s) {
    return (s.m | s.n | s.k | s.lda | s.ldb | s.ldc) <= INT_MAX;
}

static int multiply_f32(struct weft_matmul_sizes s, int threads, const float *a, const float *b,
                        float *c) {
    if (!fits(s))
        return -EOVERFLOW;
    int before = threads_limit(threads);
    cblas_sgemm(CBLAS_ROW_MAJOR, trans(s.a_transposed), trans(s.b_transposed), (int)s.m, (int)s.n,
                (int)s.k, 1, a, (int)s.lda, b, (int)s.ldb, 0, c, (int)s.ldc);
    threads_restore(before, threads);
    return 0;
}

static int multiply_f64(struct weft_matmul_sizes s, int threads, const double *a, const double *b,
                        double *c) {
    if (!fits(s))
        return -EOVERFLOW;
    int before = threads_limit(threads);
    cblas_dgemm(CBLAS_ROW_MAJOR, trans(s.a_transposed), trans(s.b_transposed), (int)s.m, (int)s.n,
                (int)s.k, 1, a, (int)s.lda, b, (int)s.ldb, 0, c, (int)s.ldc);
    threads_restore(before, threads);
    return 0;
}

/* OpenBLAS of 2022 does not know every processor, and uses slow kernels on the others; its kernels
 * for SkylakeX are its fastest for all processors with AVX-512. It reads the environment when it is
 * loaded. */
static void *open_blas(void) {
    bool steer = false;
#if defined(__x86_64__)
    steer = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
            !getenv("OPENBLAS_CORETYPE");
#endif
    if (steer)
        setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
    void *blas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!blas)
        blas = dlopen("libblas.so.3", RTLD_NOW | RTLD_LOCAL);
    if (steer)
        unsetenv("OPENBLAS_CORETYPE");
    return blas;
}

void weft_matmul_open_blas(struct weft_matmul_library *library) {
    void *blas = open_blas();
    if (!blas)
        return;
    weft_matmul_outlast(blas);
    *(void **)&cblas_sgemm = dlsym(blas, "cblas_sgemm");
    *(void **)&cblas_dgemm = dlsym(blas, "cblas_dgemm");
    *(void **)&set_threads = dlsym(blas, "openblas_set_num_threads");
    *(void **)&get_threads = dlsym(blas, "openblas_get_num_threads");
    if (!library->f32 && cblas_sgemm)
        library->f32 = multiply_f32;
    if (!library->f64 && cblas_dgemm)
        library->f64 = multiply_f64;
}
