/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "execute.h"

enum { AWAITED_MAX = 2048 };

unsigned char landing[LANDING_BYTES];
static struct awaited {
    struct op op;
    uint32_t bytes;
} awaited[AWAITED_MAX];
static int nawaited;

void landing_clear(const struct op *op, uint32_t bytes) {
    memset(landing + op->local - GUARD, UNTOUCHED, bytes + 2 * GUARD);
}

void landing_await(const struct op *op, uint32_t bytes) {
    if (nawaited == AWAITED_MAX)
        diverge(op, "more than %d results are awaited: the test's own limit", AWAITED_MAX);
    awaited[nawaited++] = (struct awaited){*op, bytes};
}

void landing_check(const struct op *op, uint32_t offset, uint32_t bytes) {
    const unsigned char *got = landing + offset - GUARD, *want = expected + offset - GUARD;
    if (memcmp(got, want, bytes + 2 * GUARD) == 0)
        return;
    uint32_t at = 0;
    while (got[at] == want[at])
        at++;
    diverge(op, "byte %d of the %u that came back: expected %02x, got %02x", (int)at - GUARD, bytes,
            want[at], got[at]);
}

void landing_quiet(int ctx, uint8_t peers) {
    int left = 0;
    for (int i = 0; i < nawaited; i++) {
        const struct awaited *result = &awaited[i];
        if (result->op.ctx == ctx && peers >> result->op.target & 1)
            landing_check(&result->op, result->op.local, result->bytes);
        else
            awaited[left++] = *result;
    }
    nawaited = left;
}

static void *local_side(const struct op *op) {
    return op->symmetric ? memory_real(op->local)
           : op_gets(op) ? landing + op->local
                         : pool + op->local;
}

/* A long double leaves six bytes undefined, which are zero in the model. */
static void clear_padding(const struct op *op, const struct rma_routines *row, void *dest) {
    static const unsigned char zeros[16];
    uint32_t open = row->bytes - row->value_bytes;
    unsigned char *padding = (unsigned char *)dest + row->value_bytes;
    if (open == 0)
        return;
    if (op->verb == ELEMENT_G) {
        memset(padding, 0, open);
        return;
    }
    shmem_ctx_fence(ctx_handles[op->ctx]);
    shmem_ctx_putmem(ctx_handles[op->ctx], padding, zeros, open, op_pe(op));
}

static void call_c11(const struct op *op, void *dest, const void *source, size_t nelems) {
    const struct c11_routines *row = &c11_routines[op->row];
    copy *put = op->form ? row->put_nbi : row->put, *get = op->form ? row->get_nbi : row->get;
    (op_gets(op) ? get : put)(op_ctx(op), dest, source, nelems, op_pe(op));
}

static void call(const struct op *op, const struct rma_routines *row, void *dest,
                 const void *source) {
    shmem_ctx_t ctx = op_ctx(op);
    int pe = op_pe(op);
    bool gets = op_gets(op);
    size_t nelems = op->nblocks * op->bsize;
    uint64_t *sig_addr;
    switch (op->class) {
    case PUT:
    case GET:
        (gets ? row->get : row->put)(ctx, dest, source, nelems, pe);
        break;
    case PUT_NBI:
    case GET_NBI:
        (gets ? row->get_nbi : row->put_nbi)(ctx, dest, source, nelems, pe);
        break;
    case STRIDED:
        (gets ? row->iget : row->iput)(ctx, dest, source, op->dst, op->sst, op->nblocks, pe);
        break;
    case BLOCKS:
        (gets ? row->ibget : row->ibput)(ctx, dest, source, op->dst, op->sst, op->bsize,
                                         op->nblocks, pe);
        break;
    case MOVE_C11:
        call_c11(op, dest, source, nelems);
        break;
    case THREADS:
        threads_move(op, row, dest, source);
        break;
    case ELEMENT:
        (gets ? row->g : row->p)(ctx, dest, source, pe);
        clear_padding(op, row, dest);
        break;
    default:
        sig_addr = memory_real(flag_offset(op->target, op->team, op->slot));
        (op->form ? row->put_signal_nbi : row->put_signal)(
            ctx, dest, source, nelems, sig_addr, op->value,
            op->verb == SIGNAL_SET ? SHMEM_SIGNAL_SET : SHMEM_SIGNAL_ADD, pe);
    }
}

void call_rma(const struct op *op, const void *source) {
    void *there = memory_real(op->remote), *here = local_side(op);
    bool gets = op_gets(op);
    if (!source)
        source = gets ? there : here;
    call(op, &rma_routines[op->row], gets ? here : there, source);
}

void execute_rma(const struct op *op) {
    bool gets = op_gets(op), lands = gets && !op->symmetric;
    uint32_t bytes = op_local_span(op);
    if (lands)
        landing_clear(op, bytes);
    if (!late_hold(op))
        call_rma(op, NULL);
    if (op_is_nbi(op) && lands)
        landing_await(op, bytes);
    else if (lands)
        landing_check(op, op->local, bytes);
    else if (gets && !op_is_nbi(op) && memcmp(local_side(op), model[me] + op->local, bytes) != 0)
        diverge_at(op, memory_differs(op->local, op->local + bytes));
}

void execute_store(const struct op *op) {
    bool own = op->verb == LOAD || op->verb == STORE_OWN;
    void *word = memory_real(op->remote);
    if (!own)
        word = shmem_ptr(word, op->target);
    if (!word)
        diverge(op, "shmem_ptr is NULL");
    if (op->verb == STORE_OWN || op->verb == STORE_PTR)
        memcpy(word, pool + op->local, op->bsize);
    else if (memcmp(word, model[op->target] + op->remote, op->bsize) != 0)
        diverge(op, "%u bytes loaded from PE %d are not what they should be", op->bsize,
                op->target);
}
