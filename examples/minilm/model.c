/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads config.json, sentence_bert_config.json and model.safetensors, and splits the weights. One
 * block holds all floats: its size follows from the configuration, so it is allocated once. */
#include "model.h"
#include "error.h"
#include "file.h"
#include "json.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One value of a JSON file that the model needs. */
struct setting {
    const char *key;
    size_t *value;
};

/* Reads the settings of a file's top-level object, and "layer_norm_eps" if epsilon is not NULL;
 * each must exist. */
static int read_settings(const char *path, const struct setting *settings, size_t count,
                         double *epsilon) {
    size_t bytes, found = 0, expected = count + (epsilon != NULL);
    char key[128], *text = file_read(path, &bytes);
    if (!text)
        return -1;
    struct json json = json_over(text, bytes);
    for (json_open(&json, '{'); json_key(&json, key, sizeof key);) {
        size_t i = 0;
        uint64_t value = 0;
        while (i < count && strcmp(key, settings[i].key))
            i++;
        if (i < count) {
            found += json_u64(&json, &value);
            *settings[i].value = value;
        } else if (epsilon && !strcmp(key, "layer_norm_eps")) {
            found += json_number(&json, epsilon);
        } else {
            json_skip(&json);
        }
    }
    int error = json_finish(&json) ? fail("%s: byte %td: %s", path, json.at - text, json.error)
                : found != expected
                    ? fail("%s: %zu of %zu settings found: not a BERT model", path, found, expected)
                    : 0;
    free(text);
    return error;
}

static int read_config(struct model *model, const char *directory) {
    char path[4096];
    const struct setting architecture[] = {{"hidden_size", &model->hidden},
                                           {"intermediate_size", &model->inner},
                                           {"num_attention_heads", &model->heads},
                                           {"num_hidden_layers", &model->layers_count},
                                           {"max_position_embeddings", &model->positions},
                                           {"vocab_size", &model->vocabulary}};
    const struct setting sentence[] = {{"max_seq_length", &model->max_tokens}};
    snprintf(path, sizeof path, "%s/config.json", directory);
    if (read_settings(path, architecture, sizeof architecture / sizeof *architecture,
                      &model->epsilon))
        return -1;
    snprintf(path, sizeof path, "%s/sentence_bert_config.json", directory);
    return read_settings(path, sentence, 1, NULL);
}

/* Sizes larger than any BERT's mean a damaged file; the limits prevent overflow in all products. */
static int check_config(const struct model *model, const char *directory) {
    const size_t limit = 1 << 20;
    if (!model->hidden || model->hidden > limit || !model->inner || model->inner > limit ||
        !model->heads || model->hidden % model->heads || !model->layers_count ||
        model->layers_count > 1000 || model->positions > limit || !model->vocabulary ||
        model->max_tokens < 3 || model->max_tokens > model->positions)
        return fail("%s: config.json: sizes that fit no BERT model", directory);
    if (model->hidden / model->heads % LANES || model->inner % LANES)
        return fail("%s: config.json: heads of %zu and a feed-forward network of %zu columns; "
                    "multiples of %d are supported",
                    directory, model->hidden / model->heads, model->inner, LANES);
    return 0;
}

static bool divides(const struct model *model, size_t n) {
    return model->heads % n == 0 && model->inner % n == 0 && model->inner / n % LANES == 0;
}

static int split(struct model *model, size_t n) {
    char counts[128] = "";
    if (divides(model, n)) {
        model->slice = model->hidden / n;
        model->inner_slice = model->inner / n;
        model->heads_here = model->heads / n;
        return 0;
    }
    for (size_t i = 1; i <= model->heads; i++)
        if (divides(model, i) && strlen(counts) < sizeof counts - 16)
            sprintf(counts + strlen(counts), "%s%zu", i == 1 ? "" : ", ", i);
    return fail("%zu PEs cannot share %zu heads and %zu columns evenly; these can: %s", n,
                model->heads, model->inner, counts);
}

/* Returns the number of floats in the block. */
static size_t storage_needed(const struct model *model) {
    size_t h = model->hidden, s = model->slice, i = model->inner_slice;
    size_t layer = 4 * h * s + 2 * h * i + 3 * s + i + 6 * h;
    return (model->positions + 1) * h + 2 * h + model->layers_count * layer;
}

/* All parts are multiples of LANES floats, so that every part is aligned. */
static float *take(struct model *model, size_t nelems) {
    float *block = model->storage + model->storage_used;
    model->storage_used += nelems;
    return block;
}

