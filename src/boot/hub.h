/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's side of the exchange: what every PE gives in a round goes to every PE.
 *
 * Where some PEs are on other hosts, the hub gathers what those of this one give. Its owner takes a
 * gathered round up, and completes it with what comes back: the contributions of all.
 *
 * Nothing here blocks. A PE that is slow or stopped only keeps its own position in the round; the
 * others are served. Descriptors are closed when the last PE has received them. The owner of the
 * hub polls: weft_hub_events says for what, weft_hub_serve does what became possible. */
#ifndef WEFT_BOOT_HUB_H
#define WEFT_BOOT_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct weft_hub;

enum weft_hub_news {
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

/* Closes every socket and descriptor: the PEs that wait see the end. NULL is fine. */
void weft_hub_close(struct weft_hub *hub);

/* The socket of a PE (-1: lost) and for which events to poll it. */
int weft_hub_socket(const struct weft_hub *hub, int pe);
short weft_hub_events(const struct weft_hub *hub, int pe);

/* Reads at most one message of this PE and sends it what it can take. */
enum weft_hub_news weft_hub_serve(struct weft_hub *hub, int pe, struct weft_hub_report *report);

/* A round to which all PEs of this host have given, where there are others: `count` contributions
 * of `bytes`, in the order of PEs. False: there is none that was not taken before. *all is to be
 * freed; NULL: no memory. */
struct weft_hub_gathered {
    unsigned char *all;
    int count;
    size_t bytes;
};
bool weft_hub_gather(struct weft_hub *hub, struct weft_hub_gathered *gathered);

/* True if all PEs of this host have given to a round for which others are waited. */
bool weft_hub_is_pending(const struct weft_hub *hub);

/* The contributions of all PEs of the job to the round that was taken last. 0, or -EPROTO: no round
 * waits for that, or not for so many bytes. */
int weft_hub_complete(struct weft_hub *hub, const void *all, size_t bytes);

/* True if others have given to a round to which this PE has not. */
bool weft_hub_awaits(const struct weft_hub *hub, int pe);

/* True if a delivery stopped because the kernel lets no more descriptors be under way. No poll
 * announces the end of that, so the caller calls weft_hub_retry after a moment. */
bool weft_hub_crowded(const struct weft_hub *hub);
void weft_hub_retry(struct weft_hub *hub);

#endif
