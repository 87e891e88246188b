/* SPDX-License-Identifier: BSD-3-Clause */
#include "objects.h"
#include <string.h>
#include "memory.h"
#include "reach.h"

struct team teams[TEAMS_MAX];
struct context contexts[PES_MAX][CTXS];
shmem_ctx_t ctx_handles[CTXS];

uint8_t objects_near[PES_MAX]; /* symmetric */

void objects_find_near(void) {
    uint8_t near = 0;
    for (int pe = 0; pe < npes; pe++)
        near |= (uint8_t)(reach_is_near(pe) << pe);
    for (int pe = 0; pe < npes; pe++)
        shmem_uint8_p(&objects_near[me], near, pe);
    shmem_barrier_all();
}

/* Makes SHARED a name of one of the teams that it may denote, a different one in each epoch. */
static void shared_make(void) {
    uint8_t pes[PES_MAX];
    int count = 0, one = (int)below((uint32_t)npes);
    for (int pe = 0; pe < npes; pe++)
        if (objects_is_near(one, pe))
            pes[count++] = (uint8_t)pe;
    team_make(SHARED, pes, count, 0);
    teams[SHARED].handle = objects_is_near(one, me) ? SHMEM_TEAM_SHARED : SHMEM_TEAM_INVALID;
}

void objects_begin(void) {
    static const uint8_t all[PES_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    memset(teams, 0, sizeof teams);
    memset(contexts, 0, sizeof contexts);
    team_make(WORLD, all, npes, 0);
    teams[WORLD].handle = SHMEM_TEAM_WORLD;
    shared_make();
    for (int pe = 0; pe < npes; pe++)
        contexts[pe][0].live = true;
    ctx_handles[0] = SHMEM_CTX_DEFAULT;
}

/* A team's destruction destroys its shareable contexts; private ones must be destroyed before. */
void objects_end(void) {
    for (int ctx = 1; ctx < CTXS; ctx++)
        if (contexts[me][ctx].live)
            shmem_ctx_destroy(ctx_handles[ctx]);
    for (int slot = SHARED + 1; slot < TEAMS_MAX; slot++)
        if (teams[slot].live)
            shmem_team_destroy(teams[slot].handle);
}

/* Returns the `nth` live team of which `pe` is a member. */
static int team_nth(int pe, uint32_t nth) {
    for (int slot = 0;; slot = (slot + 1) % TEAMS_MAX)
        if (teams[slot].live && (pe < 0 || teams[slot].members >> pe & 1) && nth-- == 0)
            return slot;
}

int team_any(int pe) {
    return team_nth(pe, below(TEAMS_MAX));
}

int team_unused(void) {
    for (int slot = 0; slot < TEAMS_MAX; slot++)
        if (!teams[slot].live)
            return slot;
    return -1;
}

int teams_live(void) {
    int live = 0;
    for (int slot = 0; slot < TEAMS_MAX; slot++)
        live += teams[slot].live;
    return live;
}

void team_make(int slot, const uint8_t *pes, int count, int num_contexts) {
    struct team *team = &teams[slot];
    *team =
        (struct team){.live = true, .npes = (uint8_t)count, .num_contexts = (uint8_t)num_contexts};
    memset(team->member, NO_MEMBER, sizeof team->member);
    for (int member = 0; member < count; member++) {
        team->pe[member] = pes[member];
        team->member[pes[member]] = (uint8_t)member;
        team->members |= (uint8_t)(1 << pes[member]);
    }
}

void team_drop(int slot) {
    teams[slot].live = false;
}

int ctx_any(int pe) {
    if (coin(3))
        return 0;
    int ctx = (int)below(CTXS);
    return contexts[pe][ctx].live ? ctx : 0;
}

int ctx_unused(int pe) {
    for (int ctx = 1; ctx < CTXS; ctx++)
        if (!contexts[pe][ctx].live)
            return ctx;
    return -1;
}
