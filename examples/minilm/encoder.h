/* SPDX-License-Identifier: BSD-3-Clause */
/* The encoder: sentences of tokens -> unit vectors, by all members of a team together.
 *
 * A batch is its sentences' tokens one after the other, no padding: M tokens are M rows. Between
 * the operators a member holds ceil(M / n) rows of all columns (the last ones fewer, or none);
 * inside them it holds all rows of its heads' columns. So a layer is
 *
 *     x: my rows --all-gather+matmul--> q, k, v: my heads --attention--> context: my heads
 *        --matmul+reduce-scatter--> + bias + residual, norm: my rows
 *        --all-gather+matmul--> gelu: my inner columns --matmul+reduce-scatter--> ... my rows
 */
#ifndef MINILM_ENCODER_H
#define MINILM_ENCODER_H

#include "model.h"
#include <shmem.h>

/* Sentence s is tokens[starts[s]] to tokens[starts[s + 1] - 1]. */
struct sentences {
    const int32_t *tokens;
    const size_t *starts;
    size_t count;
};

struct encoder {
    const struct model *model;
    shmem_team_t team;
    size_t me, n;
    size_t tokens_max; /* of a batch */
    float *x;          /* my rows x hidden, in symmetric memory: peers multiply it in place */
    float *y;          /* my rows x hidden */
    float *qkv[3];     /* tokens_max x slice each */
    float *context;    /* tokens_max x slice */
    float *inner;      /* tokens_max x inner_slice */
    float *scratch;    /* of the attention */
};

/* `symmetric`: memory from shmem_malloc, encoder_symmetric_bytes() of it; it is the caller's, for
 * shmem_malloc is a call of all PEs and an encoder one of its team. tokens_max: of a batch, at
 * least one sentence's. 0, or -1 with fail_text(). */
int encoder_open(struct encoder *encoder, const struct model *model, shmem_team_t team,
                 void *symmetric, size_t tokens_max);
void encoder_close(struct encoder *encoder);
size_t encoder_symmetric_bytes(size_t hidden, size_t tokens_max, size_t n);

/* embeddings: sentences->count x hidden, complete on every member, the same bits on all.
 * A batch is as many whole sentences as fit in tokens_max. 0, or -1 with fail_text(). */
int encoder_encode(struct encoder *encoder, const struct sentences *sentences, float *embeddings);

#endif
