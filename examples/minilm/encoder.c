/* SPDX-License-Identifier: BSD-3-Clause */
/* A BERT encoder with four operators in each layer. Between two operators each member only works on
 * its own rows or columns. */
#include "encoder.h"
#include "error.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t ceil_div(size_t a, size_t b) {
    return (a + b - 1) / b;
}

size_t encoder_symmetric_bytes(size_t hidden, size_t tokens_max, size_t n) {
    return ceil_div(tokens_max, n) * hidden * sizeof(float);
}

static float *floats(size_t nelems) {
    return aligned_alloc(64, ceil_div(nelems * sizeof(float), 64) * 64);
}

int encoder_open(struct encoder *encoder, const struct model *model, shmem_team_t team,
                 void *symmetric, size_t tokens_max) {
    size_t n = (size_t)shmem_team_n_pes(team);
    *encoder = (struct encoder){.model = model,
                                .team = team,
                                .me = (size_t)shmem_team_my_pe(team),
                                .n = n,
                                .tokens_max = tokens_max,
                                .x = symmetric};
    encoder->y = floats(ceil_div(tokens_max, n) * model->hidden);
    for (int i = QUERY; i <= VALUE; i++)
        encoder->qkv[i] = floats(tokens_max * model->slice);
    encoder->context = floats(tokens_max * model->slice);
    encoder->inner = floats(tokens_max * model->inner_slice);
    encoder->scratch = floats(attention_scratch(model->max_tokens, model->hidden / model->heads));
    if (encoder->y && encoder->qkv[QUERY] && encoder->qkv[KEY] && encoder->qkv[VALUE] &&
        encoder->context && encoder->inner && encoder->scratch)
        return 0;
    encoder_close(encoder);
    return fail("no memory for batches of %zu tokens", tokens_max);
}

void encoder_close(struct encoder *encoder) {
    free(encoder->y);
    for (int i = QUERY; i <= VALUE; i++)
        free(encoder->qkv[i]);
    free(encoder->context);
    free(encoder->inner);
    free(encoder->scratch);
    *encoder = (struct encoder){0};
}

/* One batch under way. Rows are counted from the batch's first token. */
struct batch {
    struct sentences sentences;
    size_t tokens;      /* M */
    size_t first, rows; /* mine */
};

static struct batch batch_of(const struct encoder *encoder, struct sentences sentences) {
    size_t tokens = sentences.starts[sentences.count] - sentences.starts[0];
    size_t share = ceil_div(tokens, encoder->n), first = encoder->me * share;
    first = first < tokens ? first : tokens;
    size_t left = tokens - first;
    return (struct batch){sentences, tokens, first, left < share ? left : share};
}

struct span {
    size_t begin, end;
};

/* Returns this member's part of sentence s, as rows of the batch; it may be empty. */
static struct span my_rows(const struct batch *batch, size_t s) {
    const size_t *starts = batch->sentences.starts;
    size_t begin = starts[s] - starts[0], end = starts[s + 1] - starts[0];
    size_t last = batch->first + batch->rows;
    return (struct span){begin > batch->first ? begin : batch->first, end < last ? end : last};
}

/* x = norm(word + position + type) of my rows. */
static void embed(struct encoder *encoder, const struct batch *batch) {
    const struct model *model = encoder->model;
    const size_t *starts = batch->sentences.starts, hidden = model->hidden;
    for (size_t s = 0; s < batch->sentences.count; s++) {
        struct span mine = my_rows(batch, s);
        for (size_t row = mine.begin; row < mine.end; row++) {
            size_t at = starts[0] + row, token = (size_t)batch->sentences.tokens[at];
            float *x = encoder->x + (row - batch->first) * hidden;
            safetensors_read(&model->weights, model->words, token * hidden, hidden, x);
            add_row(x, 1, hidden, model->position_rows + (at - starts[s]) * hidden);
        }
    }
    add_and_norm(encoder->x, NULL, NULL, batch->rows, hidden, &model->embedding_norm);
}

static weft_matrix matrix(float *data, size_t rows, size_t cols) {
    return (weft_matrix){data, rows, cols, cols, WEFT_F32, false};
}

static int operator_failed(const char *what) {
    return fail("%s: %s", what, weft_last_error());
}

/* context = attention of my heads, sentence by sentence. */
static void attend(struct encoder *encoder, const struct batch *batch, const struct layer *layer) {
    const struct model *model = encoder->model;
    const size_t *starts = batch->sentences.starts, width = model->hidden / model->heads;
    for (int i = QUERY; i <= VALUE; i++)
        add_row(encoder->qkv[i], batch->tokens, model->slice, layer->qkv_bias[i]);
    for (size_t s = 0; s < batch->sentences.count; s++)
        for (size_t head = 0; head < model->heads_here; head++) {
            size_t at = (starts[s] - starts[0]) * model->slice + head * width;
            attention(encoder->qkv[QUERY] + at, encoder->qkv[KEY] + at, encoder->qkv[VALUE] + at,
                      encoder->context + at, starts[s + 1] - starts[s], width, model->slice,
                      encoder->scratch);
        }
}

