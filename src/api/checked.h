/* SPDX-License-Identifier: BSD-3-Clause */
/* Checked mode (SHMEM_DEBUG): every call looks for all misuse that can be detected, and ends the
 * job with an error line. If it is off, a call pays for the test of one flag.
 *
 * An access is valid if it lies in one live object, is aligned like its elements, its two sides do
 * not overlap, and the calling thread may make it. */
#ifndef WEFT_API_CHECKED_H
#define WEFT_API_CHECKED_H

#include <stddef.h>
#include "core/team.h"
#include "coll/consistency.h"
#include "coll/group.h"
#include "api/entry.h"

/* An access with a symmetric side, on PE `pe` of the world, and a local side. */
struct weft_access {
    const char *symmetric_name,
        *local_name; /* such as "dest" and "source"; local_name is NULL if there is only one side */
    const void *symmetric, *local;
    size_t symmetric_bytes, local_bytes;
    size_t alignment; /* of both sides; 1: any */
    int pe;
    bool strided; /* the elements are not contiguous, so both sides may share a range */
};

WEFT_COLD void weft_checked_access(const struct weft_access *access);

/* The memory of this PE that a call reads or writes through one argument. */
struct weft_argument {
    const char *name;
    const void *p;
    size_t bytes;
};

/* Ends the job unless the argument lies in one live object, if it points into the heap, or in one
 * variable, if it points into the executable's data. Without symbols, as in a stripped program, an
 * argument in the data is taken as valid. */
WEFT_COLD void weft_checked_object(struct weft_argument argument);

/* Ends the job if the two arguments of one PE overlap. */
WEFT_COLD void weft_checked_disjoint(struct weft_argument a, struct weft_argument b);

/* Ends the job unless all members of the group make this call with the same `arguments`. */
WEFT_COLD void weft_checked_group(const struct weft_group *group,
                                  const struct weft_same *arguments);

#endif
