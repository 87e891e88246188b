/* SPDX-License-Identifier: BSD-3-Clause */
/* Random shapes of puts and gets within ELEMS elements, and a model that copies single bytes. The
 * test defines ELEMS. */
#ifndef TESTS_API_SHAPE_H
#define TESTS_API_SHAPE_H

#include <stdbool.h>
#include "api/model.h"

/* The copy that a PE makes in a round. */
struct shape {
    size_t bsize, nblocks, dest_first, source_first; /* in elements */
    ptrdiff_t dst, sst;
};

/* Returns where the first of `nblocks` blocks can begin so that all of them are within ELEMS
 * elements. */
static inline size_t place(struct random *random, size_t bsize, size_t nblocks, ptrdiff_t stride) {
    size_t span = nblocks ? (nblocks - 1) * (size_t)(stride < 0 ? -stride : stride) + bsize : 0;
    size_t lowest = random_below(random, ELEMS - span + 1);
    return stride < 0 && nblocks ? lowest + (nblocks - 1) * (size_t)-stride : lowest;
}

static inline ptrdiff_t signed_stride(struct random *random, size_t at_least) {
    ptrdiff_t stride = (ptrdiff_t)(at_least + random_below(random, 3));
    return random_below(random, 3) == 0 ? -stride : stride;
}

/* Blocks do not overlap at the destination; at the source they may. */
static inline struct shape random_shape(struct random *random, bool strided, bool blocks) {
    struct shape shape = {.bsize = blocks ? random_below(random, 4) : 1, .dst = 1, .sst = 1};
    shape.nblocks = random_below(random, strided ? 8 : ELEMS + 1);
    if (strided) {
        shape.dst = signed_stride(random, blocks && shape.bsize ? shape.bsize : 1);
        shape.sst = signed_stride(random, 0);
    }
    shape.dest_first = place(random, shape.bsize, shape.nblocks, shape.dst);
    shape.source_first = place(random, shape.bsize, shape.nblocks, shape.sst);
    return shape;
}

static inline void model_copy(unsigned char *dest, const unsigned char *source,
                              const struct shape *shape, size_t bytes) {
    for (size_t block = 0; block < shape->nblocks; block++)
        for (size_t byte = 0; byte < shape->bsize * bytes; byte++) {
            ptrdiff_t to = (ptrdiff_t)shape->dest_first + (ptrdiff_t)block * shape->dst;
            ptrdiff_t from = (ptrdiff_t)shape->source_first + (ptrdiff_t)block * shape->sst;
            dest[to * (ptrdiff_t)bytes + (ptrdiff_t)byte] =
                source[from * (ptrdiff_t)bytes + (ptrdiff_t)byte];
        }
}

#endif
