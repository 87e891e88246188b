/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic sums in memory, element by element, as cp.reduce.async.bulk makes them. */
#ifndef TESTS_GPU_DRIVER_BULK_ADD_H
#define TESTS_GPU_DRIVER_BULK_ADD_H

#include "module.h"

/* Adds the elements at `from` to those at `to`, in `bytes` bytes. */
void bulk_add(enum kernel_bulk kind, void *to, const void *from, unsigned bytes);

#endif
