/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA's words for a C++ compiler of the host: a kernel is a function that one thread of one block
 * runs. What is PTX on a GPU, the kernels' own header has for the host, too. */
#ifndef TESTS_GPU_DRIVER_DEVICE_H
#define TESTS_GPU_DRIVER_DEVICE_H

#include "module.h"
#include <cstdlib>
#include <time.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static thread_local

/* A trap ends the kernel, not the process. */
#define abort()  kernel_trap()
#define __trap() kernel_trap()

/* The driver remembers when a kernel has last looked at the clock. */
#define clock_gettime(clock, now) kernel_clock(clock, now)

#define WEFT_HOST_TORN(word) kernel_tears(word)

struct dim3 {
    unsigned x, y, z;
};
__attribute__((unused)) static const dim3 threadIdx = {0, 0, 0}, blockIdx = {0, 0, 0};
__attribute__((unused)) static const dim3 blockDim = {1, 1, 1}, gridDim = {1, 1, 1};

static inline void __syncthreads() {}
static inline void __nanosleep(unsigned ns) {
    struct timespec pause = {0, (long)ns};
    nanosleep(&pause, NULL);
}

#endif
