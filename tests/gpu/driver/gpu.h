/* SPDX-License-Identifier: BSD-3-Clause */
/* GPUs, as this process sees them, and their primary contexts. Below the calls a GPU is named by
 * its number in the machine, which memory carries from process to process. */
#ifndef TESTS_GPU_DRIVER_GPU_H
#define TESTS_GPU_DRIVER_GPU_H

#include "call.h"

#define GPUS_MAX 32
#define GPU_SMS  132 /* as an H200 has */

struct CUctx_st {
    int gpu; /* in the machine */
    int retained;
    int failed;                  /* the error of an operation: every later call returns it */
    struct CUstream_st *streams; /* all that are open */
    struct CUstream_st *legacy;  /* the default stream, when it has been used */
};

bool gpu_initialised(void);

/* GPU in the machine of an ordinal of this process, or -1. */
int gpu_of(weft_cu_device device);

/* Returns whether `gpu` can access memory of `owner`, which may be itself. */
bool gpu_reaches(int gpu, int owner);

/* Whether atomics of `gpu` on memory of `owner` are a load and a store. */
bool gpu_tears(int gpu, int owner);

/* Return the bytes of each GPU's memory, and the part used by this process. */
size_t gpu_memory_bytes(void);
extern size_t gpu_used_bytes[GPUS_MAX];

/* The calling thread's context, or NULL. */
struct CUctx_st *context_current(void);

/* Returns the primary context of the n-th GPU of the machine, or NULL after the last. */
struct CUctx_st *context_of(int gpu);

#endif
