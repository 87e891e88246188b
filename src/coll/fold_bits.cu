/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of bitwise reductions. */
#include "coll/fold_kernel.cuh"

WEFT_GPU_FOLDS_AND(WEFT_FOLD_KERNEL, , weftk_fold)
WEFT_GPU_FOLDS_OR(WEFT_FOLD_KERNEL, , weftk_fold)
WEFT_GPU_FOLDS_XOR(WEFT_FOLD_KERNEL, , weftk_fold)
