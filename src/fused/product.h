/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix products of one GPU, in the order of a stream, with or without scales: by cuBLASLt, or by
 * Weft's kernel where a trial has found it faster, as WEFT_PRODUCTS allows (library.h). */
#ifndef WEFT_FUSED_PRODUCT_H
#define WEFT_FUSED_PRODUCT_H

#include "fused/library.h"

/* cuBLASLt does not take a single scale at any other address (13.1; its manual does not say so). A
 * scale that is not aligned costs a product in F32 and a pass over it. */
enum { WEFT_PRODUCT_SCALE_ALIGNMENT = 16 };

/* Returns the bytes of GPU memory that this product needs, or a product of parts of its matrices.
 * No other work may use that memory meanwhile. */
size_t weft_product_room(const struct weft_product *largest);

/* Enqueues a product; `room` is aligned to 256 bytes. Sums are computed in F32, or F64; with
 * WEFT_TF32=1 the factors of F32 products are rounded to 19 bits. Returns 0; -ENOTSUP with text if
 * no algorithm takes the shape; -ENOMEM. Must be called in the GPU's context, after
 * weft_product_begin. */
int weft_product_enqueue(const struct weft_product *p, char *room, weft_cu_stream stream);

/* Opens cuBLASLt. Returns 0; -ENOTSUP with text if it is missing; -EINVAL with text if
 * WEFT_PRODUCTS is not known. */
int weft_product_begin(void);

#endif
