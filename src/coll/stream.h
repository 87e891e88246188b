/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies past the cache. Where a collective moves more than the last-level cache holds, its results
 * leave the cache again before anyone reads them, and a plain store would first read the line that
 * it overwrites: non-temporal stores do not. The C library's memcpy does so by the size of one
 * copy; here all that a member touches in the call counts. */
#ifndef WEFT_COLL_STREAM_H
#define WEFT_COLL_STREAM_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a collective in which each member reads and writes `bytes` in all should stream. */
bool weft_stream_wanted(size_t bytes);

/* memcpy, past the cache. What it stores is visible to others like plain stores. */
void weft_stream_copy(void *dest, const void *source, size_t bytes);

#endif
