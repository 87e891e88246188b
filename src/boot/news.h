/* SPDX-License-Identifier: BSD-3-Clause */
/* What PEs write to the control page of their host, for those on other hosts to read in theirs:
 * states, departures and waits that last. One process of each host looks at the entries of its own
 * PEs, tells of what has changed, and writes what it hears of others; nobody else does. */
#ifndef WEFT_BOOT_NEWS_H
#define WEFT_BOOT_NEWS_H

#include <stdbool.h>
#include "boot/control.h"
#include "boot/frames.h"
#include "boot/tree.h"

struct weft_news;

/* Tells the other hosts. */
typedef void weft_news_send(void *owner, const struct weft_frame *frame, const void *payload);

/* Of this page; which PEs are here is known already (boot/hosts.h). 0, or -ENOMEM, not logged. */
int weft_news_open(struct weft_news **news, struct weft_control *control, int npes,
                   weft_news_send *send, void *owner);
void weft_news_close(struct weft_news *news);

/* Looks, and tells of what has changed: NEWS and STALL. */
void weft_news_tell(struct weft_news *news);

/* Writes what such a frame says of PEs of this host, or with -1 of any that is not here. NULL, or
 * why it makes no sense. */
const char *weft_news_hear(struct weft_news *news, int host, const struct weft_frame *frame,
                           const void *payload);

#endif
