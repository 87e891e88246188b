/* SPDX-License-Identifier: BSD-3-Clause */
/* Under oshrun a death is the launcher's to notice and to tell. A launcher may be stopped, or get
 * no processor: so PEs that wait look at each other's mutexes now and then, and whoever finds a
 * dead one writes the abort word itself when the launcher has not within half a second. */
#ifndef WEFT_BOOT_NOTICE_H
#define WEFT_BOOT_NOTICE_H

/* Called in every turn of a wait that is about to sleep. It is mostly one reading of the clock, and
 * nothing in a job without oshrun, whose guards do this (boot/guard.h). It may sleep for that half
 * second. */
void weft_notice_deaths(void);

#endif
