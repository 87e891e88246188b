/* SPDX-License-Identifier: BSD-3-Clause */
/* The routines of all types, as the random test calls them. */
#include "random/random/rma_routines.c"
