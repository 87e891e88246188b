/* SPDX-License-Identifier: BSD-3-Clause */
/* Which processors a PE runs on. */
#ifndef WEFT_LAUNCH_BIND_H
#define WEFT_LAUNCH_BIND_H

#include "launch/options.h"

/* Whether PEs get processors of their own: when there is at least one for each. `cores`: what the
 * job may use. Says so when it was asked for in vain. */
bool weft_bind_wanted(const struct weft_options *options, int cores);

/* Restricts this process to PE pe's contiguous share of the processors it may run on. */
void weft_bind_share(int pe, int npes);

#endif
