/* SPDX-License-Identifier: BSD-3-Clause */
/* The standard's ordering rules, as a vector clock for every PE and, for every 16 bytes of every
 * PE's memory, who wrote last and who has read since.
 *
 * An access is on its way (`via` a context and a peer) until its PE has called quiet; another PE
 * may touch the same bytes only when a barrier, a sync or a signal has told it of that quiet. A
 * fence puts two writes of one context to one PE in order, and what was fenced before a signal has
 * arrived where the signal is. So a program that asks here before every access has exactly one
 * outcome, whatever a conforming library does. Rules that are too strict only make the program
 * order more than it must; none may be too lax. */
#ifndef TESTS_RANDOM_ORDER_H
#define TESTS_RANDOM_ORDER_H

#include "op.h"

enum { CTXS = 6, STORES = CTXS, VIAS = (CTXS + 1) * PES_MAX, VIA_DONE = 255, GROUP = PES_MAX };

/* How an access travels: on a context, as plain stores (STORES), or done when the call returns. */
static inline uint8_t via_of(int ctx, int peer) {
    return (uint8_t)(ctx * PES_MAX + peer);
}

/* CLEAR: may be done now. PENDING: after a fence or quiet of the actor itself; order_hindrance says
 * via what. FOREIGN: not before the actor hears of another PE's access. */
enum verdict { CLEAR, PENDING, FOREIGN };
extern uint8_t order_hindrance;

struct extent {
    int pe;
    uint32_t offset, bytes;
};

/* What a signal takes along. */
struct snapshot {
    uint32_t clock[PES_MAX];
    uint32_t fenced, stores_fenced;
    uint32_t payload_at;
    uint8_t actor, ctx;
    struct extent payload;
};

void order_begin(void);

/* The next operation of a PE. */
void order_step(int pe);
uint32_t order_now(int pe);

/* May `actor` access these bytes? FENCEABLE writes can follow an own earlier one behind a fence.
 * The actor GROUP stands for all members given to order_group. */
enum write_kind { STRICT, FENCEABLE };
enum verdict order_may_write(int actor, uint8_t via, struct extent extent, enum write_kind kind);
enum verdict order_may_read(int actor, uint8_t via, struct extent extent);
void order_group(uint8_t members);

/* It did. LANDING: the write is the end of a get, which a fence does not order. */
enum landing { ARRIVAL, LANDING };
void order_wrote(int actor, uint8_t via, struct extent extent, enum landing landing);
void order_read(int actor, uint8_t via, struct extent extent);

/* Something else did, on words that are not looked after here. */
void order_travels(int actor, uint8_t via);

/* Ordering calls. `stores`: the context's calls order plain stores, too. */
void order_fence(int actor, int ctx, bool stores);
void order_quiet(int actor, int ctx, bool stores);
void order_pe_quiet(int actor, int ctx, int peer);
void order_sync(uint8_t members);
bool order_is_quiet(int actor, int ctx);

/* A signal, and the wait that sees it. Whether an actor knows what `pe` did at `time`. */
struct snapshot order_signal(int actor, int ctx, struct extent payload);
void order_heard(int pe, const struct snapshot *from);
bool order_knows(int actor, int pe, uint32_t time);

/* Whether a signal's payload lies where it was put: its block of the heap may be another one. */
bool order_is_payload(const struct snapshot *from);

/* Who wrote there last, for the report; -1: nobody in this epoch. */
int order_writer(int pe, uint32_t offset);

#endif
