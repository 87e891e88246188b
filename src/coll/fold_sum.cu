/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of sums. */
#include "coll/fold_kernel.cuh"

WEFT_GPU_FOLDS_SUM(WEFT_FOLD_KERNEL, , weftk_fold)