static const struct tensor *find(const struct model *model, size_t rows, size_t cols,
                                 const char *format, ...) {
    char name[TENSOR_NAME_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    return safetensors_find(&model->weights, name, rows, cols);
}

/* Elements first to first + nelems of a vector of `whole`. NULL with fail_text(). */
static const float *load_vector(struct model *model, const char *prefix, const char *name,
                                size_t whole, size_t first, size_t nelems) {
    const struct tensor *tensor = find(model, whole, 0, "%s%s", prefix, name);
    if (!tensor)
        return NULL;
    float *vector = take(model, nelems);
    safetensors_read(&model->weights, tensor, first, nelems, vector);
    return vector;
}

static int load_norm(struct model *model, struct norm *norm, const char *prefix, const char *name) {
    char path[TENSOR_NAME_MAX];
    snprintf(path, sizeof path, "%s%s.LayerNorm.", prefix, name);
    norm->gain = load_vector(model, path, "weight", model->hidden, 0, model->hidden);
    norm->shift = load_vector(model, path, "bias", model->hidden, 0, model->hidden);
    norm->epsilon = (float)model->epsilon;
    return norm->gain && norm->shift ? 0 : -1;
}

/* A rectangle of a weight, which is stored as outputs x inputs. */
struct cut {
    size_t outputs, inputs; /* of the whole weight */
    size_t output, input;   /* where the rectangle starts */
    size_t cols, rows;      /* outputs and inputs of the rectangle */
};

/* matrix(i, o) = weight(output + o, input + i) */
static int load_matrix(struct model *model, weft_matrix *matrix, const char *prefix,
                       const char *name, struct cut cut) {
    const struct tensor *tensor = find(model, cut.outputs, cut.inputs, "%s%s.weight", prefix, name);
    float *row = tensor ? malloc(cut.rows * sizeof *row) : NULL;
    if (!row)
        return tensor ? fail("no memory for a row of %s%s", prefix, name) : -1;
    float *data = take(model, cut.rows * cut.cols);
    for (size_t o = 0; o < cut.cols; o++) {
        size_t first = (cut.output + o) * cut.inputs + cut.input;
        safetensors_read(&model->weights, tensor, first, cut.rows, row);
        for (size_t i = 0; i < cut.rows; i++)
            data[i * cut.cols + o] = row[i];
    }
    free(row);
    *matrix = (weft_matrix){data, cut.rows, cut.cols, cut.cols, WEFT_F32, false};
    return 0;
}

static int load_attention(struct model *model, struct layer *layer, const char *prefix, size_t me) {
    static const char *const names[] = {"attention.self.query", "attention.self.key",
                                        "attention.self.value"};
    size_t h = model->hidden, s = model->slice, first = me * s;
    for (int i = QUERY; i <= VALUE; i++) {
        char bias[64];
        snprintf(bias, sizeof bias, "%s.bias", names[i]);
        layer->qkv_bias[i] = load_vector(model, prefix, bias, h, first, s);
        if (!layer->qkv_bias[i] || load_matrix(model, &layer->qkv[i], prefix, names[i],
                                               (struct cut){h, h, first, 0, s, h}))
            return -1;
    }
    layer->out_bias = load_vector(model, prefix, "attention.output.dense.bias", h, 0, h);
    if (!layer->out_bias || load_norm(model, &layer->attention_norm, prefix, "attention.output"))
        return -1;
    return load_matrix(model, &layer->out, prefix, "attention.output.dense",
                       (struct cut){h, h, 0, first, h, s});
}

static int load_feed_forward(struct model *model, struct layer *layer, const char *prefix,
                             size_t me) {
    size_t h = model->hidden, inner = model->inner, s = model->inner_slice, first = me * s;
    layer->up_bias = load_vector(model, prefix, "intermediate.dense.bias", inner, first, s);
    layer->down_bias = load_vector(model, prefix, "output.dense.bias", h, 0, h);
    if (!layer->up_bias || !layer->down_bias ||
        load_norm(model, &layer->output_norm, prefix, "output"))
        return -1;
    if (load_matrix(model, &layer->up, prefix, "intermediate.dense",
                    (struct cut){inner, h, first, 0, s, h}))
        return -1;
    return load_matrix(model, &layer->down, prefix, "output.dense",
                       (struct cut){h, inner, 0, first, h, s});
}

static int load_embeddings(struct model *model) {
    size_t h = model->hidden;
    const struct tensor *positions =
        find(model, model->positions, h, "embeddings.position_embeddings.weight");
    const struct tensor *types = find(model, 0, h, "embeddings.token_type_embeddings.weight");
    model->words = find(model, model->vocabulary, h, "embeddings.word_embeddings.weight");
    if (!positions || !types || !model->words)
        return -1;
    if (types->nelems < h)
        return fail("%s: tensor %s: has no row", model->weights_path, types->name);
    float *rows = take(model, positions->nelems), *type = take(model, h);
    safetensors_read(&model->weights, positions, 0, positions->nelems, rows);
    safetensors_read(&model->weights, types, 0, h, type);
    for (size_t i = 0; i < model->positions; i++)
        add_row(rows + i * h, 1, h, type);
    model->position_rows = rows;
    return load_norm(model, &model->embedding_norm, "", "embeddings");
}

static int load_weights(struct model *model, const char *directory, size_t me) {
    snprintf(model->weights_path, sizeof model->weights_path, "%s/model.safetensors", directory);
    if (safetensors_open(&model->weights, model->weights_path))
        return -1;
    model->storage_nelems = storage_needed(model);
    model->storage = aligned_alloc(64, model->storage_nelems * sizeof(float));
    model->layers = calloc(model->layers_count, sizeof *model->layers);
    if (!model->storage || !model->layers)
        return fail("no memory for %zu weights", model->storage_nelems);
    if (load_embeddings(model))
        return -1;
    for (size_t i = 0; i < model->layers_count; i++) {
        char prefix[48];
        snprintf(prefix, sizeof prefix, "encoder.layer.%zu.", i);
        if (load_attention(model, &model->layers[i], prefix, me) ||
            load_feed_forward(model, &model->layers[i], prefix, me))
            return -1;
    }
    return 0;
}

int model_open(struct model *model, const char *directory, size_t me, size_t n) {
    *model = (struct model){0};
    if (read_config(model, directory) == 0 && check_config(model, directory) == 0 &&
        split(model, n) == 0 && load_weights(model, directory, me) == 0)
        return 0;
    model_close(model);
    return -1;
}

void model_close(struct model *model) {
    safetensors_close(&model->weights);
    free(model->storage);
    free(model->layers);
    *model = (struct model){0};
}
