/* SPDX-License-Identifier: BSD-3-Clause */
/* A hang explains itself: who waits, for whom, and what those are doing meanwhile.
 *
 * A wait that lasts is shown in the control page (boot/stall.h), and after WEFT_HANG_SECONDS the PE
 * reads what the others show and writes one line. Nothing of this is on the way of a short wait. */
#ifndef WEFT_CORE_HANG_H
#define WEFT_CORE_HANG_H

/* Watches over this PE's waits from now on. */
void weft_hang_watch(void);

#endif
