/* SPDX-License-Identifier: BSD-3-Clause */
/* The PEs of one host find each other here if oshrun has not connected them.
 *
 * PE 0 opens a listening socket (boot/rendezvous.h) and receives the others, its peers, which send
 * their number and the job's key. When all have come, PE 0 makes the control page, sends it to all
 * and closes the listening socket. The connections stay: they are those of the hub, which PE 0
 * serves itself. */
#ifndef WEFT_BOOT_MEET_H
#define WEFT_BOOT_MEET_H

#include <sched.h>
#include <stdint.h>
#include "boot/source.h"

struct weft_attachment;

/* Fills in the attachment's page and hub, where PE 0 has a socket to itself. Collective over the
 * job. 0 or -errno, logged. */
int weft_meet(const struct weft_identity *self, struct weft_attachment *attachment);

/* PE 0's part of it. */
int weft_meet_receive(const struct weft_identity *self, struct weft_attachment *attachment);

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

/* The answer is WEFT_WIRE_WELCOME with the control page, or WEFT_WIRE_REFUSAL with a reason as
 * text; without one the peer belongs to another job. */
enum { WEFT_REFUSAL_BYTES = 256 };

/* After three seconds one line says which PEs this one waits for and why; after five minutes it
 * gives up. */
enum { WEFT_MEET_HINT_MS = 3000, WEFT_MEET_LIMIT_MS = 300000 };

#endif
