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

/* Returns the copy of a weight at the encoder's place. */
static float *copied(const struct encoder *encoder, const float *weight) {
    return encoder->weights + (weight - encoder->model->storage);
}

static void layer_move(const struct encoder *encoder, struct layer *layer) {
    weft_matrix *matrices[] = {&layer->qkv[QUERY], &layer->qkv[KEY], &layer->qkv[VALUE],
                               &layer->out,        &layer->up,       &layer->down};
    const float **vectors[] = {&layer->qkv_bias[QUERY],
                               &layer->qkv_bias[KEY],
                               &layer->qkv_bias[VALUE],
                               &layer->out_bias,
                               &layer->up_bias,
                               &layer->down_bias,
                               &layer->attention_norm.gain,
                               &layer->attention_norm.shift,
                               &layer->output_norm.gain,
                               &layer->output_norm.shift};
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        matrices[i]->data = copied(encoder, matrices[i]->data);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = copied(encoder, *vectors[i]);
}

/* Copies the weights to the GPU. */
static bool weights_move(struct encoder *encoder) {
    const struct model *model = encoder->model;
    encoder->weights = encoder->place->floats(model->storage_nelems);
    encoder->moved = malloc(model->layers_count * sizeof *encoder->moved);
    if (!encoder->weights || !encoder->moved)
        return false;
    encoder->place->write(encoder->weights, model->storage, model->storage_nelems);
    memcpy(encoder->moved, model->layers, model->layers_count * sizeof *encoder->moved);
    for (size_t i = 0; i < model->layers_count; i++)
        layer_move(encoder, &encoder->moved[i]);
    encoder->layers = encoder->moved;
    encoder->x = encoder->place->floats(encoder->rows_max * model->hidden);
    return encoder->x != NULL;
}

int encoder_open(struct encoder *encoder, const struct model *model, shmem_team_t team,
                 const struct place *place, void *symmetric, size_t tokens_max) {
    size_t n = (size_t)shmem_team_n_pes(team), rows_max = ceil_div(tokens_max, n);
    *encoder = (struct encoder){.model = model,
                                .team = team,
                                .place = place,
                                .layers = model->layers,
                                .me = (size_t)shmem_team_my_pe(team),
                                .n = n,
                                .tokens_max = tokens_max,
                                .rows_max = rows_max,
                                .x = place->is_gpu ? NULL : symmetric,
                                .host_x = symmetric};
    if (model->max_tokens > place->tokens_max)
        return fail("sentences of %zu tokens: the GPU takes %zu at most", model->max_tokens,
                    place->tokens_max);
    bool moved = !place->is_gpu || weights_move(encoder);
    encoder->y = place->floats(rows_max * model->hidden);
    for (int i = QUERY; i <= VALUE; i++)
        encoder->qkv[i] = place->floats(rows_max * n * model->slice);
    encoder->context = place->floats(rows_max * n * model->slice);
    encoder->inner = place->floats(rows_max * n * model->inner_slice);
    if (moved && encoder->y && encoder->qkv[QUERY] && encoder->qkv[KEY] && encoder->qkv[VALUE] &&
        encoder->context && encoder->inner)
        return 0;
    encoder_close(encoder);
    return fail("no memory for batches of %zu tokens", tokens_max);
}

void encoder_close(struct encoder *encoder) {
    const struct place *place = encoder->place;
    float *all[] = {encoder->weights,    encoder->y,
                    encoder->qkv[QUERY], encoder->qkv[KEY],
                    encoder->qkv[VALUE], encoder->context,
                    encoder->inner,      place->is_gpu ? encoder->x : NULL};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        place->release(all[i]);
    free(encoder->moved);
    *encoder = (struct encoder){0};
}

/* One batch under way. Rows are counted from the batch's first token. All members have `share`
 * rows, of which the last ones may belong to no token. */
struct batch {
    struct sentences sentences;
    size_t tokens;      /* M */
    size_t share;       /* ceil(M / n) */
    size_t first, rows; /* mine, of tokens */
};

