/* SPDX-License-Identifier: BSD-3-Clause */
/* Bringing the GPUs of all PEs up is a row of agreements (device/extent.h): each PE opens its own;
 * all exchange what theirs are, by UUID, because CUDA_VISIBLE_DEVICES may number them differently;
 * the windows of the heap and of the teams' words come up; and every link is tried with data. */
#ifndef WEFT_DEVICE_OPEN_H
#define WEFT_DEVICE_OPEN_H

/* Brings the GPUs of all PEs up, once a job. Collective over WORLD; the same result on all, with
 * text. Every pair of PEs has been tried with data then. Where that fails, what weft_device_begin
 * has opened stays open. */
int weft_device_open(void);
void weft_device_close(void);

#endif
