/* SPDX-License-Identifier: BSD-3-Clause */
/* What PEs write to the control page of their host, for those on other hosts to read in theirs:
 * states, departures and waits that last. One process of each host looks at the entries of its own
 * PEs, tells of what has changed, and writes what it hears of others; nobody else does. */
#ifndef WEFT_BOOT_PE_STATUS_H
#define WEFT_BOOT_PE_STATUS_H

#include <stdbool.h>
#include "boot/control.h"
#include "boot/frames.h"
#include "boot/tree.h"

struct weft_pe_status;

/* Tells the other hosts. */
typedef void weft_pe_status_send(void *owner, const struct weft_frame *frame, const void *payload);

/* Of this page; which PEs are here is known already (boot/hosts.h). 0, or -ENOMEM, not logged. */
int weft_pe_status_open(struct weft_pe_status **status, struct weft_control *control, int npes,
                        weft_pe_status_send *send, void *owner);
void weft_pe_status_close(struct weft_pe_status *status);

/* Looks, and tells of what has changed: NEWS and STALL. */
void weft_pe_status_tell(struct weft_pe_status *status);

/* Writes what such a frame says of PEs of this host, or with -1 of any that is not here. NULL, or
 * why it makes no sense. */
const char *weft_pe_status_hear(struct weft_pe_status *status, int host,
                                const struct weft_frame *frame, const void *payload);

#endif
