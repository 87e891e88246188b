/* SPDX-License-Identifier: BSD-3-Clause */
/* The task of the kernels that send rows to experts and add their results, shared with the kernels.
 * Each member has a half (device/half.h), to which the others write:
 *
 *   dispatch  | list of each member | rows of each member's tokens, at the tokens' places |
 *   combine   | records of each member for this member's tokens, at the tokens' places |
 *
 * A list is the number of tokens, their experts, weights and scales. A record is the sum of a
 * token's rows on one member, and the weights of its slots there. */
#ifndef WEFT_FUSED_EXPERTS_H
#define WEFT_FUSED_EXPERTS_H

#include "weft/device/team.cuh"

enum {
    WEFT_EXPERTS_TOP_K_MAX = 16,
    WEFT_EXPERTS_THREADS = 512 /* of a block */
};

/* The beginning of a list. */
struct weft_experts_header {
    uint32_t ntokens, has_weights, has_scales, pad;
};

struct weft_experts_task {
    struct weft_array halves; /* of the members */
    int n, me;
    int dtype; /* a weft_dtype */
    uint32_t tokens_max, top_k, scale_cols, rows_max;
    uint32_t experts_each; /* of a member */
    uint32_t ntokens;      /* of this member */
    uint32_t parts;        /* of a row, which warps move one by one */

    /* Bytes. Within a list: where weights and scales begin. */
    size_t list_step, weights_at, scales_at, rows_at;
    size_t row_bytes, row_step;         /* of a row, and to the next one in a half */
    size_t part_bytes;                  /* of all parts of a row but the last: a multiple of 16 */
    size_t record_weights, record_step; /* where a record's weights begin, and to the next record */

    /* This member's arrays. */
    char *tokens; /* ntokens x cols: read by a dispatch, written by a combine */
    const int32_t *experts;
    float *weights;      /* ntokens x top_k, or NULL */
    const float *scales; /* ntokens x scale_cols, or NULL */
    char *data;          /* rows x cols */
    float *row_weights, *row_scales;
    const float *factors; /* of the rows, or NULL */
    int32_t *sources, *offsets;
    int32_t *row_of; /* n x tokens_max x top_k: the row of each slot here, or -1 */
};

#endif
