/* SPDX-License-Identifier: BSD-3-Clause */
/* Which PEs of WORLD, in which order: an arithmetic progression, as the standard's teams and active
 * sets are, or a list. It does not say how many; whoever keeps it does. */
#ifndef WEFT_CORE_ROSTER_H
#define WEFT_CORE_ROSTER_H

#include <stddef.h>

struct weft_roster {
    int start, stride; /* member i is world PE start + i * stride, */
    const int *pes;    /* or pes[i] where there is a list, which its owner keeps */
};

static inline int weft_roster_pe(const struct weft_roster *roster, int member) {
    return __builtin_expect(roster->pes != NULL, 0) ? roster->pes[member]
                                                    : roster->start + member * roster->stride;
}

#endif
