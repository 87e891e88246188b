/* SPDX-License-Identifier: BSD-3-Clause */
/* The ordering rules of the standard: a vector clock for every PE and, for every 16 bytes of every
 * PE's memory, the last writer and the readers since.
 *
 * An access is pending (`via` a context and a peer) until its PE has called quiet. Another PE may
 * access the same bytes only when a barrier, a sync or a signal has informed it of that quiet. A
 * fence orders two writes of one context to one PE, and a write that was fenced before a signal has
 * arrived when the signal has. So a program that asks here before every access has exactly one
 * outcome with every conforming library. Rules that are too strict only make the program order more
 * than it must; no rule may be too lax. */
#ifndef TESTS_RANDOM_ORDER_H
#define TESTS_RANDOM_ORDER_H

#include "op.h"

enum { CTXS = 6, STORES = CTXS, VIAS = (CTXS + 1) * PES_MAX, VIA_DONE = 255, GROUP = PES_MAX };

/* How an access is made: on a context, by plain stores (STORES), or complete when the call
 * returns. */
static inline uint8_t via_of(int ctx, int peer) {
    return (uint8_t)(ctx * PES_MAX + peer);
}

/* CLEAR: may be made now. PENDING: after a fence or quiet of the actor itself; order_hindrance says
 * on which `via`. FOREIGN: not before the actor is informed of another PE's access. */
enum verdict { CLEAR, PENDING, FOREIGN };
extern uint8_t order_hindrance;

struct extent {
    int pe;
    uint32_t offset, bytes;
};

/* The knowledge that a signal transports. */
struct snapshot {
    uint32_t clock[PES_MAX];
    uint32_t fenced, stores_fenced;
    uint32_t payload_at;
    uint8_t actor, ctx;
    struct extent payload;
};

void order_begin(void);

/* Begins the next operation of a PE. */
void order_step(int pe);
uint32_t order_now(int pe);

/* May `actor` access these bytes? FENCEABLE writes may follow an earlier write of the same PE after
 * a fence. The actor GROUP stands for all members passed to order_group. */
enum write_kind { STRICT, FENCEABLE };
enum verdict order_may_write(int actor, uint8_t via, struct extent extent, enum write_kind kind);
enum verdict order_may_read(int actor, uint8_t via, struct extent extent);
void order_group(uint8_t members);

/* Books the access. LANDING: the write is the end of a get, which a fence does not order. */
enum landing { ARRIVAL, LANDING };
void order_wrote(int actor, uint8_t via, struct extent extent, enum landing landing);
void order_read(int actor, uint8_t via, struct extent extent);

/* Books an access of words that are not booked here. */
void order_travels(int actor, uint8_t via);

/* Book ordering calls. `stores`: the context's calls order plain stores, too. */
void order_fence(int actor, int ctx, bool stores);
void order_quiet(int actor, int ctx, bool stores);
void order_pe_quiet(int actor, int ctx, int peer);
void order_sync(uint8_t members);
bool order_is_quiet(int actor, int ctx);

/* Book a signal, and the wait that sees it; return whether an actor knows the access of `pe` at
 * `time`. */
struct snapshot order_signal(int actor, int ctx, struct extent payload);
void order_heard(int pe, const struct snapshot *from);
bool order_knows(int actor, int pe, uint32_t time);

/* Returns whether a signal's payload is where it was put: its block of the heap may be another
 * one. */
bool order_is_payload(const struct snapshot *from);

/* Returns the last PE that wrote there, for the report; -1: no PE in this epoch. */
int order_writer(int pe, uint32_t offset);

#endif
