/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's symmetric memory within the reach of this PE's GPU. */
#ifndef WEFT_DEVICE_HOST_H
#define WEFT_DEVICE_HOST_H

/* Registers with the GPU what of the host heap is new; the statics, once; and takes all that back.
 * By one thread at a time, with the GPU open. */
void weft_device_register_heap(const char *call);
void weft_device_register_statics(void);
void weft_device_unregister_all(void);

#endif
