/* SPDX-License-Identifier: BSD-3-Clause */
/* The executable's globals and statics as symmetric memory.
 *
 * Before main, .data and .bss are copied into a memfd that is mapped over them in place: addresses
 * and contents stay, but peers can map the same memory. If only the program knows of its peers,
 * this happens in shmemx_init_attr, provided that the process has a single thread. It applies only
 * to an executable that itself links Weft, not to an interpreter that loads the library later. */
#ifndef WEFT_JOB_STATIC_H
#define WEFT_JOB_STATIC_H

#include <stddef.h>
#include <stdint.h>
#include "job/window.h"

/* The range from the first writable segment to the end of the last one. An executable has several
 * writable segments if it is compiled with -mcmodel=medium, for example, and constants may lie
 * between them. */
struct weft_static {
    uintptr_t begin;         /* page-aligned; 0 if nothing is symmetric */
    size_t bytes;            /* whole pages */
    struct weft_holes holes; /* whole pages that are not moved */
    uint64_t fingerprint;    /* of the executable: PEs share statics only if it is equal */
    int fd;                  /* the memfd, or -1 if the data has not been moved */
};

/* Returns the range and state of the data. They no longer change after weft_static_move_late. */
const struct weft_static *weft_static_data(void);

/* Moves the data if it was not moved before main because no launcher announced peers. Called before
 * the process first joins a job, after the program has set its attributes. */
void weft_static_move_late(void);

/* Returns why globals and statics of this executable are not symmetric, and the remedy, if `p`
 * points to one of them; otherwise NULL. */
const char *weft_static_refusal(const void *p);

#endif
