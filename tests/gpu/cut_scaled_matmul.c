/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the cases of scaled_matmul.c, with products that are cut and pushed by engines,
 * which only large ones are otherwise. PEs: 2 3 4 */
#define ALGORITHM "meet"
#include "gpu/scaled_matmul.c"
