/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of this host's first PE to other hosts (boot/agent.h), as its other PEs hold
 * them. When that one dies the kernel closes its own descriptors only behind all of its memory,
 * some 0.2 s for each gigabyte; whoever finds it dead by its mutex ends the connections at once. */
#ifndef WEFT_BOOT_HANGUP_H
#define WEFT_BOOT_HANGUP_H

/* The first PE sends the connections to another one, in as many messages as they take, and that one
 * keeps them. 0 or -errno, not logged. */
int weft_hangup_send(int peer, const int *connections, int count);
int weft_hangup_receive(int root, int count);

/* The first PE is dead: other hosts hear the end of its connections. */
void weft_hangup(void);

/* In a forked child: closes what it must not hold open. */
void weft_hangup_forget(void);

#endif
