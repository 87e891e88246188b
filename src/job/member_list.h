/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of PEs of WORLD in a given order: an arithmetic progression, as in the standard's teams
 * and active sets, or an array. The number of members is kept by the owner. */
#ifndef WEFT_JOB_MEMBER_LIST_H
#define WEFT_JOB_MEMBER_LIST_H

#include <stddef.h>

struct weft_member_list {
    int start, stride; /* member i is world PE start + i * stride if pes is NULL */
    const int *pes;    /* otherwise pes[i]; the owner keeps the array */
};

static inline int weft_member_pe(const struct weft_member_list *member_list, int member) {
    return __builtin_expect(member_list->pes != NULL, 0)
               ? member_list->pes[member]
               : member_list->start + member * member_list->stride;
}

#endif
