/* SPDX-License-Identifier: BSD-3-Clause */
/* The executable's globals and statics as symmetric memory.
 *
 * Before main, .data and .bss are copied into a memfd that is mapped over them in place: addresses
 * and contents stay, but peers can map the same memory. Where only the program knows of peers it
 * happens in its shmemx_init_attr, as long as there is one thread. Only for an executable that
 * itself links Weft: the data of an interpreter that loads the library later is nobody's business.
 */
#ifndef WEFT_JOB_STATIC_H
#define WEFT_JOB_STATIC_H

#include <stddef.h>
#include <stdint.h>
#include "job/window.h"

/* From the first writable segment to the end of the last one. An executable has several if it is
 * compiled with -mcmodel=medium, for example, and constants may lie between them. */
struct weft_static {
    uintptr_t begin;         /* page-aligned; 0 when there is nothing symmetric */
    size_t bytes;            /* whole pages */
    struct weft_holes holes; /* whole pages that stay as they are */
    uint64_t fingerprint;    /* of the executable: PEs share statics only with their like */
    int fd;                  /* -1 unless mapped over */
};

/* What this process has; the same from weft_static_move_late to the end. */
const struct weft_static *weft_static_data(void);

/* Before the first joining, and after the program has said all it will: moves what had no reason to
 * be moved before main. */
void weft_static_move_late(void);

/* Why globals and statics of the executable are not symmetric, and what to do, if `p` points to one
 * and there is a reason for all of them; NULL otherwise. */
const char *weft_static_refusal(const void *p);

#endif
