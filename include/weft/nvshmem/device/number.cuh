/* SPDX-License-Identifier: BSD-3-Clause */
/* NVSHMEM's constants, which are compiled into kernels that we did not build, and their Weft
 * equivalents. */
#ifndef WEFT_NVSHMEM_NUMBER_CUH
#define WEFT_NVSHMEM_NUMBER_CUH

#include "weft/device/team.cuh"

enum {
    NVSHMEM_CMP_EQ,
    NVSHMEM_CMP_NE,
    NVSHMEM_CMP_GT,
    NVSHMEM_CMP_LE,
    NVSHMEM_CMP_LT,
    NVSHMEM_CMP_GE
};
enum { NVSHMEM_SIGNAL_SET = 9, NVSHMEM_SIGNAL_ADD = 10 };

/* Converts NVSHMEM's comparison to Weft's, which is OpenSHMEM's; returns 0 for an invalid one. */
WEFT_ADDR int weft_nvshmem_cmp(int cmp) {
    return cmp == NVSHMEM_CMP_EQ   ? WEFT_CMP_EQ
           : cmp == NVSHMEM_CMP_NE ? WEFT_CMP_NE
           : cmp == NVSHMEM_CMP_GT ? WEFT_CMP_GT
           : cmp == NVSHMEM_CMP_GE ? WEFT_CMP_GE
           : cmp == NVSHMEM_CMP_LT ? WEFT_CMP_LT
           : cmp == NVSHMEM_CMP_LE ? WEFT_CMP_LE
                                   : 0;
}

/* Converts a signal operation in the same way. */
WEFT_ADDR int weft_nvshmem_signal_op(int op) {
    return op == NVSHMEM_SIGNAL_SET   ? WEFT_SIGNAL_SET
           : op == NVSHMEM_SIGNAL_ADD ? WEFT_SIGNAL_ADD
                                      : 0;
}

#endif
