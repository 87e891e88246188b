/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out whether the kernel has killed for want of memory, and whose limit that was. */
#ifndef WEFT_LAUNCH_OOM_H
#define WEFT_LAUNCH_OOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct weft_cgroup;

/* The kernel's counts of such kills when a process came. */
struct weft_oom {
    struct weft_cgroup *cgroup; /* its memory cgroup; NULL: none was found */
    uint64_t kills;             /* for want of memory: in the cgroup, or on the machine */
};

/* Notes where this process is, and what has been counted there by now. */
void weft_oom_note(struct weft_oom *before);

/* The same for another process: as `ours` has it, unless it is in a cgroup of its own. */
void weft_oom_note_other(struct weft_oom *before, pid_t pid, const struct weft_oom *ours);

enum { WEFT_OOM_TEXT_MAX = 1152 }; /* the path of a cgroup, and some words */

/* Explains the death of a process that was killed: returns 0 if the kernel has not killed for want
 * of memory since, otherwise the length of a text on what ran short. */
int weft_oom_text(const struct weft_oom *before, char *text, size_t bytes);

#endif
