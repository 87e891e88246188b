/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of all types, as the random test calls them, and folds of its own. */
#include "random/random/fold_routines.c"
