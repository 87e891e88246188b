/* SPDX-License-Identifier: BSD-3-Clause */
/* Which links between GPUs carry atomics. */
#ifndef WEFT_DEVICE_ATOMICS_H
#define WEFT_DEVICE_ATOMICS_H

/* Finds out by trying which GPUs that are hidden here this PE's GPU has atomics on. Collective over
 * WORLD, with its words 0, as they are again behind it. */
int weft_device_try_atomics(int (*agree)(const void *call, int own), const char *call);

#endif
