/* SPDX-License-Identifier: BSD-3-Clause */
/* cgroup v2 and v1 are both read; where a file is missing there is no such limit. A cgroup's page
 * cache counts as available: the kernel drops it before it refuses memory. */
#include "base/machine.h"
#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
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

/* Whether a comma-separated list has `word`; v2's list of controllers is empty. */
static bool machine_lists(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return length > 0 || *list == '\0';
    }
    return false;
}

/* This process's folder below the mount of a v1 controller, or with "" that of v2. */
static bool machine_cgroup(const char *controller, char *folder, size_t bytes) {
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[PATH_BYTES];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        char *names = strchr(line, ':');
        char *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        found = machine_lists(names + 1, controller);
        if (found)
            snprintf(folder, bytes, "%s", strcmp(path, "/") == 0 ? "" : path);
    }
    if (file)
        fclose(file);
    return found;
}

/* What one cgroup grants, SIZE_MAX without a limit; `name` receives the file that says so. */
typedef size_t machine_grant(const char *folder, bool v2, char *name);

/* The least that the own cgroup and all above it grant. `decided` stays as it is without a limit.
 */
static size_t machine_walk(const char *controller, machine_grant *grant, const char **decided) {
    static _Thread_local char deciding[PATH_BYTES];
    char name[PATH_BYTES], own[PATH_BYTES / 4], folder[PATH_BYTES / 2];
    size_t least = SIZE_MAX;
    for (int v2 = 0; v2 <= 1; v2++) {
        if (!machine_cgroup(v2 ? "" : controller, own, sizeof own))
            continue;
        for (char *end = own + strlen(own); end; end = strrchr(own, '/')) {
            *end = '\0';
            snprintf(folder, sizeof folder, "/sys/fs/cgroup%s%s%s", v2 ? "" : "/",
                     v2 ? "" : controller, own);
            size_t granted = grant(folder, v2, name);
            if (granted < least) {
                least = granted;
                memcpy(deciding, name, sizeof deciding);
                *decided = deciding;
            }
        }
    }
    return least;
}

enum { RESERVE_SHARE = 16, RESERVE_MAX = 1 << 30 };

/* What is left for others of `total` bytes. */
static size_t machine_reserve(size_t total) {
    return total / RESERVE_SHARE < RESERVE_MAX ? total / RESERVE_SHARE : RESERVE_MAX;
}

static size_t subtract(size_t from, size_t bytes) {
    return bytes < from ? from - bytes : 0;
}

static size_t machine_memory_grant(const char *folder, bool v2, char *name) {
    char path[PATH_BYTES];
    snprintf(name, PATH_BYTES, "%s/%s", folder, v2 ? "memory.max" : "memory.limit_in_bytes");
    size_t limit = machine_read(name, NULL);
    snprintf(path, sizeof path, "%s/%s", folder, v2 ? "memory.current" : "memory.usage_in_bytes");
    size_t used = machine_read(path, NULL);
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    size_t cache = machine_read(path, v2 ? "inactive_file " : "total_inactive_file ");
    if (limit == SIZE_MAX || used == SIZE_MAX)
        return SIZE_MAX;
    return subtract(limit, cache == SIZE_MAX ? used : subtract(used, cache));
}

/* `name` has been filled where there is a limit. */
static size_t machine_memory_spare(const char *folder, bool v2, char *name) {
    size_t granted = machine_memory_grant(folder, v2, name);
    return granted == SIZE_MAX ? granted
                               : subtract(granted, machine_reserve(machine_read(name, NULL)));
}

/* What the machine has, or the cgroups by `grant`, whichever is less. */
static size_t machine_memory_least(size_t available, machine_grant *grant, const char **limit) {
    const char *decided = "MemAvailable in /proc/meminfo", *cgroup = decided;
    size_t granted = machine_walk("memory", grant, &cgroup);
    if (limit)
        *limit = granted < available ? cgroup : decided;
    return granted < available ? granted : available;
}

