/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent: a thread of the first PE of each host that acts as the launcher of its host, in jobs
 * that oshrun has not started. It serves the hub. If there are other hosts, it sends them the
 * states of this host's PEs, and writes their PEs' states to this host's control page. Each agent
 * has a connection to the agent of PE 0:
 *
 *      agent of a host                              agent of PE 0
 *      GAVE, PE_STATUS, LONG_WAIT, CAUSE  -------->
 *                                         <--------  SHARED, PE_STATUS, LONG_WAIT, CAUSE
 *      BYE     ----------- both ways -------------   the last frame before the process ends
 *
 * A connection that ends without BYE means that the PE at its other end has died. */
#ifndef WEFT_BOOT_AGENT_H
#define WEFT_BOOT_AGENT_H

#include "boot/host_link.h"

struct weft_hub;

/* The arguments of weft_agent_start, which takes ownership of them, also on failure. */
struct weft_agent_setup {
    struct weft_hub *hub;
    struct weft_host_link *link; /* one per host, by malloc; those that are not open are unused */
    struct weft_host_link *parting; /* further links that end soon, by malloc; may be NULL */
    int nparting;
};

/* Starts the agent, once per process, after the attachment and its hosts are known. Returns 0, or
 * -errno after logging the reason. */
int weft_agent_start(const struct weft_agent_setup *setup);

/* Blocks until the other hosts have been sent the current contents of the page, such as the state
 * LEFT of this PE. Does nothing in a process without an agent or in a job on one host. */
void weft_agent_tell(void);

/* Sends what other hosts have to know before this process ends. Takes about half a second. Does
 * nothing in a process without an agent or in a job on one host. */
void weft_agent_finish(void);

/* Closes the agent's descriptors in a forked child. */
void weft_agent_forget(void);

#endif
