/* SPDX-License-Identifier: BSD-3-Clause */
/* A collective operation, for the files that draw, model and execute it. On every member dest is at
 * op->remote and source at op->local. */
#ifndef TESTS_RANDOM_COLLECTIVE_H
#define TESTS_RANDOM_COLLECTIVE_H

#include "coll_routines.h"
#include "draw.h"

enum { PSYNCS = 16, TO_ALL_NELEMS_MAX = 256, COLL_BYTES_MAX = 20 << 10, LOG_STRIDES = 3 };

enum coll_kind {
    TO_ALL_OF_ROOT,
    ALL_DIFFERENT,
    ALL_SAME,
    EXCHANGE_BLOCKS,
    EXCHANGE_STRIDED,
    REDUCTION,
    INCLUSIVE,
    EXCLUSIVE
};

struct collective {
    enum coll_kind kind;
    bool active; /* of an active set: a broadcast's root gets no copy */
    int npes;
    uint8_t pe[PES_MAX];
    uint32_t bytes;                   /* of an element */
    const struct fold_routines *fold; /* or NULL */
};

struct collective coll_of(const struct op *op);

/* Return how many bytes of dest are written, and of source are read, on a member, gaps included. */
uint32_t coll_dest_bytes(const struct op *op, const struct collective *coll, int member);
uint32_t coll_source_bytes(const struct op *op, const struct collective *coll, int member);

/* Makes the operands of a reduction whose type does not accept all bits. */
void coll_operands(const struct op *op, const struct collective *coll, int member, void *source);

/* Returns the bytes that overwrite a member's source when the collective has returned. */
const unsigned char *coll_reuse(const struct op *op, int member);

/* Clears the padding of elements, which must be zero. */
void coll_clear_padding(const struct collective *coll, void *elements, uint32_t nelems);

/* The index of an active set's barriers; each index has its own pSync. */
static inline int active_index(const struct op *op) {
    return (op->start * LOG_STRIDES + op->stride) * (PES_MAX + 1) + op->size;
}
enum { ACTIVE_SETS = PES_MAX * LOG_STRIDES * (PES_MAX + 1) };

#endif
