/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends what PEs write to the control page of their host to the pages of other hosts: states,
 * departures and long waits. One process per host looks at the entries of its own PEs, sends
 * changes, and writes the received changes of other hosts' PEs; no other process does. */
#ifndef WEFT_BOOT_PE_STATUS_H
#define WEFT_BOOT_PE_STATUS_H

#include <stdbool.h>
#include "boot/control.h"
#include "boot/frames.h"
#include "boot/tree.h"

struct weft_pe_status;

/* Sends a frame to the other hosts. */
typedef void weft_pe_status_send(void *owner, const struct weft_frame *frame, const void *payload);

/* Opens the status of a page; the hosts of PEs are already known (boot/hosts.h). Returns 0 or
 * -ENOMEM, without logging. */
int weft_pe_status_open(struct weft_pe_status **status, struct weft_control *control, int npes,
                        weft_pe_status_send *send, void *owner);
void weft_pe_status_close(struct weft_pe_status *status);

/* Looks at the page and sends changes as frames PE_STATUS and LONG_WAIT. */
void weft_pe_status_tell(struct weft_pe_status *status);

/* Writes a received frame to the page. Its PEs must be on `host` or, if that is -1, on any other
 * host than this. Returns NULL, or why the frame is invalid. */
const char *weft_pe_status_hear(struct weft_pe_status *status, int host,
                                const struct weft_frame *frame, const void *payload);

#endif
