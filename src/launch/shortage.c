/* SPDX-License-Identifier: BSD-3-Clause */
/* Both versions of cgroups count kills in the group of the process that was killed, whichever limit
 * above it was met: version 2 in memory.events, version 1 in memory.oom_control. The group whose
 * limit was met is then the innermost one, up from there, that has one and is near it. Only without
 * such a count the machine's own is read, which the kernel takes longer for. */
#include "launch/shortage.h"
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, CGROUP_BYTES = 4096 };
#define CGROUPS "/sys/fs/cgroup"

/* The number behind `key` in a file of "key number" lines, or the first of the file with key "".
 * UINT64_MAX: there is none, or it is the word "max". */
static uint64_t read_number(const char *folder, const char *name, const char *key) {
    char path[PATH_BYTES], line[256];
    uint64_t number = UINT64_MAX;
    size_t length = strlen(key);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, length) == 0 && sscanf(line + length, "%lu", &number) == 1)
            break;
    if (file)
        fclose(file);
    return number;
}

/* UINT64_MAX: the kernel has no such count for this group. */
static uint64_t read_kills(const char *folder, bool version_2) {
    return read_number(folder, version_2 ? "memory.events" : "memory.oom_control", "oom_kill ");
}

static void read_cgroup(pid_t pid, char cgroup[CGROUP_BYTES]) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, cgroup, CGROUP_BYTES - 1);
    cgroup[length > 0 ? length : 0] = '\0';
    if (file >= 0)
        close(file);
}

/* A line of /proc/PID/cgroup is "number:controllers:/path"; there are no controllers in that of
 * version 2. */
static void note_cgroup(struct weft_shortage *before, const char *cgroup) {
    char folder[PATH_BYTES];
    before->cgroup = strdup(cgroup);
    before->folder = NULL;
    for (const char *line = cgroup; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *names = strchr(line, ':'), *own = names ? strchr(names + 1, ':') : NULL;
        bool version_2 = own && own == names + 1;
        if (!own || !(version_2 || strncmp(names, ":memory:", 8) == 0))
            continue;
        snprintf(folder, sizeof folder, CGROUPS "%s%.*s", version_2 ? "" : "/memory",
                 (int)strcspn(own + 1, "\n"), own + 1);
        uint64_t kills = read_kills(folder, version_2);
        if (kills == UINT64_MAX)
            continue;
        before->folder = strdup(folder);
        before->version_2 = version_2;
        before->kills = kills;
        return;
    }
    before->kills = read_number("/proc", "vmstat", "oom_kill ");
}

void weft_shortage_note(struct weft_shortage *before) {
    char cgroup[CGROUP_BYTES];
    read_cgroup(getpid(), cgroup);
    note_cgroup(before, cgroup);
}

void weft_shortage_note_other(struct weft_shortage *before, pid_t pid,
                              const struct weft_shortage *ours) {
    char cgroup[CGROUP_BYTES];
    read_cgroup(pid, cgroup);
    *before = *ours;
    if (!ours->cgroup || strcmp(cgroup, ours->cgroup) != 0)
        note_cgroup(before, cgroup);
}

/* The limit of one group in bytes if its usage came close to it; 0 otherwise. */
static uint64_t limit_met(const char *folder) {
    uint64_t limit = read_number(folder, "memory.max", "");
    uint64_t most = read_number(folder, "memory.peak", "");
    if (limit == UINT64_MAX) {
        limit = read_number(folder, "memory.limit_in_bytes", "");
        most = read_number(folder, "memory.max_usage_in_bytes", "");
    }
    if (most == UINT64_MAX && limit < UINT64_MAX / 2) /* an older kernel without a peak */
        return read_number(folder, "memory.events", "max ") > 0 ? limit : 0;
    return limit < UINT64_MAX / 2 && most >= limit - limit / 8 ? limit : 0;
}

/* The innermost cgroup from `folder` up whose limit was met stays in it: the limit, or 0. The root
 * is one of them, for in a container it has the container's limit. */
static uint64_t find_limit(char *folder) {
    for (char *end = folder + strlen(folder); end >= folder + strlen(CGROUPS);
         end = strrchr(folder, '/')) {
        *end = '\0';
        uint64_t limit = limit_met(folder);
        if (limit)
            return limit;
    }
    return 0;
}

int weft_shortage_text(const struct weft_shortage *before, char *text, size_t bytes) {
    char folder[PATH_BYTES];
    bool grouped = before->folder != NULL;
    uint64_t kills = grouped ? read_kills(before->folder, before->version_2)
                             : read_number("/proc", "vmstat", "oom_kill ");
    if (kills == UINT64_MAX || kills <= before->kills)
        return 0;
    if (!grouped)
        return snprintf(text, bytes, "the machine has no more");
    snprintf(folder, sizeof folder, "%s", before->folder);
    uint64_t limit = find_limit(folder);
    if (limit)
        return snprintf(text, bytes, "cgroup %s has its limit of %.4g MiB", folder,
                        (double)limit / (1 << 20));
    return snprintf(text, bytes,
                    "it was in cgroup %s, and no limit there was met: the machine has "
                    "no more",
                    before->folder);
}
