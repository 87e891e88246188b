/* SPDX-License-Identifier: BSD-3-Clause */
/* The statuses of NVSHMEM's calls, and NVSHMEM's macro that prints an error line, for programs that
 * use them in their own checks. The numbers are NVSHMEM's. */
#ifndef WEFT_NVSHMEM_STATUS_H
#define WEFT_NVSHMEM_STATUS_H

#include <limits.h>
#include <stdio.h>

enum nvshmemx_status {
    NVSHMEMX_SUCCESS = 0,
    NVSHMEMX_ERROR_INVALID_VALUE,
    NVSHMEMX_ERROR_OUT_OF_MEMORY,
    NVSHMEMX_ERROR_NOT_SUPPORTED,
    NVSHMEMX_ERROR_SYMMETRY,
    NVSHMEMX_ERROR_GPU_NOT_SELECTED,
    NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED,
    NVSHMEMX_ERROR_INTERNAL,
    NVSHMEMX_ERROR_SENTINEL = INT_MAX
};

/* Prints a line to stderr: the place of the call, then the text, formatted as by printf. */
#define NVSHMEMI_ERROR_PRINT(...)                                    \
    do {                                                             \
        fprintf(stderr, "%s:%s:%d: ", __FILE__, __func__, __LINE__); \
        fprintf(stderr, __VA_ARGS__);                                \
        fprintf(stderr, "\n");                                       \
    } while (0)

#endif
