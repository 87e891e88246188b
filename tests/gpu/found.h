/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors that kernels of a test have seen, in GPU memory. */
#ifndef TESTS_GPU_FOUND_H
#define TESTS_GPU_FOUND_H

#include <stdint.h>

struct device_found {
    uint64_t wrong, checked;
    uint64_t claimed, what[4]; /* of the first one, as the kernel has it */
};

#endif
