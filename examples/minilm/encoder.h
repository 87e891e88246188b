/* SPDX-License-Identifier: BSD-3-Clause */
/* The encoder: sentences of tokens -> unit vectors, by all members of a team together.
 *
 * A batch is its sentences' tokens one after the other: M tokens are M rows, and at most n - 1
 * empty ones at the end. Between the operators a member holds ceil(M / n) rows of all columns;
 * inside them it holds all rows of its heads' columns. So a layer is
 *
 *     x: my rows --all-gather+matmul--> q, k, v: my heads --attention--> context: my heads
 *        --matmul+reduce-scatter--> + bias + residual, norm: my rows
 *        --all-gather+matmul--> gelu: my inner columns --matmul+reduce-scatter--> ... my rows
 */
#ifndef MINILM_ENCODER_H
#define MINILM_ENCODER_H

#include "model.h"
#include "place.h"
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
    const struct place *place;
    size_t me, n;
    size_t tokens_max, rows_max; /* of a batch; mine */
    float *host_x;               /* my rows x hidden, in symmetric memory */
    /* At the place: */
    float *x;                   /* my rows x hidden; on the processor host_x, which peers multiply
                                   in place */
    float *y;                   /* my rows x hidden */
    float *qkv[3];              /* rows x slice each */
    float *context;             /* rows x slice */
    float *inner;               /* rows x inner_slice */
    float *weights;             /* a copy of the model's; on the processor NULL */
    const struct layer *layers; /* with the weights there */
    struct layer *moved;        /* the same, if this encoder has made them */
};

/* `symmetric`: memory from shmem_malloc, encoder_symmetric_bytes() of it; it is the caller's, for
 * shmem_malloc is a call of all PEs and an encoder one of its team. tokens_max: of a batch, at
 * least one sentence's. 0, or -1 with fail_text(). */
int encoder_open(struct encoder *encoder, const struct model *model, shmem_team_t team,
                 const struct place *place, void *symmetric, size_t tokens_max);
void encoder_close(struct encoder *encoder);
size_t encoder_symmetric_bytes(size_t hidden, size_t tokens_max, size_t n);

/* embeddings: sentences->count x hidden, complete on every member, the same bits on all.
 * A batch is as many whole sentences as fit in tokens_max. 0, or -1 with fail_text(). */
int encoder_encode(struct encoder *encoder, const struct sentences *sentences, float *embeddings);

#endif
