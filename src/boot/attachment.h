/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection of a process to its job: the hub's socket, whose protocol is in boot/wire.h, and
 * the control page. It is made and checked once per process (boot.c), even if the process joins and
 * leaves several times. This header includes both, and the log. */
#ifndef WEFT_BOOT_ATTACHMENT_H
#define WEFT_BOOT_ATTACHMENT_H

#include <stdbool.h>
#include "base/log.h"
#include "boot/control.h"
#include "boot/wire.h"

struct weft_source;

struct weft_attachment {
    bool valid;     /* false before attaching, and in a forked child */
    bool by_oshrun; /* oshrun started the job, watches it, and writes the abort word */
    int pe, npes;
    int root;      /* first PE of this host; without oshrun its agent serves the hub */
    int hub, life; /* descriptors; -1 without oshrun: life, and the hub of a job of one PE */
    struct weft_control *control; /* never unmapped: threads may read it after the PE has left */
    const struct weft_source *source; /* to be closed at the end; may be NULL */
};

extern struct weft_attachment weft_attachment;

/* Fills the attachment from the descriptors that oshrun has passed to this process (inherit.c).
 * Returns 0, or -errno after logging the reason. */
int weft_inherit(void);

#endif
