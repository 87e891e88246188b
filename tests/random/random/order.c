/* SPDX-License-Identifier: BSD-3-Clause */
#include "order.h"
#include <string.h>
#include "memory.h"

enum { GRAIN = 16, GRAINS = SPACE / GRAIN };

struct grain {
    uint32_t write_at, read_at[PES_MAX];
    uint8_t read_via[PES_MAX];
    uint8_t writer, write_via;
    uint8_t readers; /* since the write, one bit for each PE */
    bool landing;    /* a get has written here */
    bool delivered;  /* the write was a payload, and this memory's PE has seen its signal */
};

uint8_t order_hindrance;
static struct grain grains[PES_MAX][GRAINS];
static uint32_t now[PES_MAX], started[PES_MAX], last_on[PES_MAX][CTXS + 1];
static uint32_t clock[PES_MAX + 1][PES_MAX];
static uint32_t quiet_at[PES_MAX][VIAS];
static uint32_t fence_at[PES_MAX][CTXS + 1], stores_fence_at[PES_MAX][CTXS + 1];
static uint32_t delivered_at[PES_MAX][PES_MAX][CTXS + 1]; /* to, from, via */

/* All PEs know everything before an epoch. */
void order_begin(void) {
    memset(delivered_at, 0, sizeof delivered_at);
    for (int pe = 0; pe < npes; pe++) {
        started[pe] = ++now[pe];
        for (int other = 0; other < npes; other++)
            clock[other][pe] = now[pe];
        for (int via = 0; via < VIAS; via++)
            quiet_at[pe][via] = now[pe];
        for (int ctx = 0; ctx <= CTXS; ctx++)
            fence_at[pe][ctx] = stores_fence_at[pe][ctx] = last_on[pe][ctx] = now[pe];
    }
}

void order_step(int pe) {
    clock[pe][pe] = ++now[pe];
}

uint32_t order_now(int pe) {
    return now[pe];
}

void order_group(uint8_t members) {
    for (int of = 0; of < npes; of++) {
        clock[GROUP][of] = UINT32_MAX;
        for (int pe = 0; pe < npes; pe++)
            if (members >> pe & 1 && clock[pe][of] < clock[GROUP][of])
                clock[GROUP][of] = clock[pe][of];
    }
}

/* Returns whether the access of `by` at time `at` has happened for `actor` on any PE. */
static enum verdict happened(int actor, int by, uint32_t at, uint8_t via, int pe) {
    if (at <= started[by]) /* in an earlier epoch */
        return CLEAR;
    if (via != VIA_DONE) {
        if (actor == by && pe == by && via == via_of(STORES, by))
            return CLEAR;
        if (quiet_at[by][via] < at) {
            order_hindrance = via;
            return actor == by ? PENDING : FOREIGN;
        }
        at = quiet_at[by][via];
    }
    return actor == by || clock[actor][by] >= at ? CLEAR : FOREIGN;
}

/* Whether an access may follow the last write of a grain, which may also have arrived before a
 * quiet, in two ways. */
static enum verdict after_write(int actor, const struct grain *grain, int pe) {
    bool arrived = grain->write_via != VIA_DONE && grain->writer != actor && pe == actor &&
                   grain->write_via % PES_MAX == pe &&
                   delivered_at[pe][grain->writer][grain->write_via / PES_MAX] >= grain->write_at;
    if (arrived || (grain->delivered && pe == actor))
        return CLEAR;
    return happened(actor, grain->writer, grain->write_at, grain->write_via, pe);
}

static enum verdict after_reads(int actor, const struct grain *grain, int pe) {
    enum verdict worst = CLEAR;
    for (int reader = 0; grain->readers >> reader; reader++)
        if (grain->readers >> reader & 1) {
            enum verdict verdict =
                happened(actor, reader, grain->read_at[reader], grain->read_via[reader], pe);
            if (verdict > worst)
                worst = verdict;
        }
    return worst;
}

static struct grain *first_grain(struct extent extent) {
    return &grains[extent.pe][extent.offset / GRAIN];
}

static struct grain *last_grain(struct extent extent) {
    return &grains[extent.pe][(extent.offset + extent.bytes - 1) / GRAIN];
}

static bool is_fenced(int actor, uint8_t via, const struct grain *grain) {
    return via != VIA_DONE && grain->writer == actor && grain->write_via == via &&
           !grain->landing && fence_at[actor][via / PES_MAX] >= grain->write_at;
}

enum verdict order_may_write(int actor, uint8_t via, struct extent extent, enum write_kind kind) {
    enum verdict worst = CLEAR;
    for (struct grain *grain = first_grain(extent); grain <= last_grain(extent); grain++) {
        enum verdict verdict = after_write(actor, grain, extent.pe);
        if (verdict == PENDING && kind == FENCEABLE && is_fenced(actor, via, grain))
            verdict = CLEAR;
        enum verdict reads = grain->readers ? after_reads(actor, grain, extent.pe) : CLEAR;
        verdict = reads > verdict ? reads : verdict;
        worst = verdict > worst ? verdict : worst;
        if (worst == FOREIGN)
            break;
    }
    return worst;
}

