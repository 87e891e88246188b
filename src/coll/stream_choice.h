/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way a collective on a stream goes. One table, and settings that are the same on all PEs
 * (device/channels.c compares them), so that all members choose alike: it depends on the operation,
 * the kind of number, the size and the number of members, on nothing else. */
#ifndef WEFT_COLL_STREAM_CHOICE_H
#define WEFT_COLL_STREAM_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include "coll/number.h"

enum weft_stream_operation {
    WEFT_STREAM_ALL_GATHER,
    WEFT_STREAM_ALL_TO_ALL,
    WEFT_STREAM_BROADCAST,
    WEFT_STREAM_REDUCE_SCATTER,
    WEFT_STREAM_ALL_REDUCE,
    WEFT_STREAM_OPERATIONS
};

/* From small to large; the last takes everything. */
enum weft_stream_way {
    WEFT_WAY_LL,           /* one kernel: packets, each with its flag */
    WEFT_WAY_MARKED,       /* one kernel: words that are their own flag; everybody folds all */
    WEFT_WAY_MARKED_TWICE, /* the same; each folds a chunk, and sends what becomes of it */
    WEFT_WAY_PUSH,         /* one kernel: a meeting, pushes, a meeting */
    WEFT_WAY_FOLD,         /* one kernel: a meeting, loads, a meeting; as WEFT_WAY_MEET goes */
    WEFT_WAY_MEET,         /* a meeting, copies or a fold by whichever engine, a meeting */
    WEFT_WAYS
};

/* What the choice is made from. */
struct weft_stream_call {
    enum weft_stream_operation operation;
    enum weft_fold_op op; /* of a reduction */
    enum weft_number number;
    int n;        /* members */
    size_t bytes; /* of a block: of what a member sends to another, or reduces */
};

/* The ways to try, in this order; how many. Which of them takes the numbers and has room for the
 * bytes, they know themselves; behind the last it is WEFT_WAY_MEET. */
int weft_stream_ways(const struct weft_stream_call *call, enum weft_stream_way *tries);
enum { WEFT_STREAM_TRIES_MAX = 2 * WEFT_WAYS };

/* The largest block that sizes alone send this way; 0: none. */
size_t weft_stream_bytes_max(enum weft_stream_operation operation, enum weft_stream_way way, int n);

/* As people read it. */
const char *weft_stream_way_name(enum weft_stream_way way);

/* Writes the line of an operation for people to read: "all-gather  up to 64 KiB: packets; ...".
 * Returns what snprintf does. */
int weft_stream_describe(char *text, size_t bytes, enum weft_stream_operation operation, int n);

#endif
