/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher of the PEs of one host: oshrun itself, or a daemon if there are several hosts. It
 * sleeps in poll until something happens. It uses no port and no name in a file system, so nothing
 * can be left over after its end. */
#ifndef WEFT_LAUNCH_SERVE_H
#define WEFT_LAUNCH_SERVE_H

#include <poll.h>
#include "launch/run.h"

/* Makes everything that the PEs of this host need before they are started (launch/spawn.h). `hosts`
 * is NULL if the job has one host. Returns 0, or -errno after logging the reason. */
int weft_serve_open(struct weft_run *run, const struct weft_options *options,
                    const struct weft_hosts_given *hosts);

/* Waits until something happens to the PEs or to the descriptors in `others`, whose revents are
 * set, or until patience_ms have passed (-1: no limit). Then handles the events of the PEs. */
void weft_serve_turn(struct weft_run *run, struct pollfd *others, int nothers, int patience_ms);

/* Returns whether all PEs of this host have ended, or the job has been ended. */
bool weft_serve_is_over(const struct weft_run *run);

#endif
