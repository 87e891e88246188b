/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithm of a collective on a stream. It depends only on one table, on settings that are the
 * same on all PEs (device/channels.c compares them), on the operation, the type of number, the size
 * and the number of members, so that all members make the same choice. */
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

/* In the order of sizes; the last algorithm has no limit. */
enum weft_stream_way {
    WEFT_WAY_LL,           /* one kernel: packets, each with its flag */
    WEFT_WAY_MARKED,       /* one kernel: words that are their own flags; every member folds all */
    WEFT_WAY_MARKED_TWICE, /* one kernel; each member folds a chunk, and sends the result to all */
    WEFT_WAY_PUSH,         /* one kernel: a meeting, pushes, a meeting */
    WEFT_WAY_FOLD,         /* one kernel: a meeting, loads, a meeting; the steps of WEFT_WAY_MEET */
    WEFT_WAY_MEET,         /* meeting, copies (SM or copy engine) or fold, meeting */
    WEFT_WAYS
};

/* The call for which an algorithm is chosen. */
struct weft_stream_call {
    enum weft_stream_operation operation;
    enum weft_fold_op op; /* of a reduction */
    enum weft_number number;
    int n;        /* members */
    size_t bytes; /* of a block that a member sends to another, or reduces */
};

/* Stores the algorithms to try, in this order, and returns their number. An algorithm itself knows
 * whether it supports the numbers and has room for the bytes. If all fail, the call uses
 * WEFT_WAY_MEET. */
int weft_stream_ways(const struct weft_stream_call *call, enum weft_stream_way *tries);
enum { WEFT_STREAM_TRIES_MAX = 2 * WEFT_WAYS };

/* Returns the largest block for which the table has this algorithm; 0: none. */
size_t weft_stream_bytes_max(enum weft_stream_operation operation, enum weft_stream_way way, int n);

/* Returns the name for lines and tables. */
const char *weft_stream_way_name(enum weft_stream_way way);

/* Writes a line that describes the algorithms of an operation, such as "all-gather  up to 64 KiB:
 * packets; ...". Returns what snprintf does. */
int weft_stream_describe(char *text, size_t bytes, enum weft_stream_operation operation, int n);

#endif
