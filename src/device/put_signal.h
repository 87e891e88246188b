/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts that are announced, where a GPU's memory is on one side or both: as core/rma.h has them. */
#ifndef WEFT_DEVICE_PUT_SIGNAL_H
#define WEFT_DEVICE_PUT_SIGNAL_H

#include "core/rma.h"

/* Complete on return, or, with nbi, behind weft_device_quiet. */
int weft_device_put_signal(void *dest, const void *source, size_t bytes, uint64_t *sig_addr,
                           uint64_t signal, enum weft_signal_op op, int pe, bool nbi,
                           const char *call);

#endif
