/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums in memory, an element at a time, each atomic: what cp.reduce.async.bulk does. */
#ifndef TESTS_GPU_DRIVER_BULK_ADD_H
#define TESTS_GPU_DRIVER_BULK_ADD_H

#include "module.h"

/* Adds to the elements at `to` those at `from`, in so many bytes. */
void bulk_add(enum kernel_bulk kind, void *to, const void *from, unsigned bytes);

#endif
