/* SPDX-License-Identifier: BSD-3-Clause */
/* This room makes a process a PE: it finds its number, and exchanges data and descriptors with the
 * other PEs.
 *
 * oshrun passes each PE a socket and the control page as two inherited descriptors, named in the
 * environment. oshrun's hub gathers the contributions of the PEs and sends all to all. Under other
 * launchers (boot/source.h) the PEs find each other, and the first PE of each host serves the hub.
 * Without a launcher a process is a job of one PE, and all functions here are trivial.
 *
 * This header includes exchanges, the end of a job, its hosts, and the limits of messages for the
 * rooms above. */
#ifndef WEFT_BOOT_BOOT_H
#define WEFT_BOOT_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "boot/end.h"
#include "boot/exchange.h"
#include "boot/hosts.h"
#include "boot/wire.h"

struct weft_control;

struct weft_boot {
    int pe, npes;
    struct weft_control *control; /* not NULL while this PE has joined */
};

/* Valid between weft_boot_join and weft_boot_leave. */
extern struct weft_boot weft_boot;

/* Returns whether the environment says that a launcher started this process with more than one PE.
 * Cheap and without side effects, so it may be called before main. */
bool weft_boot_expected(void);

/* Replaces a launcher: the program gives this PE's number before the first join. The other PEs are
 * found with `key`, which weft_boot_key has generated on one of them, or with `allgather`, in which
 * every PE contributes `bytes` bytes from `mine`, and all receive PE i's at all + i * bytes; it
 * returns 0 on success. */
#define WEFT_BOOT_KEY_BYTES 120
struct weft_boot_given {
    int pe, npes;
    unsigned char job_key[WEFT_BOOT_KEY_BYTES];
    int (*allgather)(const void *mine, void *all, size_t bytes, void *context);
    void *context;
};
void weft_boot_give(const struct weft_boot_given *what);
int weft_boot_key(unsigned char job_key[WEFT_BOOT_KEY_BYTES]);

/* Returns whether this process has ever joined; stores its number and the number of PEs, which
 * never change. */
bool weft_boot_attached(int *pe, int *npes);

/* Makes this process a PE: attaches to the job the first time, locks its `alive` mutex, writes its
 * process number and state, and informs the launcher. Under oshrun this is local, and the kernel
 * kills this process when oshrun ends; otherwise the first call is collective. May be called again
 * after weft_boot_leave. Returns 0, or -errno after logging the reason. */
int weft_boot_join(void);

/* Ends being a PE, without a death: sets the state LEFT, which oshrun reads, and unlocks `alive`.
 * In a process that runs the agent, blocks until the state has been sent to the other hosts. */
void weft_boot_leave(void);

#endif
