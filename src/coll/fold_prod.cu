/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of products. */
#include "coll/fold_kernel.cuh"

WEFT_GPU_FOLDS_PROD(WEFT_FOLD_KERNEL, , weftk_fold)
