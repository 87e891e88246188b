/* SPDX-License-Identifier: BSD-3-Clause */
/* The PEs of one host find each other here if oshrun has not connected them.
 *
 * The root, PE 0, opens a listening socket (boot/rendezvous.h) and receives the others, its peers,
 * which send their number and the job's key. When all have come, the root makes the control page,
 * sends it to all and closes the listening socket. The connections stay: they are those of the hub,
 * which the root serves itself.
 *
 * PEs on other hosts call PE 0 first (boot/callers.h), which tells when all are there and who is
 * where. Then the first PE of each host is the root of those of its host. */
#ifndef WEFT_BOOT_MEET_H
#define WEFT_BOOT_MEET_H

#include <sched.h>
#include <stdint.h>
#include "boot/source.h"

struct weft_attachment;
struct weft_places;
struct weft_host_link;

/* Fills in the attachment's page and hub, where the root has a socket to itself; where there are
 * several hosts its agent is started. Collective over the job. 0 or -errno, logged. */
int weft_meet(const struct weft_identity *self, struct weft_attachment *attachment);

/* The root's part of it. On another host than PE 0's it knows the places already, and has a
 * connection to PE 0, which is moved; both are NULL for PE 0. */
int weft_meet_receive(const struct weft_identity *self, struct weft_attachment *attachment,
                      const struct weft_places *places, struct weft_host_link *link);

/* The peer's message, behind a header of kind WEFT_WIRE_HELLO. Up to `version` it never changes,
 * so that each version can tell every other why they do not fit. */
struct weft_hello {
    uint64_t magic;
    char version[16];
    unsigned char key[WEFT_JOB_KEY_BYTES];
    int32_t pe, npes;
    cpu_set_t processors; /* that the peer may use */
};

#define WEFT_HELLO_MAGIC UINT64_C(0x6f6c6c6568746677) /* "wfthello" */

/* The answer is WEFT_WIRE_WELCOME with the control page, and then connections for boot/hangup.h; or
 * WEFT_WIRE_REFUSAL with a reason as text. Without one the peer belongs to another job. */

#endif
