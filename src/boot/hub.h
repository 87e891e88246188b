/* SPDX-License-Identifier: BSD-3-Clause */
/* Serves the exchanges of one host: gathers the contributions of all members of an exchange, and
 * sends all to each member. An exchange is identified by a key and its members, which are all PEs
 * of the job or some of them. Any number of exchanges may be open.
 *
 * If some members are on other hosts, the hub gathers the contributions of this host's members. Its
 * owner takes them, sends them to the other hosts, and completes the exchange with the
 * contributions of all members.
 *
 * No function blocks. A slow or stopped PE only delays its own position in an exchange; the others
 * are served. Descriptors are closed after the last PE has received them. The owner polls for
 * weft_hub_events and then calls weft_hub_serve. */
#ifndef WEFT_BOOT_HUB_H
#define WEFT_BOOT_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct weft_control;
struct weft_hub;

enum weft_hub_event {
    WEFT_HUB_NOTHING, /* there was no message */
    WEFT_HUB_GAVE,
    WEFT_HUB_JOINED, /* pid: the process that joined */
    WEFT_HUB_EXIT,   /* status */
    WEFT_HUB_FAILED, /* status */
    WEFT_HUB_BLAMED, /* status; culprit: the PE that exits with it, which is this PE or one that it
                        waits for */
    WEFT_HUB_CUT,    /* culprit: the host that the PE cannot reach */
    WEFT_HUB_LOST,   /* the PE's end is closed; the hub has closed its own */
    WEFT_HUB_JUNK,   /* why: a message that no PE of this version sends */
};

struct weft_hub_report {
    pid_t pid;
    int status;
    int culprit;
    const char *why;
};

/* Takes ownership of the sockets, one for each PE and -1 for PEs on other hosts, also on failure.
 * Returns 0 or -errno, without logging. */
int weft_hub_open(struct weft_hub **hub, const int sockets[], int npes);

/* Makes this PE receive results after all others. Its process serves the hub, and may end or be
 * stopped when the PE continues. */
void weft_hub_set_last(struct weft_hub *hub, int pe);

/* Closes all sockets and descriptors, which waiting PEs notice. NULL is allowed. */
void weft_hub_close(struct weft_hub *hub);

/* Return the socket of a PE (-1: closed), and the events to poll it for. */
int weft_hub_socket(const struct weft_hub *hub, int pe);
short weft_hub_events(const struct weft_hub *hub, int pe);

/* Reads at most one message from this PE, and sends it as much as it can receive. */
enum weft_hub_event weft_hub_serve(struct weft_hub *hub, int pe, struct weft_hub_report *report);

/* Takes an exchange with members on other hosts to which all members on this host have contributed,
 * and that was not taken before. Returns false if there is none. *payload is the payload of a GAVE
 * frame (boot/tree.h), which the caller frees; NULL without memory. */
bool weft_hub_gather(struct weft_hub *hub, unsigned char **payload, size_t *bytes);

/* Returns whether an exchange waits for contributions of other hosts, to which all members on this
 * host have contributed. */
bool weft_hub_is_pending(const struct weft_hub *hub);

/* Completes an exchange with the payload of a SHARED frame. Returns 0, or -EPROTO if no exchange
 * waits for it. */
int weft_hub_complete(struct weft_hub *hub, const void *payload, size_t bytes);

/* Returns whether an exchange of all PEs waits for this PE. */
bool weft_hub_awaits(const struct weft_hub *hub, int pe);

/* Ends exchanges of some PEs of which a member has finalized and will not contribute; the members
 * that have contributed receive -ECONNABORTED. Call it every WEFT_HUB_LOOK_MS while
 * weft_hub_is_waiting, because a PE that writes to the page wakes nobody. */
enum { WEFT_HUB_LOOK_MS = 20 };
bool weft_hub_is_waiting(const struct weft_hub *hub);
void weft_hub_judge(struct weft_hub *hub, const struct weft_control *control);

/* Returns whether sending has stopped for a reason that poll does not report: too many descriptors
 * are in transit, or a socket for results is full. Call weft_hub_retry after a moment. */
bool weft_hub_crowded(const struct weft_hub *hub);
void weft_hub_retry(struct weft_hub *hub);

#endif
