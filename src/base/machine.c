/* SPDX-License-Identifier: BSD-3-Clause */
/* A cgroup without a limit may lack the file that would contain it. A cgroup's page cache counts as
 * available: the kernel drops it before it refuses memory. */
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
#include "base/cgroup.h"
#include "base/size.h"

size_t weft_machine_memory_total(void) {
    return (size_t)sysconf(_SC_PHYS_PAGES) * weft_page_bytes();
}

/* Returns the amount that a cgroup grants, SIZE_MAX without a limit. `name` receives the file with
 * the limit. */
typedef size_t machine_grant(const struct weft_cgroup *cgroup, char *name);

/* Returns the least amount that this process's cgroup and all its ancestors grant. `decided`
 * receives the file with that limit, and is unchanged if there is no limit. */
static size_t machine_walk(const char *controller, machine_grant *grant, const char **decided) {
    static _Thread_local char deciding[WEFT_CGROUP_FILE_MAX];
    char name[WEFT_CGROUP_FILE_MAX];
    struct weft_cgroup cgroup;
    size_t least = SIZE_MAX;
    for (int version_2 = 0; version_2 <= 1; version_2++) {
        if (!weft_cgroup_find(&cgroup, 0, controller, version_2))
            continue;
        do {
            size_t granted = grant(&cgroup, name);
            if (granted < least) {
                least = granted;
                memcpy(deciding, name, sizeof deciding);
                *decided = deciding;
            }
        } while (weft_cgroup_ascend(&cgroup));
    }
    return least;
}

enum { RESERVE_SHARE = 16, RESERVE_MAX = 1 << 30 };

/* Returns the part of `total` bytes that is left to other processes. */
static size_t machine_reserve(size_t total) {
    return total / RESERVE_SHARE < RESERVE_MAX ? total / RESERVE_SHARE : RESERVE_MAX;
}

static size_t bytes_subtract(size_t from, size_t bytes) {
    return bytes < from ? from - bytes : 0;
}

static size_t machine_memory_limit(const struct weft_cgroup *cgroup, char *name) {
    const char *file = cgroup->version_2 ? "memory.max" : "memory.limit_in_bytes";
    snprintf(name, WEFT_CGROUP_FILE_MAX, "%s/%s", cgroup->folder, file);
    return weft_cgroup_number(cgroup->folder, file, "");
}

static size_t machine_memory_grant(const struct weft_cgroup *cgroup, char *name) {
    bool v2 = cgroup->version_2;
    const char *folder = cgroup->folder;
    size_t limit = machine_memory_limit(cgroup, name);
    size_t used = weft_cgroup_number(folder, v2 ? "memory.current" : "memory.usage_in_bytes", "");
    size_t cache =
        weft_cgroup_number(folder, "memory.stat", v2 ? "inactive_file " : "total_inactive_file ");
    if (limit == SIZE_MAX || used == SIZE_MAX)
        return SIZE_MAX;
    return bytes_subtract(limit, cache == SIZE_MAX ? used : bytes_subtract(used, cache));
}

static size_t machine_memory_spare(const struct weft_cgroup *cgroup, char *name) {
    size_t granted = machine_memory_grant(cgroup, name);
    return granted == SIZE_MAX
               ? granted
               : bytes_subtract(granted, machine_reserve(machine_memory_limit(cgroup, name)));
}

/* Returns the lesser of `available` and the amount that the cgroups grant according to `grant`. */
static size_t machine_memory_least(size_t available, machine_grant *grant, const char **limit) {
    const char *decided = WEFT_MACHINE_AVAILABLE, *cgroup = decided;
    size_t granted = machine_walk("memory", grant, &cgroup);
    if (limit)
        *limit = granted < available ? cgroup : decided;
    return granted < available ? granted : available;
}

static size_t machine_available(void) {
    size_t kilobytes = weft_cgroup_number("/proc", "meminfo", "MemAvailable:");
    return kilobytes == SIZE_MAX ? SIZE_MAX : kilobytes * 1024;
}

size_t weft_machine_memory_available(const char **limit) {
    return machine_memory_least(machine_available(), machine_memory_grant, limit);
}

size_t weft_machine_memory_room(size_t little, size_t wanted, const char **limit) {
    enum { LITTLE_SHARE = 64 };
    size_t available = weft_machine_memory_available(limit);
    if (wanted <= little || wanted <= available / LITTLE_SHARE)
        return available;
    size_t spare =
        bytes_subtract(machine_available(), machine_reserve(weft_machine_memory_total()));
    return machine_memory_least(spare, machine_memory_spare, limit);
}

bool weft_machine_counts_pages(void) {
    return weft_cgroup_number("/proc/sys/vm", "overcommit_memory", "") == 2;
}

/* Makes the system calls itself, because libnuma is not installed everywhere; the numbers are those
 * of linux/mempolicy.h. */
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

/* Returns the number of whole processors that a quota amounts to. Version 2's cpu.max contains
 * "quota period"; version 1 has two files. */
static size_t machine_cpu_grant(const struct weft_cgroup *cgroup, char *name) {
    const char *file = cgroup->version_2 ? "cpu.max" : "cpu.cfs_quota_us";
    snprintf(name, WEFT_CGROUP_FILE_MAX, "%s/%s", cgroup->folder, file);
    size_t quota = weft_cgroup_number(cgroup->folder, file, "");
    size_t period = weft_cgroup_number(cgroup->folder, "cpu.cfs_period_us", "");
    FILE *both = cgroup->version_2 && quota != SIZE_MAX ? fopen(name, "re") : NULL;
    if (both && fscanf(both, "%*u %zu", &period) != 1)
        period = SIZE_MAX;
    if (both)
        fclose(both);
    if (quota > SIZE_MAX / 2 || period > SIZE_MAX / 2 || period == 0) /* excludes "max" and -1 */
        return SIZE_MAX;
    return quota < period ? 1 : (quota + period - 1) / period;
}

void weft_machine_processors(cpu_set_t *mask) {
    if (sched_getaffinity(0, sizeof *mask, mask) == 0)
        return;
    CPU_ZERO(mask); /* more processors than a cpu_set_t can hold */
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

#define LAST_LEVEL_CACHE "/sys/devices/system/cpu/cpu0/cache/index3"

size_t weft_machine_cache(int *processors) {
    size_t kib = weft_cgroup_number(LAST_LEVEL_CACHE, "size", ""); /* such as 32768K */
    *processors = 0;
    FILE *file = kib < SIZE_MAX ? fopen(LAST_LEVEL_CACHE "/shared_cpu_map", "re") : NULL;
    int digit; /* such as 00000000,0000ffff */
    while (file && (digit = fgetc(file)) != EOF)
        if (isxdigit(digit))
            *processors += __builtin_popcountl(strtoul((char[]){(char)digit, '\0'}, NULL, 16));
    if (file)
        fclose(file);
    return *processors > 0 ? kib << 10 : 0;
}
