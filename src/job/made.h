/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects, teams, contexts and locks that the program has made and not freed. Checked mode
 * records them and lists them at the end of the job. The standard frees them then, so the list is a
 * note, not an error. Things made collectively are recorded by the first member only. */
#ifndef WEFT_JOB_MADE_H
#define WEFT_JOB_MADE_H

#include <stdbool.h>
#include <stddef.h>

enum weft_made_kind {
    WEFT_MADE_OBJECT,
    WEFT_MADE_TEAM,
    WEFT_MADE_CONTEXT,
    WEFT_MADE_LOCK, /* a lock that this PE holds */
};

/* Records `what` with the place of this thread's call. `bytes` is the size of an object and 0
 * otherwise. */
void weft_made_keep(enum weft_made_kind kind, const void *what, size_t bytes);

/* Removes `what` from the records if it is there. */
void weft_made_forget(enum weft_made_kind kind, const void *what);

/* Removes all records of a kind for which is_alive returns false. */
void weft_made_sweep(enum weft_made_kind kind, bool (*is_alive)(const void *what));

/* Logs one line for each place where something was made that is not freed, up to a limit, and
 * removes all records. */
void weft_made_list(void);

#endif
