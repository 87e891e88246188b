/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "execute.h"

enum { THREADS_MAX = 4 };

/* A thread's part of an operation. */
struct part {
    const struct op *op;
    const struct rma_routines *row;
    char *dest;
    const char *source;
    uint32_t index;
    shmem_ctx_t ctx;
    _Atomic int *ready; /* threads that have started: they begin together */
};

/* Moves elements [index, index + 1) * nelems / nthreads; every second thread without blocking. */
static void move_part(const struct part *part) {
    const struct op *op = part->op;
    const struct rma_routines *row = part->row;
    size_t nelems = op->nblocks * op->bsize;
    size_t begin = nelems * part->index / op->nthreads;
    size_t end = nelems * (part->index + 1) / op->nthreads;
    bool nbi = part->index % 2;
    copy *put = nbi ? row->put_nbi : row->put, *get = nbi ? row->get_nbi : row->get;
    (op_gets(op) ? get : put)(part->ctx, part->dest + begin * row->bytes,
                              part->source + begin * row->bytes, end - begin, op_pe(op));
}

/* Makes operations index, index + nthreads, ... of a crowd's member. */
static void crowd_part(const struct part *part) {
    const struct op *op = part->op;
    enum amo_operation operation = crowd_operation(op, me);
    uint64_t fetched;
    for (uint32_t repeat = part->index; repeat < op->nblocks; repeat += op->nthreads)
        amo_routine(op->row, operation)(part->ctx, operation, op->form ? FETCHING : SILENT,
                                        &fetched, memory_real(op->remote), 0,
                                        crowd_operand(op, me, repeat), op_pe(op));
}

static void *do_part(void *argument) {
    struct part *part = argument;
    const struct op *op = part->op;
    shmem_team_t team = teams[contexts[op->actor][op->ctx].team].handle;
    if (shmem_team_create_ctx(team, SHMEM_CTX_PRIVATE, &part->ctx) != 0)
        diverge(op, "thread %u could not create a context", part->index);
    atomic_fetch_add(part->ready, 1);
    while (atomic_load(part->ready) < op->nthreads)
        sched_yield();
    op->class == CROWD ? crowd_part(part) : move_part(part);
    shmem_ctx_quiet(part->ctx);
    shmem_ctx_destroy(part->ctx);
    return NULL;
}

static void do_parts(const struct part *whole) {
    pthread_t threads[THREADS_MAX];
    struct part parts[THREADS_MAX];
    _Atomic int ready = 0;
    for (uint32_t i = 0; i < whole->op->nthreads; i++) {
        parts[i] = *whole;
        parts[i].index = i;
        parts[i].ready = &ready;
        if (pthread_create(&threads[i], NULL, do_part, &parts[i]) != 0)
            diverge(whole->op, "thread %u could not be created", i);
    }
    for (uint32_t i = 0; i < whole->op->nthreads; i++)
        pthread_join(threads[i], NULL);
}

void threads_move(const struct op *op, const struct rma_routines *row, void *dest,
                  const void *source) {
    do_parts(&(struct part){.op = op, .row = row, .dest = dest, .source = source});
}

void threads_crowd(const struct op *op) {
    do_parts(&(struct part){.op = op});
}
