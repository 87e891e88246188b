/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection of a process with the rest of its job: the hub's socket, which speaks boot/wire.h,
 * and the control page. It is made and checked once per process (boot.c), however often the
 * process joins and leaves. Both come with this header, and the log. */
#ifndef WEFT_BOOT_ATTACHMENT_H
#define WEFT_BOOT_ATTACHMENT_H

#include <stdbool.h>
#include "base/log.h"
#include "boot/control.h"
#include "boot/wire.h"

struct weft_source;

struct weft_attachment {
    bool valid;    /* false before, and again in a forked child */
    bool launched; /* oshrun watches over the job, and writes the abort word if it can */
    int pe, npes;
    int root;      /* the first PE of this host, whose agent serves the hub if oshrun does not */
    int hub, life; /* -1 when alone; life: -1 without oshrun */
    struct weft_control *control;     /* mapped for good: other threads may look after leaving */
    const struct weft_source *source; /* which has to be closed at the end; NULL: none */
};

extern struct weft_attachment weft_attachment;

/* Fills it with what oshrun has left to this process (inherit.c). 0 or -errno, logged. */
int weft_inherit(void);

#endif
