/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix products of one GPU, in the order of a stream, by cuBLASLt. */
#ifndef WEFT_FUSED_PRODUCT_H
#define WEFT_FUSED_PRODUCT_H

#include <weft.h>
#include "base/cuda.h"

/* GPU memory that a product may use, and no other work at the same time. */
enum { WEFT_PRODUCT_ROOM_BYTES = 32 << 20 };

/* Enqueues c = a x b, for matrices in memory that this GPU's kernels reach: of one type, F32, F64,
 * BF16 or F16. Either factor may be transposed. If there is nothing to add up, c is zeros. `room`
 * has WEFT_PRODUCT_ROOM_BYTES. The choice of the algorithm for a shape is kept, so later products
 * of that shape take little of the host's time. Sums are made in F32, or F64; with WEFT_TF32=1 the
 * factors of F32 products are rounded to 19 bits. Returns 0; -ENOTSUP with text if the library is
 * missing, or has no algorithm; -ENOMEM. Must be called in the GPU's context. */
int weft_product_enqueue(const weft_matrix *a, const weft_matrix *b, const weft_matrix *c,
                         void *room, weft_cu_stream stream);

/* Opens the library. Returns 0 or -ENOTSUP with text. */
int weft_product_begin(void);

#endif
