/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits an array among members: each gets whole grains, in the order of the members, and no two
 * shares differ by more than one grain. The same on all members, since it depends on sizes only.
 * Shared with kernels. */
#ifndef WEFT_COLL_SPLIT_H
#define WEFT_COLL_SPLIT_H

#include <stddef.h>
#include "weft/addr.h"

/* Returns the elements that processors and GPUs write at once, so that no two members write to the
 * same line: two cache lines of a processor are one of a GPU. */
WEFT_ADDR size_t weft_split_grain(size_t elem_bytes) {
    enum { BYTES = 128 };
    return BYTES / elem_bytes;
}

/* Returns where a member's share of `total` elements begins; for member npes, the end. */
WEFT_ADDR size_t weft_split_begin(size_t total, size_t grain, int member, int npes) {
    size_t grains = total / grain + (total % grain != 0);
    size_t begin = grains * (size_t)member / (size_t)npes * grain;
    return begin < total ? begin : total;
}

/* Returns the size of the largest share. */
WEFT_ADDR size_t weft_split_most(size_t total, size_t grain, int npes) {
    size_t grains = total / grain + (total % grain != 0);
    return (grains + (size_t)npes - 1) / (size_t)npes * grain;
}

#endif
