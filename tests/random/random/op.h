/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation of the random program, with all fields that a PE needs to model or execute it. The
 * functions that draw a class of operations say which fields they use. */
#ifndef TESTS_RANDOM_OP_H
#define TESTS_RANDOM_OP_H

#include <stdbool.h>
#include <stdint.h>

enum { PES_MAX = 8, EPOCH_OPS_MAX = 4096 };

/* X(NAME, text, weight). First the classes that move data, then the others that access op->remote,
 * last the collectives that do. A weight is a share of all draws; an operation that needs order
 * first is replaced by a fence, a quiet or a barrier, so these are drawn less often. */
/* clang-format off */
#define OP_CLASSES(X)                                                                              \
    X(PUT, "put", 7) X(GET, "get", 7) X(ELEMENT, "p, g", 7) X(STRIDED, "iput, iget", 7)            \
    X(BLOCKS, "ibput, ibget", 7) X(MOVE_C11, "put, get, C11 names", 6)                             \
    X(THREADS, "put, get by threads", 6) X(PUT_NBI, "put_nbi", 7) X(GET_NBI, "get_nbi", 7)         \
    X(STORE, "load, store", 6) X(AMO, "atomic", 7) X(AMO_FETCH, "atomic fetching", 7)              \
    X(AMO_NBI, "atomic fetching, nbi", 7) X(AMO_OLD, "atomic, old names", 6)                       \
    X(AMO_C11, "atomic, C11 names", 6) X(CROWD, "atomic, contended", 7)                            \
    X(PUT_SIGNAL, "put_signal", 7) X(SIGNAL, "signal", 6) X(RAISE, "atomic to a waiter", 6)        \
    X(WAIT, "wait_until", 7) X(TEST, "test", 6) X(FENCE, "fence", 6) X(QUIET, "quiet", 6)          \
    X(PE_QUIET, "pe_quiet", 6) X(CONTEXT, "context", 6) X(TEAM, "team", 6) X(QUERY, "query", 6)    \
    X(MEMORY, "memory", 6) X(BARRIER, "barrier, sync", 6) X(LOCK, "lock", 6)                       \
    X(BROADCAST, "broadcast", 6) X(COLLECT, "collect, fcollect", 6) X(ALLTOALL, "alltoall(s)", 6)  \
    X(REDUCE, "reduce", 6) X(SCAN, "inscan, exscan", 6) X(ACTIVE_SET, "active set", 6)
/* clang-format on */

enum op_class {
#define OP_NAME(NAME, TEXT, WEIGHT) NAME,
    OP_CLASSES(OP_NAME)
#undef OP_NAME
        CLASSES
};

/* Verbs of the classes that have several. */
enum { LOAD, STORE_OWN, LOAD_PTR, STORE_PTR, STORE_VERBS };
enum { ELEMENT_P, ELEMENT_G };
enum { INDEX_PUT, INDEX_GET };
enum { SIGNAL_SET, SIGNAL_ADD, SIGNAL_FETCH };
enum { RAISE_SET, RAISE_ADD, RAISE_INC, RAISE_SWAP, RAISE_P };
enum { WAIT_ONE, WAIT_ALL, WAIT_ANY, WAIT_SOME, WAIT_SIGNAL };
enum { CTX_CREATE, CTX_DESTROY, CTX_TEAM, CTX_SESSION };
enum { TEAM_SPLIT, TEAM_SPLIT_2D, TEAM_DESTROY };
enum {
    ACTIVE_BARRIER,
    ACTIVE_SYNC,
    ACTIVE_BROADCAST,
    ACTIVE_COLLECT,
    ACTIVE_FCOLLECT,
    ACTIVE_ALLTOALL,
    ACTIVE_ALLTOALLS,
    ACTIVE_TO_ALL,
    ACTIVE_VERBS
};
enum { LOCK_SET, LOCK_TEST };
enum { ASK_TEAM, ASK_TRANSLATE, ASK_PTR, ASK_INVALID, ASK_JOB, QUESTIONS };
enum {
    MEMORY_MALLOC,
    MEMORY_CALLOC,
    MEMORY_ALIGN,
    MEMORY_HINTS,
    MEMORY_NOTHING,
    MEMORY_REALLOC,
    MEMORY_FREE
};
enum { BARRIER_ALL, SYNC_ALL, TEAM_SYNC, BARRIER_VERBS, FLUSH = BARRIER_VERBS };
enum {
    CROWD_ADD,
    CROWD_BITS,
    CROWD_TICKET,
    CROWD_CAS,
    CROWD_SWAP,
    CROWD_SET,
    CROWD_FETCH,
    CROWD_SIGNAL
};

struct op {
    enum op_class class;
    uint32_t number; /* within the epoch */
    uint8_t verb, form, row;
    uint8_t actor, target; /* world PEs */
    uint8_t ctx;           /* the actor's; 0 is the default context */
    bool plain;            /* without a context argument */
    bool reuse;            /* overwrite a collective's source as soon as it returns */
    bool symmetric;        /* the local side is symmetric memory, otherwise pool or landing */
    uint8_t team, slot, root;
    uint8_t members;        /* the PEs that take part, one bit for each */
    uint8_t payloads;       /* flags whose payloads can be read, too */
    uint8_t included;       /* flags that are waited for */
    uint32_t remote, local; /* offsets */
    uint32_t bsize, nblocks, dst, sst;
    uint64_t value, cond;
    uint8_t nthreads;        /* of the PE, which share the operation; 0: its only thread */
    int start, stride, size; /* of a split or an active set, whose stride is a logarithm */
    uint16_t counts[PES_MAX];
};

extern int me, npes;

#endif
