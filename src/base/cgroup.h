/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the cgroups that a process belongs to, of version 1 or 2, and reads their files. Both
 * versions are expected at the usual mount point, /sys/fs/cgroup. */
#ifndef WEFT_BASE_CGROUP_H
#define WEFT_BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { WEFT_CGROUP_PATH_MAX = 1024, WEFT_CGROUP_FILE_MAX = WEFT_CGROUP_PATH_MAX + 64 };

struct weft_cgroup {
    char folder[WEFT_CGROUP_PATH_MAX];
    size_t
        mount_length; /* length of the mount point, the outermost group, at the start of `folder` */
    bool version_2;
};

/* Finds the group of process `pid` (0: this one) in the hierarchy of version 2, or in the hierarchy
 * of version 1 that has the controller. Returns false if there is no such group or its path is too
 * long. */
bool weft_cgroup_find(struct weft_cgroup *cgroup, pid_t pid, const char *controller,
                      bool version_2);

/* Changes `cgroup` to its parent. Returns false if it is the outermost group already. */
bool weft_cgroup_ascend(struct weft_cgroup *cgroup);

/* Returns the number after `key` in a file of "key number" lines; with "" as key, the first number
 * of the file. Returns UINT64_MAX if there is none or the value is the word "max". Also reads files
 * of /proc and /sys that have this form. */
uint64_t weft_cgroup_number(const char *folder, const char *file, const char *key);

#endif
