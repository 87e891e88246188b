/* SPDX-License-Identifier: BSD-3-Clause */
/* The cgroups that a process is in, of version 1 or 2, and what their files say. Both versions are
 * read as they are mounted everywhere, below /sys/fs/cgroup. */
#ifndef WEFT_BASE_CGROUP_H
#define WEFT_BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { WEFT_CGROUP_PATH_MAX = 1024, WEFT_CGROUP_FILE_MAX = WEFT_CGROUP_PATH_MAX + 64 };

struct weft_cgroup {
    char folder[WEFT_CGROUP_PATH_MAX];
    size_t mount_length; /* of the folder's part that is the mount, the outermost group */
    bool version_2;
};

/* The group of process `pid` (0: this one) in the hierarchy of version 2, or else in that of
 * version 1 which has the controller. False: there is none, or its path is too long. */
bool weft_cgroup_find(struct weft_cgroup *cgroup, pid_t pid, const char *controller,
                      bool version_2);

/* Goes to the group around this one; false: it is the outermost one. */
bool weft_cgroup_ascend(struct weft_cgroup *cgroup);

/* The number behind `key` in a file of "key number" lines, or with "" the first one of the file.
 * UINT64_MAX: there is none, or it is the word "max". Files of /proc and /sys have this form, too.
 */
uint64_t weft_cgroup_number(const char *folder, const char *file, const char *key);

#endif
