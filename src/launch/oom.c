/* SPDX-License-Identifier: BSD-3-Clause */
/* Both versions of cgroups count a kill in the group of the killed process, even if the limit of an
 * ancestor was exceeded: version 2 in memory.events, version 1 in memory.oom_control. The exceeded
 * limit is then that of the innermost group, from the process's group upwards, that has a limit and
 * a usage close to it. If the kernel does not count per group, the machine's count is read, which
 * the kernel updates later. */
#include "launch/oom.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cgroup.h"

/* Returns the count of kills in this group, or UINT64_MAX if the kernel does not count them. */
static uint64_t kills_read(const struct weft_cgroup *cgroup) {
    return weft_cgroup_number(
        cgroup->folder, cgroup->version_2 ? "memory.events" : "memory.oom_control", "oom_kill ");
}

static uint64_t kills_read_machine(void) {
    return weft_cgroup_number("/proc", "vmstat", "oom_kill ");
}

static void note_cgroup(struct weft_oom *before, pid_t pid) {
    struct weft_cgroup found;
    before->cgroup = NULL;
    for (int version_2 = 0; version_2 <= 1 && !before->cgroup; version_2++) {
        if (!weft_cgroup_find(&found, pid, "memory", version_2))
            continue;
        before->kills = kills_read(&found);
        if (before->kills != UINT64_MAX && (before->cgroup = malloc(sizeof found)) != NULL)
            *before->cgroup = found;
    }
    if (!before->cgroup)
        before->kills = kills_read_machine();
}

void weft_oom_note(struct weft_oom *before) {
    note_cgroup(before, 0);
}

void weft_oom_note_other(struct weft_oom *before, pid_t pid, const struct weft_oom *ours) {
    struct weft_cgroup found;
    *before = *ours;
    if (!ours->cgroup || !weft_cgroup_find(&found, pid, "memory", ours->cgroup->version_2) ||
        strcmp(found.folder, ours->cgroup->folder) != 0)
        note_cgroup(before, pid);
}

/* Returns the limit of a group in bytes if its usage came close to it, otherwise 0. */
static uint64_t limit_is_met(const struct weft_cgroup *cgroup) {
    const char *folder = cgroup->folder;
    bool v2 = cgroup->version_2;
    uint64_t limit = weft_cgroup_number(folder, v2 ? "memory.max" : "memory.limit_in_bytes", "");
    uint64_t most =
        weft_cgroup_number(folder, v2 ? "memory.peak" : "memory.max_usage_in_bytes", "");
    if (v2 && most == UINT64_MAX &&
        limit < UINT64_MAX / 2) /* an older kernel, without memory.peak */
        return weft_cgroup_number(folder, "memory.events", "max ") > 0 ? limit : 0;
    return limit < UINT64_MAX / 2 && most >= limit - limit / 8 ? limit : 0;
}

/* Finds the innermost group, from `cgroup` upwards, whose limit was reached. Returns the limit with
 * the group in `cgroup`, or 0. The root is included: in a container it has the container's limit.
 */
static uint64_t limit_find(struct weft_cgroup *cgroup) {
    uint64_t limit;
    do
        limit = limit_is_met(cgroup);
    while (!limit && weft_cgroup_ascend(cgroup));
    return limit;
}

int weft_oom_text(const struct weft_oom *before, char *text, size_t bytes) {
    uint64_t kills = before->cgroup ? kills_read(before->cgroup) : kills_read_machine();
    if (kills == UINT64_MAX || kills <= before->kills)
        return 0;
    if (!before->cgroup)
        return snprintf(text, bytes, "the machine has no memory left");
    struct weft_cgroup cgroup = *before->cgroup;
    uint64_t limit = limit_find(&cgroup);
    if (limit)
        return snprintf(text, bytes, "cgroup %s has reached its limit of %.4g MiB", cgroup.folder,
                        (double)limit / (1 << 20));
    return snprintf(text, bytes,
                    "no limit of cgroup %s was reached: the machine has no memory left",
                    before->cgroup->folder);
}
