/* SPDX-License-Identifier: BSD-3-Clause */
/* cgroup v2 and v1 are both read; where a file is missing there is no such limit. A cgroup's page
 * cache counts as available: the kernel drops it before it refuses memory. */
#include "base/machine.h"
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

/* The number behind `key` in a file of "key number" lines; without a key, the file's first number.
 * "max" and what can't be read are SIZE_MAX. */
static size_t machine_read(const char *path, const char *key) {
    FILE *file = fopen(path, "re");
    if (!file)
        return SIZE_MAX;
    char line[256];
    size_t value = SIZE_MAX, length = key ? strlen(key) : 0;
    while (fgets(line, sizeof line, file)) {
        if (key && strncmp(line, key, length) != 0)
            continue;
        char *end, *number = line + length;
        unsigned long long parsed = strtoull(number, &end, 10);
        if (end != number)
            value = parsed;
        break;
    }
    fclose(file);
    return value;
}

size_t weft_machine_memory_total(void) {
    return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

/* This process's folder below the cgroup mount for a controller; v2 has the empty controller name.
 */
static int machine_cgroup(const char *controller, char *folder, size_t bytes) {
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[PATH_BYTES];
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file)) {
        char *names = strchr(line, ':');
        char *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        names++;
        path[strcspn(path, "\n")] = '\0';
        if (strcmp(names, controller) == 0) {
            snprintf(folder, bytes, "%s", path);
            found = 1;
        }
    }
    if (file)
        fclose(file);
    return found;
}

static size_t machine_saturating_less(size_t limit, size_t used) {
    return limit == SIZE_MAX ? SIZE_MAX : used >= limit ? 0 : limit - used;
}

/* What one cgroup still grants. */
static size_t machine_cgroup_room(const char *folder, int v2, char *name, size_t name_bytes) {
    char path[2 * PATH_BYTES];
    snprintf(name, name_bytes, "%s/%s", folder, v2 ? "memory.max" : "memory.limit_in_bytes");
    size_t limit = machine_read(name, NULL);
    snprintf(path, sizeof path, "%s/%s", folder, v2 ? "memory.current" : "memory.usage_in_bytes");
    size_t used = machine_read(path, NULL);
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    size_t cache = machine_read(path, v2 ? "inactive_file " : "total_inactive_file ");
    if (used == SIZE_MAX)
        return SIZE_MAX;
    return machine_saturating_less(limit, used - (cache < used ? cache : 0));
}

/* Walks from the own cgroup up to the mount: every level may limit. */
static size_t machine_cgroups_room(int v2, const char **decided) {
    static char name[PATH_BYTES], best_name[PATH_BYTES];
    const char *mount = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    char own[PATH_BYTES / 4], folder[PATH_BYTES / 2];
    size_t best = SIZE_MAX;
    if (!machine_cgroup(v2 ? "" : "memory", own, sizeof own))
        return best;
    for (;;) {
        snprintf(folder, sizeof folder, "%s%s", mount, strcmp(own, "/") == 0 ? "" : own);
        size_t room = machine_cgroup_room(folder, v2, name, sizeof name);
        if (room < best) {
            best = room;
            memcpy(best_name, name, sizeof name);
            *decided = best_name;
        }
        char *slash = strrchr(own, '/');
        if (!slash || own[0] == '\0')
            return best;
        *slash = '\0';
    }
}

size_t weft_machine_memory_available(const char **limit) {
    const char *decided = "MemAvailable in /proc/meminfo", *cgroup = decided;
    size_t kilobytes = machine_read("/proc/meminfo", "MemAvailable:");
    size_t best = kilobytes == SIZE_MAX ? SIZE_MAX : kilobytes * 1024;
    for (int v2 = 0; v2 <= 1; v2++) {
        size_t room = machine_cgroups_room(v2, &cgroup);
        if (room < best) {
            best = room;
            decided = cgroup;
        }
    }
    if (limit)
        *limit = decided;
    return best;
}

/* cpu.max is "quota period", v1 has two files; a missing or unlimited quota is no limit. */
static int machine_quota_cores(void) {
    char own[PATH_BYTES / 4], path[PATH_BYTES];
    if (machine_cgroup("", own, sizeof own)) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", own);
        FILE *file = fopen(path, "re");
        double quota = 0, period = 0;
        int read = file ? fscanf(file, "%lf %lf", &quota, &period) : 0;
        if (file)
            fclose(file);
        if (read == 2 && quota > 0 && period > 0)
            return (int)((quota + period - 1) / period);
    }
    size_t quota = machine_read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", NULL);
    size_t period = machine_read("/sys/fs/cgroup/cpu/cpu.cfs_period_us", NULL);
    if (quota < INT_MAX && quota > 0 && period < INT_MAX && period > 0)
        return (int)((quota + period - 1) / period);
    return INT_MAX;
}

int weft_machine_cores(void) {
    cpu_set_t mask;
    int allowed = sched_getaffinity(0, sizeof mask, &mask) == 0
                      ? CPU_COUNT(&mask)
                      : (int)sysconf(_SC_NPROCESSORS_ONLN);
    int quota = machine_quota_cores();
    return allowed < 1 ? 1 : allowed < quota ? allowed : quota < 1 ? 1 : quota;
}
