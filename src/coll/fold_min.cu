/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of minima. */
#include "coll/fold_kernel.cuh"

WEFT_GPU_FOLDS_MIN(WEFT_FOLD_KERNEL, , weftk_fold)
