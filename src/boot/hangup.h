/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of this host's first PE to other hosts (boot/agent.h), held by its other PEs,
 * too. When the first PE dies, the kernel closes its descriptors only after freeing its memory,
 * which takes some 0.2 s per gigabyte. A PE that detects its death by the mutex ends the
 * connections at once. */
#ifndef WEFT_BOOT_HANGUP_H
#define WEFT_BOOT_HANGUP_H

/* The first PE sends its connections to another PE, in as many messages as necessary;
 * weft_hangup_receive receives and keeps them. Return 0 or -errno, without logging. */
int weft_hangup_send(int peer, const int *connections, int count);
int weft_hangup_receive(int root, int count);

/* Ends the connections of the first PE, which has died, so that other hosts notice. */
void weft_hangup(void);

/* Closes the connections in a forked child. */
void weft_hangup_forget(void);

#endif
