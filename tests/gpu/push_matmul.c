/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the cases of matmul.c with SHMEMX_ALGORITHM=push, so that gathers of few rows are
 * pushed, which only large ones are otherwise.
 * PEs: 3 */
#define ALGORITHM "push"
#include "gpu/matmul.c"
