/* SPDX-License-Identifier: BSD-3-Clause */
/* A job that oshrun has not started: a thread of the first PE of each host does for its host what a
 * launcher of ours does. It serves the hub and, where there are other hosts, tells them what
 * happens here, and writes to the control page what happens there. PE 0's agent is in the middle,
 * and the others have a connection each to it:
 *
 *      agent of a host                         agent of PE 0
 *      GAVE, NEWS, STALL, CAUSE  ------------>
 *                                <-----------  SHARED, NEWS, STALL, CAUSE
 *      BYE     --------- both ways -----------      its process ends, and has said all
 *
 * A connection that ends without BYE is the death of the PE at its other end. */
#ifndef WEFT_BOOT_AGENT_H
#define WEFT_BOOT_AGENT_H

#include "boot/host_link.h"

struct weft_hub;

/* What an agent begins with, which becomes its own, also on failure. */
struct weft_agent_setup {
    struct weft_hub *hub;
    struct weft_host_link *link; /* to each host, by malloc; those that are not open are unused */
    struct weft_host_link *parting; /* others, by malloc, that end soon; NULL: there are none */
    int nparting;
};

/* Once per process, when the attachment and its hosts are known. 0 or -errno, logged. */
int weft_agent_start(const struct weft_agent_setup *setup);

/* When it returns, other hosts have been told what the page shows now: that this PE has left, say.
 * Nothing in a process without an agent, or a job of one host. */
void weft_agent_tell(void);

/* Called where this process ends: others hear what there is to hear before. It takes half a second
 * or so, and nothing in a process without an agent, or a job of one host. */
void weft_agent_finish(void);

/* In a forked child: closes what it must not hold open. */
void weft_agent_forget(void);

#endif
