/* SPDX-License-Identifier: BSD-3-Clause */
/* In a job that oshrun has not started, PEs of other hosts connect to PE 0:
 *
 *      PE on another host                     PE 0
 *      connects, TLS with its PE's key  ---->       at the port of the invitation
 *      HELLO                            ---->       its PE number and host
 *                                       <----  PLACES  all PEs have connected: the host of each
 *      READY, or BYE                    ---->       its host has met; or: it is done
 *
 * Either side may send a REFUSAL frame with its reason at any time. Both send a BEAT frame four
 * times a second (boot/host_link.h). The first PE of each host sends a READY frame when the PEs of
 * its host have met, and keeps its connection, which then serves the whole host; the other PEs send
 * BYE frames. PE 0 continues when all hosts are ready, so that it can report a death before that to
 * all. */
#ifndef WEFT_BOOT_CALLERS_H
#define WEFT_BOOT_CALLERS_H

#include <stdbool.h>
#include "boot/host_link.h"
#include "boot/hosts.h"
#include "boot/source.h"

enum weft_arrival_kind { /* kinds of frames, in addition to enum weft_tree_kind */
                         WEFT_ARRIVAL_HELLO = 128,
                         WEFT_ARRIVAL_PLACES, /* int32_t hosts, a struct weft_host each, and the
                                                 host of every PE */
                         WEFT_ARRIVAL_READY,
                         WEFT_ARRIVAL_BYE,
                         WEFT_ARRIVAL_REFUSAL, /* text without a zero */
};

#define WEFT_ARRIVAL_LABEL "weft-pe-v1" /* from which the keys of PEs are derived */

/* `version` stays the first field in all versions, so that each can report a mismatch with any
 * other.
 */
struct weft_arrival_hello {
    char version[32];
    int32_t pe, npes, pid;
    uint64_t host;
    struct weft_host name;
};

/* The hosts of a job, and the host of each PE. */
struct weft_places {
    int nhosts, here;
    struct weft_host *host;
    int32_t *host_of; /* by PE; NULL: there is one host */
    struct weft_network network;
};
void weft_places_free(struct weft_places *places);

/* Reads the payload of a PLACES frame, which may be anything, into empty `places`. The caller frees
 * them, also after a failure. Returns 0; -EPROTO: the payload is invalid; -ENOMEM. */
int weft_places_read(struct weft_places *places, const struct weft_identity *self,
                     const unsigned char *payload, size_t bytes);

/* Returns the first PE of a host. */
int weft_places_first(const struct weft_places *places, int host);

/* --- PE 0's side ------------------------------------------------------------------------------ */

struct weft_callers;

/* `came`, which belongs to the caller, has an entry for each PE: whether it has arrived, from this
 * host or another. Returns 0 or -ENOMEM. */
int weft_callers_open(struct weft_callers **callers, const struct weft_identity *self, bool *came);

/* Begins to listen, unless that was tried before. Returns 0 or -errno, which is logged, and
 * matters, only if some PEs are known to run on other hosts. */
int weft_callers_listen(struct weft_callers *callers);

/* Logs the reason if listening has failed. */
void weft_callers_hint(const struct weft_callers *callers);

/* Fills in what to poll for, at most npes + 1 entries. Returns their number. */
int weft_callers_polls(const struct weft_callers *callers, struct pollfd *polls);

/* After the poll: reads frames, and accepts connections. Returns the number of PEs that have
 * arrived; or -EPROTO: the job cannot start, for the reason in why[WEFT_REFUSAL_BYTES]. */
int weft_callers_turn(struct weft_callers *callers, const struct pollfd *polls, char *why);

/* Sends all that have connected the reason why the job does not start. */
void weft_callers_refuse(struct weft_callers *callers, const char *why);

/* Called when all PEs have arrived: closes the port, numbers the hosts, and sends the host of each
 * PE to all. Returns 0; or -errno, with the reason. Take turns after it until all hosts are ready.
 */
int weft_callers_place(struct weft_callers *callers, struct weft_places *places, char *why);
bool weft_callers_are_ready(const struct weft_callers *callers);

/* Return the pid of a PE that has connected, and its connection, which the caller may move away. */
int weft_callers_pid(const struct weft_callers *callers, int pe);
struct weft_host_link *weft_callers_link(struct weft_callers *callers, int pe);

void weft_callers_close(struct weft_callers *callers);

/* --- The other side --------------------------------------------------------------------------- */

/* Connects to PE 0, and blocks until all PEs have arrived. Fills in the places and the connection,
 * which belong to the caller. Returns 0 or -errno, logged. */
int weft_arrive(const struct weft_identity *self, struct weft_places *places,
                struct weft_host_link *link);

/* Returns whether PE 0 has refused meanwhile, or is gone, with the reason in
 * why[WEFT_REFUSAL_BYTES]. */
bool weft_arrive_refused(struct weft_host_link *link, char *why);

/* Sends a READY or BYE frame. */
void weft_arrive_say(struct weft_host_link *link, enum weft_arrival_kind kind);

/* Sends a REFUSAL frame with this reason. */
void weft_arrive_give_up(struct weft_host_link *link, const char *why);

#endif