static size_t machine_available(void) {
    size_t kilobytes = machine_read("/proc/meminfo", "MemAvailable:");
    return kilobytes == SIZE_MAX ? SIZE_MAX : kilobytes * 1024;
}

size_t weft_machine_memory_available(const char **limit) {
    return machine_memory_least(machine_available(), machine_memory_grant, limit);
}

size_t weft_machine_memory_room(const char **limit) {
    size_t spare = subtract(machine_available(), machine_reserve(weft_machine_memory_total()));
    return machine_memory_least(spare, machine_memory_spare, limit);
}

bool weft_machine_counts_pages(void) {
    return machine_read("/proc/sys/vm/overcommit_memory", NULL) == 2;
}

/* By system calls, because libnuma is not everywhere; the numbers are linux/mempolicy.h's. */
void weft_machine_prefer_node(void *at, size_t bytes) {
    enum { POLICY_DEFAULT = 0, POLICY_PREFERRED = 1, NODES = 1024, WORD = 8 * sizeof(long) };
    unsigned long nodes[NODES / WORD] = {0};
    unsigned cpu, node;
    int policy;
    if (syscall(SYS_getcpu, &cpu, &node, NULL) == 0 && node < NODES &&
        syscall(SYS_get_mempolicy, &policy, NULL, 0, NULL, 0) == 0 && policy == POLICY_DEFAULT) {
        nodes[node / WORD] = 1UL << node % WORD;
        syscall(SYS_mbind, at, bytes, POLICY_PREFERRED, nodes, NODES + 1, 0);
    }
}

/* Whole processors that a quota amounts to: v2's cpu.max is "quota period", v1 has two files. */
static size_t machine_cpu_grant(const char *folder, bool v2, char *name) {
    char path[PATH_BYTES];
    snprintf(name, PATH_BYTES, "%s/%s", folder, v2 ? "cpu.max" : "cpu.cfs_quota_us");
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    size_t quota = machine_read(name, NULL), period = machine_read(v2 ? name : path, NULL);
    FILE *file = v2 && quota != SIZE_MAX ? fopen(name, "re") : NULL;
    if (file && fscanf(file, "%*u %zu", &period) != 1)
        period = SIZE_MAX;
    if (file)
        fclose(file);
    if (quota > SIZE_MAX / 2 || period > SIZE_MAX / 2 || period == 0) /* "max" and -1 */
        return SIZE_MAX;
    return quota < period ? 1 : (quota + period - 1) / period;
}

void weft_machine_processors(cpu_set_t *mask) {
    if (sched_getaffinity(0, sizeof *mask, mask) == 0)
        return;
    CPU_ZERO(mask); /* more processors than a cpu_set_t holds */
    for (int cpu = 0; cpu < CPU_SETSIZE && cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++)
        CPU_SET(cpu, mask);
}

int weft_machine_quota(void) {
    const char *decided;
    size_t granted = machine_walk("cpu", machine_cpu_grant, &decided);
    return granted < INT_MAX ? (int)granted : INT_MAX;
}

int weft_machine_cores(void) {
    cpu_set_t mask;
    weft_machine_processors(&mask);
    int allowed = CPU_COUNT(&mask), granted = weft_machine_quota();
    return granted < allowed ? granted : allowed;
}

void weft_machine_raise_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

#define LAST_LEVEL_CACHE "/sys/devices/system/cpu/cpu0/cache/index3/"

size_t weft_machine_cache(int *processors) {
    size_t kib = machine_read(LAST_LEVEL_CACHE "size", NULL); /* like 32768K */
    *processors = 0;
    FILE *file = kib < SIZE_MAX ? fopen(LAST_LEVEL_CACHE "shared_cpu_map", "re") : NULL;
    int digit; /* like 00000000,0000ffff */
    while (file && (digit = fgetc(file)) != EOF)
        if (isxdigit(digit))
            *processors += __builtin_popcountl(strtoul((char[]){(char)digit, '\0'}, NULL, 16));
    if (file)
        fclose(file);
    return *processors > 0 ? kib << 10 : 0;
}
