/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of maxima. */
#include "coll/fold_kernel.cuh"

WEFT_GPU_FOLDS_MAX(WEFT_FOLD_KERNEL, , weftk_fold)
