/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out whether the kernel has killed a process because memory ran out, and which limit was
 * reached. */
#ifndef WEFT_LAUNCH_OOM_H
#define WEFT_LAUNCH_OOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct weft_cgroup;

/* The kernel's count of such kills at an earlier time. */
struct weft_oom {
    struct weft_cgroup *cgroup; /* its memory cgroup; NULL: not found */
    uint64_t kills;             /* kills because of memory, in the cgroup or on the machine */
};

/* Records the cgroup of this process and its current count. */
void weft_oom_note(struct weft_oom *before);

/* Does the same for another process: copies `ours` unless the process is in a cgroup of its own. */
void weft_oom_note_other(struct weft_oom *before, pid_t pid, const struct weft_oom *ours);

enum { WEFT_OOM_TEXT_MAX = 1152 }; /* the path of a cgroup, and some words */

/* Explains why a process was killed. Returns 0 if the kernel's count has not increased since
 * `before`, otherwise the length of a text that names the exhausted memory. */
int weft_oom_text(const struct weft_oom *before, char *text, size_t bytes);

#endif
