/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a session. PEs that call finalize() agree on whether any of them still needs the
 * symmetric memory, without waiting for PEs that exit instead.
 *
 * Each PE has three words on every PE, in symmetric memory that is allocated together with the
 * first array:
 *
 *   even    in even rounds: 2 * round + 1 if the PE needs the memory, else 2 * round
 *   gone    UINT64_MAX once the PE's process exits
 *   odd     as `even`, in odd rounds
 *
 * A word is written again two rounds later, when all PEs have read it. */
#ifndef PYWEFT_CLOSING_H
#define PYWEFT_CLOSING_H

#include "module.h"

/* Allocates the words. To be called where symmetric memory is allocated; does nothing from the
 * second time on. Collective over all PEs. Returns -ENOMEM, on all of them. */
int pyweft_closing_prepare(void);

/* Returns whether symmetric memory was ever allocated: the same answer on all PEs. */
bool pyweft_closing_prepared(void);

/* Sets *needed if this PE `needs` the memory, or another PE in finalize() does. Blocks until every
 * PE has called this function or is exiting. Everything that they put before has arrived on return.
 * Called without the GIL. */
int pyweft_closing_agree(bool needs, bool *needed);

/* Tells PEs in finalize() not to wait for this process, which is exiting. Called without the GIL,
 * maybe after Python has ended. */
void pyweft_closing_leave(void);

/* Forgets the words, which have been freed. */
void pyweft_closing_forget(void);

#endif
