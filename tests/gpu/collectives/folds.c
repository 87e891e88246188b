/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of all types, as called by the random test, and folds made here. */
#include "random/random/fold_routines.c"