/* A grain remembers one read of a PE: a second pending one must use the same way. */
enum verdict order_may_read(int actor, uint8_t via, struct extent extent) {
    enum verdict worst = CLEAR;
    for (struct grain *grain = first_grain(extent); grain <= last_grain(extent); grain++) {
        enum verdict verdict = after_write(actor, grain, extent.pe);
        if (verdict == CLEAR && actor != GROUP && grain->readers >> actor & 1 &&
            grain->read_via[actor] != via)
            verdict =
                happened(actor, actor, grain->read_at[actor], grain->read_via[actor], extent.pe);
        worst = verdict > worst ? verdict : worst;
        if (worst == FOREIGN)
            break;
    }
    return worst;
}

void order_travels(int actor, uint8_t via) {
    if (via != VIA_DONE)
        last_on[actor][via / PES_MAX] = now[actor];
}

void order_wrote(int actor, uint8_t via, struct extent extent, enum landing landing) {
    order_travels(actor, via);
    for (struct grain *grain = first_grain(extent); grain <= last_grain(extent); grain++) {
        grain->write_at = now[actor];
        grain->writer = (uint8_t)actor;
        grain->write_via = via;
        grain->readers = 0;
        grain->landing = landing == LANDING;
        grain->delivered = false;
    }
}

void order_read(int actor, uint8_t via, struct extent extent) {
    order_travels(actor, via);
    for (struct grain *grain = first_grain(extent); grain <= last_grain(extent); grain++) {
        grain->readers |= (uint8_t)(1 << actor);
        grain->read_at[actor] = now[actor];
        grain->read_via[actor] = via;
    }
}

void order_fence(int actor, int ctx, bool stores) {
    fence_at[actor][ctx] = now[actor];
    if (stores)
        stores_fence_at[actor][ctx] = now[actor];
}

void order_quiet(int actor, int ctx, bool stores) {
    order_fence(actor, ctx, stores);
    for (int peer = 0; peer < npes; peer++) {
        quiet_at[actor][via_of(ctx, peer)] = now[actor];
        if (stores)
            quiet_at[actor][via_of(STORES, peer)] = now[actor];
    }
}

void order_pe_quiet(int actor, int ctx, int peer) {
    quiet_at[actor][via_of(ctx, peer)] = now[actor];
}

bool order_is_quiet(int actor, int ctx) {
    for (int peer = 0; peer < npes; peer++)
        if (quiet_at[actor][via_of(ctx, peer)] < last_on[actor][ctx])
            return false;
    return true;
}

/* Stores before a sync are visible after it. */
void order_sync(uint8_t members) {
    uint32_t joint[PES_MAX] = {0};
    for (int pe = 0; pe < npes; pe++)
        if (members >> pe & 1) {
            for (int peer = 0; peer < npes; peer++)
                quiet_at[pe][via_of(STORES, peer)] = now[pe];
            for (int of = 0; of < npes; of++)
                joint[of] = clock[pe][of] > joint[of] ? clock[pe][of] : joint[of];
        }
    for (int pe = 0; pe < npes; pe++)
        if (members >> pe & 1)
            memcpy(clock[pe], joint, sizeof joint);
}

struct snapshot order_signal(int actor, int ctx, struct extent payload) {
    struct snapshot snapshot = {.actor = (uint8_t)actor,
                                .ctx = (uint8_t)ctx,
                                .fenced = fence_at[actor][ctx],
                                .stores_fenced = stores_fence_at[actor][ctx],
                                .payload_at = now[actor],
                                .payload = payload};
    memcpy(snapshot.clock, clock[actor], sizeof snapshot.clock);
    return snapshot;
}

static void raise_to(uint32_t *time, uint32_t to) {
    if (*time < to)
        *time = to;
}

void order_heard(int pe, const struct snapshot *from) {
    for (int of = 0; of < npes; of++)
        raise_to(&clock[pe][of], from->clock[of]);
    raise_to(&delivered_at[pe][from->actor][from->ctx], from->fenced);
    raise_to(&delivered_at[pe][from->actor][STORES], from->stores_fenced);
    if (from->payload.bytes == 0)
        return;
    for (struct grain *grain = first_grain(from->payload); grain <= last_grain(from->payload);
         grain++)
        if (grain->writer == from->actor && grain->write_at == from->payload_at)
            grain->delivered = true;
}

bool order_knows(int actor, int pe, uint32_t time) {
    return actor == pe || clock[actor][pe] >= time;
}

bool order_is_payload(const struct snapshot *from) {
    const struct grain *last = last_grain(from->payload);
    for (const struct grain *grain = first_grain(from->payload); grain <= last; grain++)
        if (grain->writer != from->actor || grain->write_at != from->payload_at)
            return false;
    return true;
}

int order_writer(int pe, uint32_t offset) {
    const struct grain *grain = &grains[pe][offset / GRAIN];
    return grain->write_at > started[grain->writer] ? grain->writer : -1;
}
