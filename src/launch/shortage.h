/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the kernel killed for want of memory, and whose limit that was. */
#ifndef WEFT_LAUNCH_SHORTAGE_H
#define WEFT_LAUNCH_SHORTAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What the kernel had counted when a process came. */
struct weft_shortage {
    char *cgroup; /* what /proc has of where it is */
    char *folder; /* of its memory cgroup; NULL: none was found */
    bool version_2;
    uint64_t kills; /* for want of memory: in the cgroup, or on the machine */
};

/* Notes where this process is, and what has been counted there by now. */
void weft_shortage_note(struct weft_shortage *before);

/* The same for another process: as `ours` has it, unless it is in a cgroup of its own. */
void weft_shortage_note_other(struct weft_shortage *before, pid_t pid,
                              const struct weft_shortage *ours);

/* For a process that was killed: 0 if the kernel has not killed for want of memory since, otherwise
 * the length of a text on what ran short. */
int weft_shortage_text(const struct weft_shortage *before, char *text, size_t bytes);

#endif
