/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams and contexts: their members, and this PE's handles. */
#ifndef TESTS_RANDOM_OBJECTS_H
#define TESTS_RANDOM_OBJECTS_H

#include <shmem.h>
#include "order.h"

enum { TEAMS_MAX = 24, WORLD = 0, SHARED = 1, NO_MEMBER = 255 };

struct team {
    bool live;
    uint8_t members; /* one bit for each PE */
    uint8_t npes, num_contexts;
    uint8_t pe[PES_MAX];     /* member to world PE */
    uint8_t member[PES_MAX]; /* the inverse, or NO_MEMBER */
    shmem_team_t handle;     /* SHMEM_TEAM_INVALID if this PE is not a member */
};

struct context {
    bool live;
    uint8_t team;
    long options;
};

extern struct team teams[TEAMS_MAX];
extern struct context contexts[PES_MAX][CTXS];
extern shmem_ctx_t ctx_handles[CTXS];

/* The PEs that each PE can access by loads and stores, one bit for each; asked once, of all PEs. */
extern uint8_t objects_near[PES_MAX];
void objects_find_near(void);
static inline bool objects_is_near(int actor, int pe) {
    return objects_near[actor] >> pe & 1;
}

/* An epoch begins and ends with the predefined teams and contexts. */
void objects_begin(void);
void objects_end(void);

/* Returns a live team, with `pe` as a member unless `pe` is negative. */
int team_any(int pe);
int team_unused(void); /* or -1 */
int teams_live(void);

/* Makes team `slot` of `npes` members in this order. */
void team_make(int slot, const uint8_t *pes, int npes, int num_contexts);
void team_drop(int slot);

/* Return a live context of `pe`, and an unused one that is not the default, or -1. */
int ctx_any(int pe);
int ctx_unused(int pe);

static inline bool ctx_orders_stores(int pe, int ctx) {
    return !(contexts[pe][ctx].options & SHMEM_CTX_NOSTORE);
}

/* Return the context argument of an operation (SHMEM_CTX_INVALID for the form without one), and its
 * PE. */
static inline shmem_ctx_t op_ctx(const struct op *op) {
    return op->plain ? SHMEM_CTX_INVALID : ctx_handles[op->ctx];
}
static inline int op_pe(const struct op *op) {
    return teams[contexts[op->actor][op->ctx].team].member[op->target];
}

#endif
