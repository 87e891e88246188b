/* SPDX-License-Identifier: BSD-3-Clause */
/* The task of the kernels that exchange rows, shared with the kernels. In each member's half the
 * others write lists:
 *
 *   | list of member 0 | list of member 1 | ...      list: | rows of its dest | splits |
 *
 * The split of part k for member r is entry r * nparts + k of a list, whatever the order of the
 * caller's arrays. */
#ifndef WEFT_FUSED_ROW_EXCHANGE_H
#define WEFT_FUSED_ROW_EXCHANGE_H

#include <stdbool.h>
#include "weft/device/team.cuh"

enum { WEFT_EXCHANGE_THREADS = 512 };            /* of a block */
#define WEFT_EXCHANGE_PIECE_BYTES ((size_t)8192) /* that a warp copies at a time */

/* A part for another member, in rows, and the pieces of this part and of those before it for the
 * same member. */
struct weft_exchange_part {
    uint64_t from, to, rows, pieces;
};

struct weft_exchange_task {
    struct weft_array halves, dests; /* of the members */
    int n, me;
    uint32_t nparts;
    bool source_by_part, dest_by_part;
    size_t align, row_bytes, source_rows, dest_rows;
    size_t list_bytes;
    char *dest;
    const char *source;
    const int64_t *splits, *offsets;
    int64_t *dest_splits, *dest_offsets;
    struct weft_exchange_part *parts; /* part k for member r: r * nparts + k */
};

#endif
