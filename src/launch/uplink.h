/* SPDX-License-Identifier: BSD-3-Clause */
/* A daemon's connection to its front: frames (boot/frames.h) over TLS, beats both ways, and the
 * daemon's standard input, whose end is the front's, too. The front is lost when one of them ends,
 * or when it has been silent for as long as the start text says and its host has given no new sign
 * of life either (boot/frames.h): a front that is stopped is waited for. Nothing is sent any more
 * then. */
#ifndef WEFT_LAUNCH_UPLINK_H
#define WEFT_LAUNCH_UPLINK_H

#include <poll.h>
#include "boot/frames.h"
#include "launch/start.h"

struct weft_uplink;

/* Connects, and proves the key. It may take seconds. 0 or -errno, said. */
int weft_uplink_open(struct weft_uplink **uplink, const struct weft_start *start);

/* Closes the connection; what is queued is lost. */
void weft_uplink_close(struct weft_uplink *uplink);

/* The network by which this host speaks to the front. */
const struct weft_network *weft_uplink_network(const struct weft_uplink *uplink);

/* The address that it has there, numeric; NULL: not known, or link-local. */
const char *weft_uplink_address(const struct weft_uplink *uplink);

void weft_uplink_send(struct weft_uplink *uplink, const struct weft_frame *frame,
                      const void *payload);

/* What to poll for, and when it is time for the next beat. */
enum { WEFT_UPLINK_POLLS = 2 };
void weft_uplink_polls(const struct weft_uplink *uplink, struct pollfd polls[WEFT_UPLINK_POLLS]);
int weft_uplink_patience_ms(const struct weft_uplink *uplink);

/* After a poll: sends what can go, and a beat when it is time. */
void weft_uplink_turn(struct weft_uplink *uplink, const struct pollfd polls[WEFT_UPLINK_POLLS]);

/* The next frame but beats; false: there is none. *payload lives until the next call. Take all of
 * them in each turn, before asking whether the front is lost. */
bool weft_uplink_next(struct weft_uplink *uplink, struct weft_frame *frame, const void **payload);

/* What the front has sent makes no sense, and it is lost for that. */
void weft_uplink_refuse(struct weft_uplink *uplink, const char *why);

/* NULL, or why it is lost. */
const char *weft_uplink_lost(const struct weft_uplink *uplink);

#endif
