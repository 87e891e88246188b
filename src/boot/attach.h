/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process inherits from its launcher; found and checked once per process.
 *
 * Three descriptors. All become close-on-exec, so that a PE which turns into another program is
 * seen to be gone. Nothing is ever sent on the life socket: it becomes readable only when the
 * launcher's end closes, and then the kernel kills this process (fcntl(2), F_SETSIG). */
#ifndef WEFT_BOOT_ATTACH_H
#define WEFT_BOOT_ATTACH_H

#include <stdbool.h>

struct weft_control;

struct weft_attachment {
    bool valid; /* false before, and again in a forked child */
    int pe, npes;
    int hub, control_fd, life;    /* -1 without a launcher */
    struct weft_control *control; /* mapped for good: other threads may look after leaving */
};

extern struct weft_attachment weft_attachment;

/* Whether the environment names a launcher of more than one PE. Reads nothing else. */
bool weft_attach_expected(void);

/* Nothing when it is valid already. 0 or -errno, logged. */
int weft_attach(void);

/* The launcher has closed the socket: the job is over, or the launcher is. */
_Noreturn void weft_attach_lost(void);

#endif
