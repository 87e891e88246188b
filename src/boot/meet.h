/* SPDX-License-Identifier: BSD-3-Clause */
/* The PEs of one host find each other here if oshrun has not started them.
 *
 * The root, the first PE of the host, opens a listening socket (boot/rendezvous.h) and accepts the
 * other PEs, its peers, which send their numbers and the job's key. When all have connected, the
 * root makes the control page, sends it to all, closes the listening socket, and starts its agent
 * (boot/agent.h). The connections become the sockets of the hub, which the agent serves.
 *
 * PEs on other hosts than PE 0's first connect to PE 0 (boot/callers.h), which sends them the host
 * of every PE when all have connected. */
#ifndef WEFT_BOOT_MEET_H
#define WEFT_BOOT_MEET_H

#include <sched.h>
#include <stdint.h>
#include "boot/source.h"

struct weft_attachment;
struct weft_places;
struct weft_host_link;

/* Sets the attachment's page and hub; the root's hub is a socket to its own agent. Collective over
 * the job. Returns 0, or -errno after logging the reason. */
int weft_meet(const struct weft_identity *self, struct weft_attachment *attachment);

/* The root's side. A root on another host than PE 0's passes the hosts of all PEs, and its
 * connection to PE 0, which becomes the agent's; both are NULL on PE 0. */
int weft_meet_as_root(const struct weft_identity *self, struct weft_attachment *attachment,
                      const struct weft_places *places, struct weft_host_link *link);

/* The peer's message, after a header of kind WEFT_WIRE_HELLO. The fields up to `version` never
 * change, so that any two versions can report that they do not match. */
struct weft_hello {
    uint64_t magic;
    char version[16];
    unsigned char key[WEFT_JOB_KEY_BYTES];
    int32_t pe, npes;
    cpu_set_t processors; /* that the peer may use */
};

#define WEFT_HELLO_MAGIC UINT64_C(0x6f6c6c6568746677) /* "wfthello" */

/* The answer is WEFT_WIRE_WELCOME with the control page, followed by the connections for
 * boot/hangup.h; or WEFT_WIRE_REFUSAL with a reason as text. A refusal without text means that the
 * socket belongs to another job. */

#endif
