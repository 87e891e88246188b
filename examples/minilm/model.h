/* SPDX-License-Identifier: BSD-3-Clause */
/* The weights of a BERT encoder that one PE of a team of n needs: all embeddings, and for every
 * layer the columns of its heads and of its share of the feed-forward network.
 *
 *     q, k, v: hidden x hidden/n    out:  hidden/n x hidden
 *     up:      hidden x inner/n     down: inner/n x hidden      (PyTorch stores the transposes) */
#ifndef MINILM_MODEL_H
#define MINILM_MODEL_H

#include "kernels.h"
#include "safetensors.h"
#include <weft.h>

enum { QUERY, KEY, VALUE };

struct layer {
    weft_matrix qkv[3], out, up, down;
    const float *qkv_bias[3], *out_bias, *up_bias, *down_bias;
    struct norm attention_norm, output_norm;
};

struct model {
    size_t hidden, inner, heads, layers_count, positions, vocabulary; /* of the whole model */
    size_t max_tokens;         /* of a sentence, [CLS] and [SEP] counted */
    double epsilon;            /* of the layer norms */
    size_t slice, inner_slice; /* columns of this PE: hidden / n, inner / n */
    size_t heads_here;

    char weights_path[4096];
    struct safetensors weights;
    const struct tensor *words; /* vocabulary x hidden, read row by row from the file */
    const float *position_rows; /* positions x hidden, token type 0 already added */
    struct norm embedding_norm;
    struct layer *layers;

    float *storage; /* all of the numbers above, in one block */
    size_t storage_nelems, storage_used;
};

/* Reads the model in `directory` for member `me` of `n`. Returns 0, or -1 with fail_text(). */
int model_open(struct model *model, const char *directory, size_t me, size_t n);
void model_close(struct model *model);

#endif