static struct batch batch_of(const struct encoder *encoder, struct sentences sentences) {
    size_t tokens = sentences.starts[sentences.count] - sentences.starts[0];
    size_t share = ceil_div(tokens, encoder->n), first = encoder->me * share;
    first = first < tokens ? first : tokens;
    size_t left = tokens - first;
    return (struct batch){sentences, tokens, share, first, left < share ? left : share};
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
    memset(encoder->host_x, 0, batch->share * hidden * sizeof(float));
    for (size_t s = 0; s < batch->sentences.count; s++) {
        struct span mine = my_rows(batch, s);
        for (size_t row = mine.begin; row < mine.end; row++) {
            size_t at = starts[0] + row, token = (size_t)batch->sentences.tokens[at];
            float *x = encoder->host_x + (row - batch->first) * hidden;
            safetensors_read(&model->weights, model->words, token * hidden, hidden, x);
            add_row(x, 1, hidden, model->position_rows + (at - starts[s]) * hidden);
        }
    }
    add_and_norm(encoder->host_x, NULL, NULL, batch->rows, hidden, &model->embedding_norm);
    encoder->place->write(encoder->x, encoder->host_x, batch->share * hidden);
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
    for (int i = QUERY; i <= VALUE; i++)
        encoder->place->add_row(encoder->qkv[i], batch->tokens, model->slice, layer->qkv_bias[i]);
    encoder->place->attend(&(struct heads){.q = encoder->qkv[QUERY],
                                           .k = encoder->qkv[KEY],
                                           .v = encoder->qkv[VALUE],
                                           .context = encoder->context,
                                           .count = model->heads_here,
                                           .width = model->hidden / model->heads,
                                           .ld = model->slice,
                                           .starts = batch->sentences.starts,
                                           .sentences = batch->sentences.count});
}

static int attention_block(struct encoder *encoder, const struct batch *batch,
                           const struct layer *layer) {
    size_t hidden = encoder->model->hidden, slice = encoder->model->slice;
    weft_matrix x = matrix(encoder->x, batch->share, hidden), qkv[3];
    weft_matrix context = matrix(encoder->context, batch->share * encoder->n, slice);
    weft_matrix y = matrix(encoder->y, batch->share, hidden);
    for (int i = QUERY; i <= VALUE; i++)
        qkv[i] = matrix(encoder->qkv[i], batch->share * encoder->n, slice);
    if (weft_all_gather_matmul(encoder->team, &x, layer->qkv, 3, qkv, NULL, encoder->place->stream))
        return operator_failed("queries, keys and values");
    attend(encoder, batch, layer);
    if (weft_matmul_reduce_scatter(encoder->team, &context, &layer->out, WEFT_SUM, &y,
                                   encoder->place->stream))
        return operator_failed("attention's output");
    encoder->place->add_and_norm(encoder->x, encoder->y, layer->out_bias, batch->rows, hidden,
                                 &layer->attention_norm);
    return 0;
}

static int feed_forward_block(struct encoder *encoder, const struct batch *batch,
                              const struct layer *layer) {
    size_t hidden = encoder->model->hidden, slice = encoder->model->inner_slice;
    weft_matrix x = matrix(encoder->x, batch->share, hidden);
    weft_matrix inner = matrix(encoder->inner, batch->share * encoder->n, slice);
    weft_matrix y = matrix(encoder->y, batch->share, hidden);
    if (weft_all_gather_matmul(encoder->team, &x, &layer->up, 1, &inner, NULL,
                               encoder->place->stream))
        return operator_failed("feed-forward, up");
    encoder->place->add_row_gelu(encoder->inner, batch->tokens, slice, layer->up_bias);
    if (weft_matmul_reduce_scatter(encoder->team, &inner, &layer->down, WEFT_SUM, &y,
                                   encoder->place->stream))
        return operator_failed("feed-forward, down");
    encoder->place->add_and_norm(encoder->x, encoder->y, layer->down_bias, batch->rows, hidden,
                                 &layer->output_norm);
    return 0;
}

/* embeddings = the mean of each sentence's rows, scaled to length 1. The scaling removes the mean's
 * divisor: a sum and a mean point in the same direction. */
static int pool(struct encoder *encoder, const struct batch *batch, float *embeddings) {
    size_t hidden = encoder->model->hidden, nelems = batch->sentences.count * hidden;
    encoder->place->read(encoder->host_x, encoder->x, batch->rows * hidden);
    if (encoder->place->error())
        return fail("%s", encoder->place->error());
    memset(embeddings, 0, nelems * sizeof *embeddings);
    for (size_t s = 0; s < batch->sentences.count; s++) {
        struct span mine = my_rows(batch, s);
        for (size_t row = mine.begin; row < mine.end; row++)
            add_row(embeddings + s * hidden, 1, hidden,
                    encoder->host_x + (row - batch->first) * hidden);
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
        if (attention_block(encoder, &batch, &encoder->layers[i]) ||
            feed_forward_block(encoder, &batch, &encoder->layers[i]))
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
