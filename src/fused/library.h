/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix products of one GPU by cuBLASLt, or by Weft's kernel where a trial has found it faster. */
#ifndef WEFT_FUSED_LIBRARY_H
#define WEFT_FUSED_LIBRARY_H

#include "base/cuda.h"
#include "coll/scaling.h"
#include "fused/memo.h"

/* c = a x b, scaled unless `scaling` is NULL. All matrices are in memory that this GPU's kernels
 * reach; factors may be transposed. Without scales they all have one type, F32, F64, BF16 or F16;
 * with scales the factors are of 8 bits, and c is F32, BF16 or F16. */
struct weft_product {
    weft_matrix a, b, c;
    const struct weft_scaling *scaling;
};

/* Returns the hash with what decides, besides a shape, which way is the fastest: the GPU, its
 * driver, the library and its settings. */
uint64_t weft_library_machine(uint64_t hash);

/* The choice for a product is kept as cuBLASLt's algorithm, and Weft's kernel as zeros. Returns
 * whether a value that is kept is Weft's kernel. */
bool weft_library_is_own(const uint64_t words[WEFT_MEMO_WORDS]);

/* The GPU memory that a product of the library may use, aligned to 256 bytes. */
enum { WEFT_LIBRARY_ROOM_BYTES = 32 << 20 };

/* Enqueues a product, whose c is not empty. 8-bit factors may come without scales, or with
 * one scale for each factor and no bias. Also accepts bf16 factors with a c of F32. If there is
 * nothing to add up, c is zeros. The choice of the algorithm for a shape is kept, so later products
 * of that shape take little of the host's time. Returns 0; -ENOTSUP with text if the library has no
 * algorithm; -ENOMEM. Must be called in the GPU's context, after weft_cublaslt_load. */
int weft_library_multiply(const struct weft_product *p, char *room, weft_cu_stream stream);

#endif
