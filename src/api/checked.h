/* SPDX-License-Identifier: BSD-3-Clause */
/* Checked mode (SHMEM_DEBUG): every call looks for all misuse that can be seen, and ends the job
 * with the usual line. Off, a call pays for the test of one flag.
 *
 * An access is valid if a whole live object holds it, it is aligned like its elements, its two
 * sides do not overlap, and the calling thread may make it. */
#ifndef WEFT_API_CHECKED_H
#define WEFT_API_CHECKED_H

#include <stddef.h>
#include "core/team.h"
#include "coll/consistency.h"
#include "coll/group.h"
#include "api/entry.h"

/* A symmetric and a local side of an access to world PE `pe`, which is known to be one. */
struct weft_access {
    const char *symmetric_name, *local_name; /* "dest", "source"; local_name NULL: one side only */
    const void *symmetric, *local;
    size_t symmetric_bytes, local_bytes;
    size_t alignment; /* of both; 1: any */
    int pe;
    bool strided; /* the elements lie apart: both sides may share a range */
};

WEFT_COLD void weft_checked_access(const struct weft_access *access);

/* An argument in the heap has to lie in one live object, one in the data of the executable in one
 * variable. Where symbols say nothing, as in a stripped program, such an argument is valid. */
WEFT_COLD void weft_checked_object(const char *argument, const void *p, size_t bytes);

/* Ends the job if two ranges of one PE overlap. */
WEFT_COLD void weft_checked_disjoint(const char *a_name, const void *a, size_t a_bytes,
                                     const char *b_name, const void *b, size_t b_bytes);

/* All members of the group make this call, with the same `arguments`. */
WEFT_COLD void weft_checked_group(const struct weft_group *group,
                                  const struct weft_same *arguments);

#endif
