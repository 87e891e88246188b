/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives of weft.h among members of several hosts, which are those of shmem.h
 * (coll/collective.h) with arrays in any memory. Arrays that are not the same symmetric object on
 * all members pass through the workspaces, a band of elements at a time:
 *
 *     source --copy--> | source | dest | partial results | --copy--> dest
 */
#ifndef WEFT_COLL_HOSTS_VECTOR_H
#define WEFT_COLL_HOSTS_VECTOR_H

#include "coll/plan.h"

struct weft_hosts_vector {
    struct weft_team *team;
    struct weft_plan plan; /* its blocks are one piece each, of nelems */
    char *dest;
    const char *source;
    size_t nelems, elem_bytes;
    const struct weft_reduction *reduction; /* NULL: blocks are copied */
    bool dest_symmetric, source_symmetric;  /* host memory; the same on all members */
    bool entered;                           /* all members have entered the call */
    void (*copy)(void *to, const void *from, size_t bytes); /* between an array and the workspace */
};

/* Returns the bytes of workspace that each member must have committed before the call. */
size_t weft_hosts_vector_workspace(const struct weft_hosts_vector *vector);

/* Moves or folds the vector. Collective over the team. On return dest is complete, and the caller
 * may write both arrays. */
void weft_hosts_vector_move(const struct weft_hosts_vector *vector);

#endif
