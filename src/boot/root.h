/* SPDX-License-Identifier: BSD-3-Clause */
/* The first PE of a host as the root of the hub, where no launcher of ours is: it reads what the
 * PEs here send, and ends the job where one is lost. On one host it does so while it is in the
 * exchange itself (boot/exchange.c); where there are others its agent does (boot/agent.h). */
#ifndef WEFT_BOOT_ROOT_H
#define WEFT_BOOT_ROOT_H

struct weft_hub;

/* All that one PE has sent. The host that it cannot reach, as it says; -1: it does not. */
int weft_root_serve(struct weft_hub *hub, int pe);

/* Ends the job if a PE of this host is lost that has not left in order, or that others wait for. */
void weft_root_check_lost(struct weft_hub *hub);

#endif
