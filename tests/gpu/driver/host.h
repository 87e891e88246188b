/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered host memory, which GPUs can access at its own address. */
#ifndef TESTS_GPU_DRIVER_HOST_H
#define TESTS_GPU_DRIVER_HOST_H

#include "call.h"

/* Returns whether one registration contains all of it. */
bool host_holds(uintptr_t at, size_t bytes);

/* Returns whether any of it is registered. In the real driver, a copy of memory that is in two
 * registrations, or partly in one, fails. */
bool host_touches(uintptr_t at, size_t bytes);

#endif
