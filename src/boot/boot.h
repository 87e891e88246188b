/* SPDX-License-Identifier: BSD-3-Clause */
/* A process becomes a PE here: it learns its number, and exchanges data and descriptors with the
 * others.
 *
 * Our launcher leaves a socket and the control page to each PE in two inherited descriptors, named
 * by the environment. The launcher's hub gathers what the PEs give and hands it to all. Under other
 * launchers (boot/source.h) the PEs meet by themselves, and the first PE of each host serves the
 * hub. Without any launcher a process is a job of one PE and every call here is trivial.
 *
 * This header brings exchanges, the end of a job, its hosts, and the limits of the wire to the
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
    struct weft_control *control; /* never NULL between join and leave */
};

/* Valid between weft_boot_join and weft_boot_leave. */
extern struct weft_boot weft_boot;

/* True if the environment says that a launcher started this process with more than one PE. Cheap
 * and without side effects, so that it can be asked before main. */
bool weft_boot_expected(void);

/* Stands in for a launcher: the program itself says which PE this is, before the first join. The
 * others are found with `key`, which weft_boot_key has drawn on one of them, or else with
 * `allgather`: every PE gives `bytes` of `mine`, and all receive what PE i gave at all + i * bytes;
 * 0: done. */
#define WEFT_BOOT_KEY_BYTES 120
struct weft_boot_given {
    int pe, npes;
    unsigned char job_key[WEFT_BOOT_KEY_BYTES];
    int (*allgather)(const void *mine, void *all, size_t bytes, void *context);
    void *context;
};
void weft_boot_give(const struct weft_boot_given *what);
int weft_boot_key(unsigned char job_key[WEFT_BOOT_KEY_BYTES]);

/* True if this process has joined before. It stays the same PE of as many, which go to *pe and
 * *npes. */
bool weft_boot_attached(int *pe, int *npes);

/* Becomes a PE: attaches to the job the first time, takes the own `alive` mutex, writes pid and
 * state, and tells the launcher. Under oshrun it is local, and the kernel kills this process when
 * the launcher is gone; otherwise the first join is collective. May be called again after
 * weft_boot_leave. 0 or -errno, logged. */
int weft_boot_join(void);

/* Stops being a PE in order: state LEFT, `alive` released, launcher told. Local. */
void weft_boot_leave(void);

#endif
