/* SPDX-License-Identifier: BSD-3-Clause */
#include "place.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *failure;

static float *floats(size_t nelems) {
    return aligned_alloc(64, (nelems * sizeof(float) + 63) / 64 * 64);
}

static void release(float *data) {
    free(data);
}

static void copy(float *dest, const float *source, size_t nelems) {
    if (dest != source)
        memcpy(dest, source, nelems * sizeof *dest);
}

static void attend(const struct heads *heads) {
    size_t longest = 0;
    for (size_t s = 0; s < heads->sentences; s++) {
        size_t tokens = heads->starts[s + 1] - heads->starts[s];
        longest = tokens > longest ? tokens : longest;
    }
    float *scratch = floats(attention_scratch(longest, heads->width));
    if (!scratch) {
        failure = "no memory for attention";
        return;
    }
    for (size_t s = 0; s < heads->sentences; s++)
        for (size_t head = 0; head < heads->count; head++) {
            size_t at = (heads->starts[s] - heads->starts[0]) * heads->ld + head * heads->width;
            attention(heads->q + at, heads->k + at, heads->v + at, heads->context + at,
                      heads->starts[s + 1] - heads->starts[s], heads->width, heads->ld, scratch);
        }
    free(scratch);
}

static const char *error(void) {
    return failure;
}

const struct place processor = {.tokens_max = SIZE_MAX,
                                .stream = WEFT_STREAM_HOST,
                                .floats = floats,
                                .release = release,
                                .write = copy,
                                .read = copy,
                                .add_row = add_row,
                                .add_row_gelu = add_row_gelu,
                                .add_and_norm = add_and_norm,
                                .attend = attend,
                                .error = error};

/* The program with gpu.cu has another one. */
__attribute__((weak)) const struct place *gpu_place(void) {
    return NULL;
}
