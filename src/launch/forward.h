/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipes of a daemon's PEs. Output is sent to the front unchanged; input from the front is
 * written to the standard input of PE 0.
 *
 * No function here blocks. Unacknowledged data is bounded in both directions: if too much output is
 * unacknowledged, the pipes are not read, and PEs block as with any slow reader. */
#ifndef WEFT_LAUNCH_FORWARD_H
#define WEFT_LAUNCH_FORWARD_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct weft_forward;

/* Functions that receive what the pipes report. */
struct weft_forward_above {
    void (*output)(void *owner, int pe, int stream, const void *bytes,
                   size_t count);             /* no bytes: end of the stream */
    void (*taken)(void *owner, size_t count); /* input in PE 0's pipe, or that it will not read */
    void *owner;
};

/* Makes the pipes for the PEs of this host. Returns 0, or -errno after logging the reason. */
int weft_forward_open(struct weft_forward **forward, int npes,
                      const struct weft_forward_above *above);

/* Closes all pipes. */
void weft_forward_free(struct weft_forward *forward);

/* Connects the standard streams to the pipes, in the child that becomes this PE. */
void weft_forward_redirect(const struct weft_forward *forward, int pe);

/* Closes the PEs' ends of the pipes in this process, after all PEs are started. */
void weft_forward_start(struct weft_forward *forward);

/* weft_forward_polls fills weft_forward_count entries for poll; weft_forward_serve reads and writes
 * according to poll's results. */
int weft_forward_count(const struct weft_forward *forward);
void weft_forward_polls(const struct weft_forward *forward, struct pollfd *polls);
void weft_forward_serve(struct weft_forward *forward, const struct pollfd *polls);

/* Acknowledges that many bytes of output. */
void weft_forward_taken(struct weft_forward *forward, size_t count);

/* Closes the pipes of stream 1 or 2 because its reader has gone; PEs that write to it get SIGPIPE.
 */
void weft_forward_close(struct weft_forward *forward, int which);

/* Passes on input for PE 0; a count of 0 is the end of input. Returns 0, or -EPROTO if this exceeds
 * the limit, follows the end, or PE 0 is on another host. */
int weft_forward_input(struct weft_forward *forward, const void *bytes, size_t count);

/* After the PEs have ended, reads what is left in the pipes, without waiting for more: processes
 * that PEs have left behind may still hold the pipes open. Returns true if everything has been
 * sent. */
bool weft_forward_finish(struct weft_forward *forward);

#endif
