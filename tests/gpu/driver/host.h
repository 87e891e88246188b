/* SPDX-License-Identifier: BSD-3-Clause */
/* Host memory that has been registered: GPUs reach it at its own address. */
#ifndef TESTS_GPU_DRIVER_HOST_H
#define TESTS_GPU_DRIVER_HOST_H

#include "call.h"

/* Whether one registration holds all of it. */
bool host_holds(uintptr_t at, size_t bytes);

/* Whether any of it is registered. A copy of what is in two registrations, or in one by half,
 * fails in the real driver. */
bool host_touches(uintptr_t at, size_t bytes);

#endif
