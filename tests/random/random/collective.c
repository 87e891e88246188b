/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective.h"
#include <string.h>

static enum coll_kind kind_of(const struct op *op) {
    static const enum coll_kind active_kinds[] = {
        [ACTIVE_BROADCAST] = TO_ALL_OF_ROOT,   [ACTIVE_COLLECT] = ALL_DIFFERENT,
        [ACTIVE_FCOLLECT] = ALL_SAME,          [ACTIVE_ALLTOALL] = EXCHANGE_BLOCKS,
        [ACTIVE_ALLTOALLS] = EXCHANGE_STRIDED, [ACTIVE_TO_ALL] = REDUCTION};
    switch (op->class) {
    case BROADCAST:
        return TO_ALL_OF_ROOT;
    case COLLECT:
        return op->verb ? ALL_SAME : ALL_DIFFERENT;
    case ALLTOALL:
        return op->verb ? EXCHANGE_STRIDED : EXCHANGE_BLOCKS;
    case REDUCE:
        return REDUCTION;
    case SCAN:
        return op->verb ? EXCLUSIVE : INCLUSIVE;
    default:
        return active_kinds[op->verb];
    }
}

struct collective coll_of(const struct op *op) {
    struct collective coll = {.kind = kind_of(op), .active = op->class == ACTIVE_SET};
    bool folds = coll.kind >= REDUCTION;
    const struct team *team = &teams[op->team];
    coll.npes = coll.active ? op->size : team->npes;
    for (int i = 0; i < coll.npes; i++)
        coll.pe[i] = coll.active ? (uint8_t)(op->start + (i << op->stride)) : team->pe[i];
    if (folds)
        coll.fold = coll.active           ? &to_all_routines[op->row]
                    : op->class == REDUCE ? &reduce_routines[op->row]
                                          : &scan_routines[op->row];
    coll.bytes = folds         ? coll.fold->bytes
                 : coll.active ? active_routines[op->row].bytes
                               : move_routines[op->row].bytes;
    return coll;
}

uint32_t coll_dest_bytes(const struct op *op, const struct collective *coll, int member) {
    uint32_t sum = 0, all = (uint32_t)coll->npes * op->bsize;
    switch (coll->kind) {
    case TO_ALL_OF_ROOT:
        return coll->active && member == op->root ? 0 : op->bsize * coll->bytes;
    case ALL_DIFFERENT:
        for (int i = 0; i < coll->npes; i++)
            sum += op->counts[i];
        return sum * coll->bytes;
    case ALL_SAME:
    case EXCHANGE_BLOCKS:
        return all * coll->bytes;
    case EXCHANGE_STRIDED:
        return span(all, 1, op->dst, coll->bytes);
    default:
        return op->bsize * coll->bytes;
    }
}

uint32_t coll_source_bytes(const struct op *op, const struct collective *coll, int member) {
    uint32_t all = (uint32_t)coll->npes * op->bsize;
    switch (coll->kind) {
    case TO_ALL_OF_ROOT:
        return member == op->root ? op->bsize * coll->bytes : 0;
    case ALL_DIFFERENT:
        return op->counts[member] * coll->bytes;
    case EXCHANGE_BLOCKS:
        return all * coll->bytes;
    case EXCHANGE_STRIDED:
        return span(all, 1, op->sst, coll->bytes);
    default:
        return op->bsize * coll->bytes;
    }
}

void coll_operands(const struct op *op, const struct collective *coll, int member, void *source) {
    struct random random = random_of(op->value, member);
    if (coll->fold && coll->fold->operand)
        for (uint32_t i = 0; i < op->bsize; i++)
            coll->fold->operand((char *)source + i * coll->bytes, random_next(&random));
}

const unsigned char *coll_reuse(const struct op *op, int member) {
    return pool + (op->value + (uint64_t)member * 64) % (POOL_BYTES - COLL_BYTES_MAX);
}

void coll_clear_padding(const struct collective *coll, void *elements, uint32_t nelems) {
    uint32_t value_bytes = coll->fold ? coll->fold->value_bytes : coll->bytes;
    if (value_bytes < coll->bytes)
        for (uint32_t i = 0; i < nelems; i++)
            memset((char *)elements + i * coll->bytes + value_bytes, 0, coll->bytes - value_bytes);
}
