/* SPDX-License-Identifier: BSD-3-Clause */
/* PEs of a job that no launcher of ours has started come to PE 0 from other hosts:
 *
 *      PE on another host                     PE 0
 *      call, TLS by a key of its number ---->       at the port of the invitation
 *      HELLO                            ---->       who it is, on which host
 *                                       <----  PLACES    once all PEs are here: who is where
 *      READY, or BYE                    ---->       its host has met; it has met its host
 *
 * or a REFUSAL in words at any time. Both send BEAT four times a second (boot/host_link.h). The
 * first PE of each host says READY and keeps its connection, for all of its host; the others say
 * BYE when they have been to that one. PE 0 goes on when all hosts are ready, so that it can tell
 * all of whoever dies before. */
#ifndef WEFT_BOOT_CALLERS_H
#define WEFT_BOOT_CALLERS_H

#include <stdbool.h>
#include "boot/host_link.h"
#include "boot/hosts.h"
#include "boot/source.h"

enum weft_arrival_kind { /* of frames; beside enum weft_tree_kind */
                         WEFT_ARRIVAL_HELLO = 128,
                         WEFT_ARRIVAL_PLACES, /* int32_t hosts, a struct weft_host each, and the
                                                 host of every PE */
                         WEFT_ARRIVAL_READY,
                         WEFT_ARRIVAL_BYE,
                         WEFT_ARRIVAL_REFUSAL, /* text without end */
};

#define WEFT_ARRIVAL_LABEL "weft-pe-v1" /* of the keys of PEs, by their numbers */

/* It never changes up to `version`, so that each version can tell every other why they do not fit.
 */
struct weft_arrival_hello {
    char version[32];
    int32_t pe, npes, pid;
    uint64_t host;
    struct weft_host name;
};

/* The hosts of a job, and who is where. */
struct weft_places {
    int nhosts, here;
    struct weft_host *host;
    int32_t *host_of; /* of every PE; NULL: there is one host */
    struct weft_network network;
};
void weft_places_free(struct weft_places *places);

/* The payload of a PLACES, as PE 0 on another host says. 0; -EPROTO: it makes no sense; -ENOMEM.
 * `places`, which were empty, are the caller's to free in any case. */
int weft_places_read(struct weft_places *places, const struct weft_identity *self,
                     const unsigned char *payload, size_t bytes);

/* The first PE of a host. */
int weft_places_first(const struct weft_places *places, int host);

/* --- PE 0's side ------------------------------------------------------------------------------ */

struct weft_callers;

/* `came` is the caller's, one of every PE that has come in one way or another. 0 or -ENOMEM. */
int weft_callers_open(struct weft_callers **callers, const struct weft_identity *self, bool *came);

/* Listens, if nobody does yet: 0, or an error that only matters where PEs are known to be on other
 * hosts, and is logged then. */
int weft_callers_listen(struct weft_callers *callers);

/* Notes why it does not listen, if it should. */
void weft_callers_hint(const struct weft_callers *callers);

/* What to poll for, at most npes + 1 entries, whose number is returned. */
int weft_callers_polls(const struct weft_callers *callers, struct pollfd *polls);

/* Then hears those who have come, and lets in others. How many have come by now; or -EPROTO: there
 * will be no job, and why[WEFT_REFUSAL_BYTES] says why. */
int weft_callers_turn(struct weft_callers *callers, const struct pollfd *polls, char *why);

/* Tells all who have come that there will be no job. */
void weft_callers_refuse(struct weft_callers *callers, const char *why);

/* All PEs are here: finds out who is where, and tells. Its port is closed. 0; or -errno, with why.
 * Then take turns until all hosts are ready. */
int weft_callers_place(struct weft_callers *callers, struct weft_places *places, char *why);
bool weft_callers_are_ready(const struct weft_callers *callers);

/* The process of a PE that has come, and its connection, which is the caller's to move. */
int weft_callers_pid(const struct weft_callers *callers, int pe);
struct weft_host_link *weft_callers_link(struct weft_callers *callers, int pe);

void weft_callers_close(struct weft_callers *callers);

/* --- The other side --------------------------------------------------------------------------- */

/* Calls PE 0, and waits until all have come. The places, and a connection that is the caller's. 0
 * or -errno, logged. */
int weft_arrive(const struct weft_identity *self, struct weft_places *places,
                struct weft_host_link *link);

/* Whether PE 0 has said meanwhile that there will be no job, or is gone, and in which words:
 * why[WEFT_REFUSAL_BYTES]. */
bool weft_arrive_refused(struct weft_host_link *link, char *why);

/* Says READY or BYE. */
void weft_arrive_say(struct weft_host_link *link, enum weft_arrival_kind kind);

/* Tells the other side that there will be no job, and why. */
void weft_arrive_give_up(struct weft_host_link *link, const char *why);

#endif
