/* SPDX-License-Identifier: BSD-3-Clause */
/* What the program has made and not freed, kept in checked mode for a list at the end of the job.
 * The standard frees it then, so the list is a note and no error. What all PEs or all members of a
 * team make together is kept by the first of them. */
#ifndef WEFT_JOB_MADE_H
#define WEFT_JOB_MADE_H

#include <stdbool.h>
#include <stddef.h>

enum weft_made_kind {
    WEFT_MADE_OBJECT,
    WEFT_MADE_TEAM,
    WEFT_MADE_CONTEXT,
    WEFT_MADE_LOCK, /* held */
};

/* Keeps `what` with the place of the call that this thread is in. `bytes`: of an object. */
void weft_made_keep(enum weft_made_kind kind, const void *what, size_t bytes);

/* Forgets `what` if it was kept. */
void weft_made_forget(enum weft_made_kind kind, const void *what);

/* Forgets all of a kind that are gone. */
void weft_made_sweep(enum weft_made_kind kind, bool (*is_alive)(const void *what));

/* Writes a line for each place where something was made that is still there, for a limited number
 * of places, and forgets all. */
void weft_made_list(void);

#endif
