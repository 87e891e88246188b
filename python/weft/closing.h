/* SPDX-License-Identifier: BSD-3-Clause */
/* How PEs part at the end of a session: those that call finalize() find out whether any of them
 * still needs the symmetric memory, and meet none that ends instead, which waits for nobody here.
 *
 * Each PE has three words of every PE's, in symmetric memory that is made with the first other one:
 *
 *   even    2 * round + 1 if it needs the memory, else 2 * round, where round is even
 *   gone    UINT64_MAX once its process ends
 *   odd     as even, where round is odd
 *
 * A PE's word of a round is written again two rounds later, when all have read it. */
#ifndef PYWEFT_CLOSING_H
#define PYWEFT_CLOSING_H

#include "module.h"

/* Where symmetric memory is made; from the first time on PEs have the words. Collective over all
 * PEs. -ENOMEM on all. */
int pyweft_closing_prepare(void);

/* Whether any symmetric memory was made, alike on all PEs. */
bool pyweft_closing_prepared(void);

/* Whether this PE or any other in finalize() `needs` the memory. All that they have put before is
 * there then. Without the GIL. */
int pyweft_closing_agree(bool needs, bool *needed);

/* This process ends: peers in finalize() do not wait for it. Without the GIL and Python. */
void pyweft_closing_leave(void);

/* The words are gone. */
void pyweft_closing_forget(void);

#endif
