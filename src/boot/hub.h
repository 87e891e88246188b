/* SPDX-License-Identifier: BSD-3-Clause */
/* The centre of the exchanges of one host: what each member of an exchange gives goes to all
 * members. An exchange is known by a key and its members, which are all PEs of the job or some;
 * any number may be open at a time.
 *
 * Where some members are on other hosts, the hub gathers what those of this one give. Its owner
 * takes a gathered exchange up, and completes it with what comes back: the contributions of all.
 *
 * Nothing here blocks. A PE that is slow or stopped only keeps its own position in an exchange; the
 * others are served. Descriptors are closed when the last PE has received them. The owner of the
 * hub polls: weft_hub_events says for what, weft_hub_serve does what became possible. */
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
    WEFT_HUB_JOINED, /* pid: of the process that did */
    WEFT_HUB_EXIT,   /* status */
    WEFT_HUB_FAILED, /* status */
    WEFT_HUB_BLAMED, /* status; culprit: the PE that exits with it, this one or one that it waits
                        for */
    WEFT_HUB_CUT,    /* culprit: the host that the PE cannot reach */
    WEFT_HUB_LOST,   /* the PE's end is closed; the hub has closed its own */
    WEFT_HUB_JUNK,   /* why: a message that no PE of ours sends */
};

struct weft_hub_report {
    pid_t pid;
    int status;
    int culprit;
    const char *why;
};

/* Takes over the sockets, one a PE and -1 for one on another host, also on failure. 0 or -errno,
 * not logged. */
int weft_hub_open(struct weft_hub **hub, const int sockets[], int npes);

/* This PE receives what an exchange brings after all others have: its process serves the hub, and
 * may end or be stopped when the PE goes on. */
void weft_hub_set_last(struct weft_hub *hub, int pe);

/* Closes every socket and descriptor: the PEs that wait see the end. NULL is fine. */
void weft_hub_close(struct weft_hub *hub);

/* The socket of a PE (-1: lost) and for which events to poll it. */
int weft_hub_socket(const struct weft_hub *hub, int pe);
short weft_hub_events(const struct weft_hub *hub, int pe);

/* Reads at most one message of this PE and sends it what it can take. */
enum weft_hub_event weft_hub_serve(struct weft_hub *hub, int pe, struct weft_hub_report *report);

/* Returns the payload of a GAVE (boot/tree.h), the caller's to free: an exchange to which all of
 * its members here have given, and not all of its members are here. False if there is none that was
 * not taken up before. *payload is NULL if there is no memory. */
bool weft_hub_gather(struct weft_hub *hub, unsigned char **payload, size_t *bytes);

/* True if an exchange was taken up, and its members here wait for those of other hosts. */
bool weft_hub_is_pending(const struct weft_hub *hub);

/* Takes the payload of a SHARED. 0, or -EPROTO: no exchange waits for that. */
int weft_hub_complete(struct weft_hub *hub, const void *payload, size_t bytes);

/* True if others have given to an exchange of all PEs to which this PE has not. */
bool weft_hub_awaits(const struct weft_hub *hub, int pe);

/* Ends exchanges among some PEs of which a member has finalized, and comes no more: the members
 * that have given hear -ECONNABORTED. Call it every WEFT_HUB_LOOK_MS while weft_hub_is_waiting: the
 * page, where PEs say that they finalize, wakes nobody. */
enum { WEFT_HUB_LOOK_MS = 20 };
bool weft_hub_is_waiting(const struct weft_hub *hub);
void weft_hub_judge(struct weft_hub *hub, const struct weft_control *control);

/* True if a delivery has stopped for a reason whose end no poll announces: the kernel lets no more
 * descriptors be under way, or a socket for answers is full. Call weft_hub_retry after a moment. */
bool weft_hub_crowded(const struct weft_hub *hub);
void weft_hub_retry(struct weft_hub *hub);

#endif
