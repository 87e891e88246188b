/* SPDX-License-Identifier: BSD-3-Clause */
/* cuBLASLt, NVIDIA's library of matrix products, opened at run time like the driver.
 *
 * This file declares the part of it that Weft uses, under its own names. Numbers and layouts are
 * its ABI, which tests/gpu/abi.cu compares with cublasLt.h where the toolkit is installed; they are
 * the same in versions 12 and 13. Calls return 0 or a status. */
#ifndef WEFT_FUSED_CUBLASLT_H
#define WEFT_FUSED_CUBLASLT_H

#include "base/cuda.h"

typedef struct cublasLtContext *weft_lt_handle;
typedef struct weft_lt_opaque *weft_lt_desc, *weft_lt_layout, *weft_lt_preference;

enum { WEFT_LT_SUCCESS = 0, WEFT_LT_ALLOC_FAILED = 3, WEFT_LT_NOT_SUPPORTED = 15 };

/* Types of elements (cudaDataType) and of computation (cublasComputeType_t). */
enum {
    WEFT_LT_R_32F = 0,
    WEFT_LT_R_64F = 1,
    WEFT_LT_R_16F = 2,
    WEFT_LT_R_16BF = 14,
    WEFT_LT_R_8F_E4M3 = 28,
    WEFT_LT_R_8F_E5M2 = 29,
    WEFT_LT_COMPUTE_32F = 68,
    WEFT_LT_COMPUTE_64F = 70,
    WEFT_LT_COMPUTE_32F_FAST_TF32 = 77,
};

/* Attributes of a product and of a preference, and their values. */
enum {
    WEFT_LT_DESC_TRANSA = 3,
    WEFT_LT_DESC_TRANSB = 4,
    WEFT_LT_DESC_A_SCALE_POINTER = 17,
    WEFT_LT_DESC_B_SCALE_POINTER = 18,
    WEFT_LT_OP_N = 0,
    WEFT_LT_OP_T = 1,
    WEFT_LT_PREF_WORKSPACE_BYTES = 1,
    WEFT_LT_PREF_REDUCTION_SCHEMES = 3, /* a mask: how parts of a sum over K are added */
    WEFT_LT_REDUCTION_COMPUTE_TYPE = 2, /* in the type of computation, not in that of the result */
    WEFT_LT_PREF_ALIGNMENT_A = 5,       /* then of B, C and D */
};

/* An algorithm for products of one shape, as the library recommends it. */
struct weft_lt_heuristic {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
};

/* X(name, arguments) */
#define WEFT_LT_CALLS(X)                                                                     \
    X(cublasLtCreate, (weft_lt_handle * handle))                                             \
    X(cublasLtMatmulDescCreate, (weft_lt_desc * desc, int compute_type, int scale_type))     \
    X(cublasLtMatmulDescDestroy, (weft_lt_desc desc))                                        \
    X(cublasLtMatmulDescSetAttribute,                                                        \
      (weft_lt_desc desc, int attribute, const void *value, size_t bytes))                   \
    X(cublasLtMatrixLayoutCreate,                                                            \
      (weft_lt_layout * layout, int type, uint64_t rows, uint64_t cols, int64_t ld))         \
    X(cublasLtMatrixLayoutDestroy, (weft_lt_layout layout))                                  \
    X(cublasLtMatmulPreferenceCreate, (weft_lt_preference * preference))                     \
    X(cublasLtMatmulPreferenceDestroy, (weft_lt_preference preference))                      \
    X(cublasLtMatmulPreferenceSetAttribute,                                                  \
      (weft_lt_preference preference, int attribute, const void *value, size_t bytes))       \
    X(cublasLtMatmulAlgoGetHeuristic,                                                        \
      (weft_lt_handle handle, weft_lt_desc desc, weft_lt_layout a, weft_lt_layout b,         \
       weft_lt_layout c, weft_lt_layout d, weft_lt_preference preference, int wanted,        \
       struct weft_lt_heuristic *found, int *count))                                         \
    X(cublasLtMatmulAlgoCheck, (weft_lt_handle handle, weft_lt_desc desc, weft_lt_layout a,  \
                                weft_lt_layout b, weft_lt_layout c, weft_lt_layout d,        \
                                const uint64_t *algorithm, struct weft_lt_heuristic *found)) \
    X(cublasLtMatmul,                                                                        \
      (weft_lt_handle handle, weft_lt_desc desc, const void *alpha, const void *a,           \
       weft_lt_layout a_layout, const void *b, weft_lt_layout b_layout, const void *beta,    \
       const void *c, weft_lt_layout c_layout, void *d, weft_lt_layout d_layout,             \
       const uint64_t *algorithm, void *workspace, size_t workspace_bytes, weft_cu_stream stream))

struct weft_cublaslt {
#define WEFT_LT_FIELD(name, arguments) int(*name) arguments;
    WEFT_LT_CALLS(WEFT_LT_FIELD)
#undef WEFT_LT_FIELD
    const char *(*cublasLtGetStatusString)(int status);
    size_t (*cublasLtGetVersion)(void);
};

/* The library's functions; valid after weft_cublaslt_load has returned 0. */
extern struct weft_cublaslt weft_cublaslt;

/* Opens the library, once per process, after the driver. Returns 0, or -ENOTSUP with text that says
 * what to install.
 */
int weft_cublaslt_load(void);

/* Returns the negative errno that fits a status, with the text "CALL: WHAT: cuBLASLt's
 * description", or 0 for 0. */
int weft_cublaslt_check(int status, const char *what);

#endif
