/* SPDX-License-Identifier: BSD-3-Clause */
/* A product as the pretended cuBLASLt launches it (tests/gpu/cublaslt): column-major,
 * d = op(a) x op(b). Shared with the kernel. */
#ifndef TESTS_GPU_DRIVER_PRODUCT_H
#define TESTS_GPU_DRIVER_PRODUCT_H

#include <stdint.h>

struct product {
    uint64_t m, n, k, lda, ldb, ldd;
    int32_t type_a, type_b, type_d; /* as in fused/cublaslt.h */
    int32_t transposed_a, transposed_b;
    int32_t narrow;                 /* factors of f32 are rounded to the 19 bits of TF32 */
    int32_t rounds;                 /* each half of a sum, to the type of d */
    const float *scale_a, *scale_b; /* NULL: 1 */
    uint64_t token;                 /* no other product has it */
};

#endif
