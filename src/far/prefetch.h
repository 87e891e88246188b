/* SPDX-License-Identifier: BSD-3-Clause */
/* Large parts of far members' memory that are brought here while the caller computes.
 *
 * A get asks at once for all that it wants, and waits where more is on its way than a channel may
 * have. A bringing never waits: each answer, by whichever thread it is delivered, sends the next
 * request. A word of this PE says when all is here, to others that have it mapped, too. */
#ifndef WEFT_FAR_PREFETCH_H
#define WEFT_FAR_PREFETCH_H

#include "far/channel.h"
#include "far/protocol.h"

/* Rows of row_bytes that lie `step` bytes apart there, and densely packed here. */
struct weft_far_prefetch {
    struct weft_message_continuation continuation;
    int pe;
    struct weft_far_place place; /* of the row that is asked for next */
    int64_t step;
    size_t row_bytes, rows, within; /* rows that are left, bytes of the first that were asked for */
    char *dest;
    uint32_t open;        /* requests that are not answered */
    _Atomic bool stopped; /* the engine had no room, and no answer is on its way */
    struct weft_word *word;
    uint32_t value;
};

/* Begins, with pe, step, row_bytes, rows, dest, word and value set; `source` names the first row by
 * its address here, as in far/far.h. It must live until the word has its value. */
void weft_far_prefetch_begin(struct weft_far_prefetch *bring, const void *source);

/* Goes on if it has stopped: whoever waits for the word of a bringing of its own calls it now and
 * then. */
void weft_far_prefetch_look(struct weft_far_prefetch *bring);

#endif
