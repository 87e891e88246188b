/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the cases of matmul.c, with a gather of few rows that is pushed, which only that of
 * long rows is otherwise.
 * PEs: 3 */
#define ALGORITHM "push"
#include "gpu/matmul.c"
