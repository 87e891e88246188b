/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives as the specification defines them. */
#include <string.h>
#include "collective.h"
#include "model.h"

static unsigned char total[COLL_BYTES_MAX], operand[COLL_BYTES_MAX];

static unsigned char *dest_of(const struct op *op, const struct collective *coll, int member) {
    return model[coll->pe[member]] + op->remote;
}

static unsigned char *source_of(const struct op *op, const struct collective *coll, int member) {
    return model[coll->pe[member]] + op->local;
}

static void apply_broadcast(const struct op *op, const struct collective *coll) {
    for (int member = 0; member < coll->npes; member++)
        memcpy(dest_of(op, coll, member), source_of(op, coll, op->root),
               coll_dest_bytes(op, coll, member));
}

static void apply_collect(const struct op *op, const struct collective *coll) {
    uint32_t at = 0;
    for (int from = 0; from < coll->npes; from++) {
        uint32_t bytes = coll_source_bytes(op, coll, from);
        for (int member = 0; member < coll->npes; member++)
            memcpy(dest_of(op, coll, member) + at, source_of(op, coll, from), bytes);
        at += bytes;
    }
}

static void apply_alltoall(const struct op *op, const struct collective *coll) {
    for (int member = 0; member < coll->npes; member++)
        for (int from = 0; from < coll->npes; from++)
            for (uint32_t i = 0; i < op->bsize; i++)
                memcpy(dest_of(op, coll, member) +
                           ((uint32_t)from * op->bsize + i) * op->dst * coll->bytes,
                       source_of(op, coll, from) +
                           ((uint32_t)member * op->bsize + i) * op->sst * coll->bytes,
                       coll->bytes);
}

static void apply_reduce(const struct op *op, const struct collective *coll) {
    uint32_t bytes = op->bsize * coll->bytes;
    memcpy(total, source_of(op, coll, 0), bytes);
    for (int from = 1; from < coll->npes; from++)
        coll->fold->fold(total, source_of(op, coll, from), op->bsize);
    coll_clear_padding(coll, total, op->bsize);
    for (int member = 0; member < coll->npes; member++)
        memcpy(dest_of(op, coll, member), total, bytes);
}

static void apply_scan(const struct op *op, const struct collective *coll) {
    uint32_t bytes = op->bsize * coll->bytes;
    memset(total, 0, bytes);
    for (int member = 0; member < coll->npes; member++) {
        memcpy(operand, source_of(op, coll, member), bytes);
        if (coll->kind == EXCLUSIVE)
            memcpy(dest_of(op, coll, member), total, bytes);
        coll->fold->fold(total, operand, op->bsize);
        coll_clear_padding(coll, total, op->bsize);
        if (coll->kind == INCLUSIVE)
            memcpy(dest_of(op, coll, member), total, bytes);
    }
}

void model_collective(const struct op *op) {
    if (op->class == ACTIVE_SET && op->verb < ACTIVE_BROADCAST)
        return;
    struct collective coll = coll_of(op);
    for (int member = 0; member < coll.npes; member++)
        coll_operands(op, &coll, member, source_of(op, &coll, member));
    switch (coll.kind) {
    case TO_ALL_OF_ROOT:
        apply_broadcast(op, &coll);
        break;
    case ALL_DIFFERENT:
    case ALL_SAME:
        apply_collect(op, &coll);
        break;
    case EXCHANGE_BLOCKS:
    case EXCHANGE_STRIDED:
        apply_alltoall(op, &coll);
        break;
    case REDUCTION:
        apply_reduce(op, &coll);
        break;
    default:
        apply_scan(op, &coll);
    }
    for (int member = 0; op->reuse && member < coll.npes; member++)
        memcpy(source_of(op, &coll, member), coll_reuse(op, member),
               coll_source_bytes(op, &coll, member));
}
