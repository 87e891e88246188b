/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns this process's children into PEs. */
#ifndef WEFT_LAUNCH_SPAWN_H
#define WEFT_LAUNCH_SPAWN_H

#include "launch/run.h"

/* Makes sockets, hub and children; run->npes, options, control and what was found are set. 0 or
 * -errno, said; on failure children that run already are killed. */
int weft_spawn_all(struct weft_run *run);

/* The reason why a child could not become its program. */
struct weft_spawn_failure {
    int error;                   /* an errno */
    const char *action, *object; /* "run" this program, "start in" this folder */
    bool beside;                 /* a program of this name lies in the folder where the PE starts */
};
bool weft_spawn_failure(const struct weft_run *run, struct weft_spawn_failure *failure);

#endif
