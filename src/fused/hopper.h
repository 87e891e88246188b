/* SPDX-License-Identifier: BSD-3-Clause */
/* Products by the kernels of hopper.cu. */
#ifndef WEFT_FUSED_HOPPER_H
#define WEFT_FUSED_HOPPER_H

#include <weft.h>
#include "base/cuda.h"

/* Enqueues c = a x b, which weft_plan_fits, by tiles of a width that weft_plan_width returns for
 * some size, in the order of a stream. Returns 0 or -errno with text. Must be called in the GPU's
 * context. */
int weft_hopper_enqueue(const weft_matrix *a, const weft_matrix *b, const weft_matrix *c,
                        unsigned width, weft_cu_stream stream);

#endif
