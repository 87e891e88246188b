/* SPDX-License-Identifier: BSD-3-Clause */
/* The task of the kernels that normalise rows, shared with the kernels. A row's `cols` numbers are
 * units of 16 bytes, or single numbers if they do not fill whole units. */
#ifndef WEFT_COLL_NORM_H
#define WEFT_COLL_NORM_H

#include "coll/marked.h"

struct weft_norm_task {
    const char *sums;            /* rows x cols: what is normalised, without the kernel's own sum */
    const char *bias, *residual; /* cols; rows x cols; or NULL */
    const char *weight;          /* cols, or NULL */
    char *residual_out, *out;    /* rows x cols */
    uint8_t *quantized;          /* rows x cols, or NULL */
    float *scales;               /* of `quantized` */
    uint32_t rows, cols, group;  /* group: numbers with a scale, or 0 */
    uint32_t rows_each;          /* of a block that also sums */
    bool aligned;                /* the arrays of numbers begin at multiples of 16 bytes */
    float epsilon;
};

enum { WEFT_NORM_THREADS = WEFT_GPU_CHANNEL_THREADS, WEFT_NORM_GROUP_LEAST = 8 };

#endif
