/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out whether the kernel has killed for want of memory, and whose limit that was. */
#ifndef WEFT_LAUNCH_SHORTAGE_H
#define WEFT_LAUNCH_SHORTAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct weft_cgroup;

/* The kernel's counts of such kills when a process came. */
struct weft_shortage {
    struct weft_cgroup *cgroup; /* its memory cgroup; NULL: none was found */
    uint64_t kills;             /* for want of memory: in the cgroup, or on the machine */
};

/* Notes where this process is, and what has been counted there by now. */
void weft_shortage_note(struct weft_shortage *before);

/* The same for another process: as `ours` has it, unless it is in a cgroup of its own. */
void weft_shortage_note_other(struct weft_shortage *before, pid_t pid,
                              const struct weft_shortage *ours);

enum { WEFT_SHORTAGE_TEXT_MAX = 1152 }; /* the path of a cgroup, and some words */

/* Explains the death of a process that was killed: returns 0 if the kernel has not killed for want
 * of memory since, otherwise the length of a text on what ran short. */
int weft_shortage_text(const struct weft_shortage *before, char *text, size_t bytes);

#endif