static int attention_block(struct encoder *encoder, const struct batch *batch,
                           const struct layer *layer) {
    size_t hidden = encoder->model->hidden, slice = encoder->model->slice;
    weft_matrix x = matrix(encoder->x, batch->rows, hidden), qkv[3];
    weft_matrix context = matrix(encoder->context, batch->tokens, slice);
    weft_matrix y = matrix(encoder->y, batch->rows, hidden);
    for (int i = QUERY; i <= VALUE; i++)
        qkv[i] = matrix(encoder->qkv[i], batch->tokens, slice);
    if (weft_all_gather_matmul(encoder->team, &x, layer->qkv, 3, qkv, NULL, WEFT_STREAM_HOST))
        return operator_failed("queries, keys and values");
    attend(encoder, batch, layer);
    if (weft_matmul_reduce_scatter(encoder->team, &context, &layer->out, WEFT_SUM, &y,
                                   WEFT_STREAM_HOST))
        return operator_failed("attention's output");
    add_and_norm(encoder->x, encoder->y, layer->out_bias, batch->rows, hidden,
                 &layer->attention_norm);
    return 0;
}

static int feed_forward_block(struct encoder *encoder, const struct batch *batch,
                              const struct layer *layer) {
    size_t hidden = encoder->model->hidden, slice = encoder->model->inner_slice;
    weft_matrix x = matrix(encoder->x, batch->rows, hidden);
    weft_matrix inner = matrix(encoder->inner, batch->tokens, slice);
    weft_matrix y = matrix(encoder->y, batch->rows, hidden);
    if (weft_all_gather_matmul(encoder->team, &x, &layer->up, 1, &inner, NULL, WEFT_STREAM_HOST))
        return operator_failed("feed-forward, up");
    add_row_gelu(encoder->inner, batch->tokens, slice, layer->up_bias);
    if (weft_matmul_reduce_scatter(encoder->team, &inner, &layer->down, WEFT_SUM, &y,
                                   WEFT_STREAM_HOST))
        return operator_failed("feed-forward, down");
    add_and_norm(encoder->x, encoder->y, layer->down_bias, batch->rows, hidden,
                 &layer->output_norm);
    return 0;
}

/* embeddings = the mean of each sentence's rows, scaled to length 1. The scaling removes the mean's
 * divisor: a sum and a mean point in the same direction. */
static int pool(struct encoder *encoder, const struct batch *batch, float *embeddings) {
    size_t hidden = encoder->model->hidden, nelems = batch->sentences.count * hidden;
    memset(embeddings, 0, nelems * sizeof *embeddings);
    for (size_t s = 0; s < batch->sentences.count; s++) {
        struct span mine = my_rows(batch, s);
        for (size_t row = mine.begin; row < mine.end; row++)
            add_row(embeddings + s * hidden, 1, hidden, encoder->x + (row - batch->first) * hidden);
    }
    if (weft_all_reduce(encoder->team, embeddings, embeddings, nelems, WEFT_F32, WEFT_SUM,
                        WEFT_STREAM_HOST))
        return operator_failed("pooling");
    for (size_t s = 0; s < batch->sentences.count; s++) {
        float *row = embeddings + s * hidden, length = sqrtf(dot(row, row, hidden));
        for (size_t j = 0; j < hidden; j++)
            row[j] /= length;
    }
    return 0;
}

static int encode_batch(struct encoder *encoder, struct sentences sentences, float *embeddings) {
    struct batch batch = batch_of(encoder, sentences);
    embed(encoder, &batch);
    for (size_t i = 0; i < encoder->model->layers_count; i++)
        if (attention_block(encoder, &batch, &encoder->model->layers[i]) ||
            feed_forward_block(encoder, &batch, &encoder->model->layers[i]))
            return -1;
    return pool(encoder, &batch, embeddings);
}

int encoder_encode(struct encoder *encoder, const struct sentences *sentences, float *embeddings) {
    const size_t *starts = sentences->starts;
    for (size_t first = 0, last; first < sentences->count; first = last) {
        for (last = first + 1; last < sentences->count; last++)
            if (starts[last + 1] - starts[first] > encoder->tokens_max)
                break;
        struct sentences part = {sentences->tokens, starts + first, last - first};
        if (encode_batch(encoder, part, embeddings + first * encoder->model->hidden))
            return -1;
    }
    return 0;
}
