/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "collective.h"
#include "execute.h"

enum { PWRK_BYTES = (TO_ALL_NELEMS_MAX / 2 + 1) * 16 };

static long psyncs[PSYNCS][SHMEM_SYNC_SIZE], barrier_psyncs[ACTIVE_SETS][SHMEM_BARRIER_SYNC_SIZE];
static _Alignas(16) unsigned char pwrks[PSYNCS][PWRK_BYTES];

_Static_assert(SHMEM_SYNC_VALUE == 0, "statics are ready to be a pSync");
_Static_assert(TO_ALL_NELEMS_MAX / 2 + 1 >= SHMEM_REDUCE_MIN_WRKDATA_SIZE, "pWrk is large enough");

static int call_team(const struct op *op, const struct collective *coll, size_t mine) {
    const struct move_routines *move = &move_routines[coll->fold ? 0 : op->row];
    shmem_team_t team = teams[op->team].handle;
    void *dest = memory_real(op->remote), *source = memory_real(op->local);
    switch (coll->kind) {
    case TO_ALL_OF_ROOT:
        return move->broadcast(team, dest, source, op->bsize, op->root);
    case ALL_DIFFERENT:
        return move->collect(team, dest, source, mine);
    case ALL_SAME:
        return move->fcollect(team, dest, source, op->bsize);
    case EXCHANGE_BLOCKS:
        return move->alltoall(team, dest, source, op->bsize);
    case EXCHANGE_STRIDED:
        return move->alltoalls(team, dest, source, op->dst, op->sst, op->bsize);
    case REDUCTION:
        return coll->fold->reduce(team, dest, source, op->bsize);
    case INCLUSIVE:
        return coll->fold->inscan(team, dest, source, op->bsize);
    default:
        return coll->fold->exscan(team, dest, source, op->bsize);
    }
}

static void call_active(const struct op *op, const struct collective *coll, size_t mine) {
    const struct active_routines *move = &active_routines[coll->fold ? 0 : op->row];
    struct active_set set = {op->start, op->stride, op->size, psyncs[op->slot]};
    void *dest = memory_real(op->remote), *source = memory_real(op->local);
    switch (coll->kind) {
    case TO_ALL_OF_ROOT:
        move->broadcast(dest, source, op->bsize, op->root, &set);
        break;
    case ALL_DIFFERENT:
        move->collect(dest, source, mine, &set);
        break;
    case ALL_SAME:
        move->fcollect(dest, source, op->bsize, &set);
        break;
    case EXCHANGE_BLOCKS:
        move->alltoall(dest, source, op->bsize, &set);
        break;
    case EXCHANGE_STRIDED:
        move->alltoalls(dest, source, op->dst, op->sst, op->bsize, &set);
        break;
    default:
        coll->fold->to_all(dest, source, (int)op->bsize, &set, pwrks[op->slot]);
    }
}

static int own_member(const struct collective *coll) {
    int member = 0;
    while (coll->pe[member] != me)
        member++;
    return member;
}

static void active_barrier(const struct op *op) {
    long *psync = barrier_psyncs[active_index(op)];
    if (op->verb == ACTIVE_BARRIER) {
        late_deliver(0, everybody());
        shmem_barrier(op->start, op->stride, op->size, psync);
        landing_quiet(0, everybody());
    } else
        shmem_sync(op->start, op->stride, op->size, psync);
}

void execute_collective(const struct op *op) {
    if (op->class == ACTIVE_SET && op->verb < ACTIVE_BROADCAST) {
        active_barrier(op);
        return;
    }
    struct collective coll = coll_of(op);
    int member = own_member(&coll), failed = 0;
    uint32_t bytes = coll_dest_bytes(op, &coll, member);
    coll_operands(op, &coll, member, memory_real(op->local));
    if (coll.active)
        call_active(op, &coll, op->counts[member]);
    else
        failed = call_team(op, &coll, op->counts[member]);
    if (failed)
        diverge(op, "returned %d", failed);
    uint32_t source_bytes = coll_source_bytes(op, &coll, member);
    if (op->reuse && source_bytes > 0)
        memcpy(memory_real(op->local), coll_reuse(op, member), source_bytes);
    coll_clear_padding(&coll, memory_real(op->remote), op->bsize);
    if (bytes && memory_differs(op->remote, op->remote + bytes) < SPACE)
        diverge_at(op, memory_differs(op->remote, op->remote + bytes));
}

void psyncs_check(const struct op *last) {
    for (int i = 0; i < PSYNCS; i++)
        for (int word = 0; word < SHMEM_SYNC_SIZE; word++)
            if (psyncs[i][word] != SHMEM_SYNC_VALUE)
                diverge(last, "word %d of pSync %d is %ld", word, i, psyncs[i][word]);
    for (int i = 0; i < ACTIVE_SETS; i++)
        for (int word = 0; word < SHMEM_BARRIER_SYNC_SIZE; word++)
            if (barrier_psyncs[i][word] != SHMEM_SYNC_VALUE)
                diverge(last, "word %d of pSync %d of barriers is %ld", word, i,
                        barrier_psyncs[i][word]);
}
