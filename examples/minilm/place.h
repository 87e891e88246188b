/* SPDX-License-Identifier: BSD-3-Clause */
/* Where an encoder works on a PE's own numbers between two matmuls, and where these numbers are: on
 * the processor (processor.c), or on this PE's GPU (gpu.cu). All matrices are row-major floats, and
 * their columns a multiple of LANES. Work is done in the order of the calls; that of a GPU may go
 * on after a call, until one reads. */
#ifndef MINILM_PLACE_H
#define MINILM_PLACE_H

#include "kernels.h"
#include <stdbool.h>
#include <weft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All heads of all sentences: context = softmax(q k^T / sqrt(width)) v. */
struct heads {
    const float *q, *k, *v; /* tokens x count * width, with leading dimension ld */
    float *context;
    size_t count, width, ld;
    const size_t *starts; /* sentence s is tokens starts[s] - starts[0] to starts[s + 1] -
                             starts[0]; in host memory */
    size_t sentences;
};

struct place {
    bool is_gpu;
    size_t tokens_max;               /* of a sentence */
    weft_stream stream;              /* on which weft.h's calls work with these numbers */
    float *(*floats)(size_t nelems); /* NULL: no memory */
    void (*release)(float *data);    /* of floats(), or NULL */
    void (*write)(float *dest, const float *source, size_t nelems); /* from host memory */
    void (*read)(float *dest, const float *source, size_t nelems);  /* to host memory, and waits */
    void (*add_row)(float *x, size_t rows, size_t cols, const float *row); /* as in kernels.h */
    void (*add_row_gelu)(float *x, size_t rows, size_t cols, const float *row);
    void (*add_and_norm)(float *x, const float *y, const float *bias, size_t rows, size_t cols,
                         const struct norm *norm);
    void (*attend)(const struct heads *heads);
    const char *(*error)(void); /* what has gone wrong since the start; NULL: nothing */
};

extern const struct place processor;

/* Returns this PE's GPU as a place; NULL if there is none, or if nvcc was not there to compile for
 * it. */
const struct place *gpu_place(void);

#ifdef __cplusplus
}
#endif

#endif
