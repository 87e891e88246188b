/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts that are announced, where a GPU's memory is on one side or both: as core/route.h has them.
 */
#ifndef WEFT_DEVICE_PUT_SIGNAL_H
#define WEFT_DEVICE_PUT_SIGNAL_H

#include "core/route.h"

/* Complete on return, or, with nbi, behind weft_device_quiet. */
int weft_device_put_signal(const struct weft_put_signal *put, int pe);

#endif
