/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefetches large parts of a far member's memory while the caller computes.
 *
 * A get sends all its requests at once and blocks if the channel's limits are reached. A prefetch
 * never blocks: each answer, on the thread that delivers it, sends the next request. When all data
 * has arrived, a word of this PE is set, which near PEs can wait for, too. */
#ifndef WEFT_FAR_PREFETCH_H
#define WEFT_FAR_PREFETCH_H

#include "far/channel.h"
#include "far/protocol.h"

/* Rows of row_bytes each, `step` bytes apart at the source and contiguous here. */
struct weft_far_prefetch {
    struct weft_message_continuation continuation;
    int pe;
    struct weft_far_place place; /* of the row that is requested next */
    int64_t step;
    size_t row_bytes, rows, within; /* rows left; bytes of the first of them already requested */
    char *dest;
    uint32_t open; /* requests without an answer yet */
    _Atomic bool
        stopped; /* the engine had no room, and no answer is under way that would continue */
    struct weft_word *word;
    uint32_t value;
};

/* Begins a prefetch; pe, step, row_bytes, rows, dest, word and value are set. `source` is the
 * address of the first row, given as in far/far.h. The struct must live until the word has its
 * value. */
void weft_far_prefetch_begin(struct weft_far_prefetch *prefetch, const void *source);

/* Continues a prefetch that has stopped. The thread that waits for the word calls this now and
 * then. */
void weft_far_prefetch_look(struct weft_far_prefetch *prefetch);

#endif
