/* SPDX-License-Identifier: BSD-3-Clause */
/* Which PEs of WORLD, in which order: an arithmetic progression, as the standard's teams and active
 * sets are, or a list. It does not say how many; whoever keeps it does. */
#ifndef WEFT_JOB_MEMBER_LIST_H
#define WEFT_JOB_MEMBER_LIST_H

#include <stddef.h>

struct weft_member_list {
    int start, stride; /* member i is world PE start + i * stride, */
    const int *pes;    /* or pes[i] where there is a list, which its owner keeps */
};

static inline int weft_member_pe(const struct weft_member_list *member_list, int member) {
    return __builtin_expect(member_list->pes != NULL, 0)
               ? member_list->pes[member]
               : member_list->start + member * member_list->stride;
}

#endif
