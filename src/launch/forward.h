/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipes of a daemon's PEs: what they write goes up to the front as it is, and what comes down
 * goes into the standard input of PE 0.
 *
 * Nothing here waits. What the other side has not taken is bounded both ways: when too much of the
 * output is under way, pipes are not read, and PEs wait as they would for any slow reader. */
#ifndef WEFT_LAUNCH_FORWARD_H
#define WEFT_LAUNCH_FORWARD_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct weft_forward;

/* Where it all goes. */
struct weft_forward_above {
    void (*output)(void *owner, int pe, int stream, const void *bytes, size_t count); /* 0: end */
    void (*taken)(void *owner, size_t count); /* of the input */
    void *owner;
};

/* Makes the pipes of the PEs that weft_boot_is_here. 0 or -errno, not said. */
int weft_forward_open(struct weft_forward **forward, int npes,
                      const struct weft_forward_above *above);

/* Closes all pipes. */
void weft_forward_free(struct weft_forward *forward);

/* Points the standard streams to its pipes, in the child that becomes this PE. */
void weft_forward_redirect(const struct weft_forward *forward, int pe);

/* After all PEs are started: their ends are theirs alone. */
void weft_forward_start(struct weft_forward *forward);

/* Fills in what to poll for, weft_forward_count entries, and does what is possible then. */
int weft_forward_count(const struct weft_forward *forward);
void weft_forward_polls(const struct weft_forward *forward, struct pollfd *polls);
void weft_forward_serve(struct weft_forward *forward, const struct pollfd *polls);

/* So many bytes of the output have gone on. */
void weft_forward_taken(struct weft_forward *forward, size_t count);

/* Nobody reads descriptor 1 or 2 of PEs any more: they meet SIGPIPE, as with a pipe of their own.
 */
void weft_forward_close(struct weft_forward *forward, int which);

/* Input for PE 0; none: its end. 0; -EPROTO: more than may be under way, or PE 0 is elsewhere;
 * -ENOMEM. */
int weft_forward_input(struct weft_forward *forward, const void *bytes, size_t count);

/* PEs are over: reads on, but no longer than there is something, for processes that PEs have left
 * behind may have the pipes still. True: all has been sent. */
bool weft_forward_finish(struct weft_forward *forward);

#endif
