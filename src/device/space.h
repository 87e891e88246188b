/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of GPUs as core knows it (core/space.h). */
#ifndef WEFT_DEVICE_SPACE_H
#define WEFT_DEVICE_SPACE_H

#include "core/space.h"

/* Before weft_init: jobs that come up from now on may have memory of GPUs. */
void weft_device_register(void);

#endif
