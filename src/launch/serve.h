/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher of the PEs of one host: oshrun itself, or a daemon of it where there are several. It
 * sleeps in poll until something happens. There is no port and no name in any file system, so
 * nothing can be left behind. */
#ifndef WEFT_LAUNCH_SERVE_H
#define WEFT_LAUNCH_SERVE_H

#include <poll.h>
#include "launch/run.h"

/* Makes all that PEs need before they are started (launch/spawn.h), of those that
 * weft_boot_is_here; `hosts` is NULL where there is one host alone. 0 or -errno, not said. */
int weft_serve_open(struct weft_run *run, const struct weft_options *options,
                    const struct weft_hosts_given *hosts);

/* Waits until something happens to the PEs, or to `others`, which are told by their revents, or
 * until patience_ms are over (-1: there is no such limit). Then does what follows for the PEs. */
void weft_serve_turn(struct weft_run *run, struct pollfd *others, int nothers, int patience_ms);

/* True if all PEs of this host are over, or the job has been ended. */
bool weft_serve_is_over(const struct weft_run *run);

#endif
