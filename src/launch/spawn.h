/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts the children that become PEs. */
#ifndef WEFT_LAUNCH_SPAWN_H
#define WEFT_LAUNCH_SPAWN_H

#include "launch/run.h"

/* Makes the sockets, the hub and the children. run->npes, options, control and the saved limits are
 * set before. Returns 0, or -errno after logging the reason; children that were started are then
 * killed. */
int weft_spawn_all(struct weft_run *run);

/* Why a child could not execute its program. */
struct weft_spawn_failure {
    int error;                   /* an errno */
    const char *action, *object; /* "run" and the program, or "start in" and the folder */
    bool beside; /* the folder in which the PE starts contains a program of this name */
};
bool weft_spawn_failure(const struct weft_run *run, struct weft_spawn_failure *failure);

#endif
