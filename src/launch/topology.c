/* SPDX-License-Identifier: BSD-3-Clause */
/* For each level a file of every processor lists the processors of its part. If the kernel has no
 * such files, as in some containers, each processor counts as a core, and there is one part on each
 * higher level. */
#include "launch/topology.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPU "/sys/devices/system/cpu/cpu%d/"

static const struct {
    const char *names, *plural, *file;
} levels[] = {
    [WEFT_LEVEL_HWTHREAD] = {"hwthread pu", "hardware threads", NULL},
    [WEFT_LEVEL_CORE] = {"core", "cores", CPU "topology/thread_siblings_list"},
    [WEFT_LEVEL_L1CACHE] = {"l1cache", "L1 caches", CPU "cache/index0/shared_cpu_list"},
    [WEFT_LEVEL_L2CACHE] = {"l2cache", "L2 caches", CPU "cache/index2/shared_cpu_list"},
    [WEFT_LEVEL_L3CACHE] = {"l3cache", "L3 caches", CPU "cache/index3/shared_cpu_list"},
    [WEFT_LEVEL_NUMA] = {"numa", "NUMA nodes", NULL},
    [WEFT_LEVEL_SOCKET] = {"socket package", "sockets", CPU "topology/core_siblings_list"},
    [WEFT_LEVEL_HOST] = {"slot node host board machine", "hosts", NULL},
};
enum { LEVELS = sizeof levels / sizeof *levels };

int weft_level_find(const char *name, size_t length) {
    for (int level = 0; level < LEVELS; level++)
        for (const char *at = levels[level].names; *at; at += *at == ' ') {
            size_t known = strcspn(at, " ");
            if (known == length && strncasecmp(at, name, length) == 0)
                return level;
            at += known;
        }
    return -1;
}

const char *weft_level_name(enum weft_level level) {
    return levels[level].plural;
}

bool weft_topology_parse(const char *list, cpu_set_t *set) {
    CPU_ZERO(set);
    for (const char *at = list; *at && *at != '\n'; at += *at == ',') {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (end == at || first < 0)
            return false;
        if (*end == '-') {
            at = end + 1;
            last = strtol(at, &end, 10);
        }
        if (end == at || last < first || last >= CPU_SETSIZE || !strchr(",\n", *end))
            return false;
        for (long cpu = first; cpu <= last; cpu++)
            CPU_SET((size_t)cpu, set);
        at = end;
    }
    return CPU_COUNT(set) > 0;
}

void weft_topology_format(const cpu_set_t *set, char *list, size_t bytes) {
    size_t used = 0;
    list[0] = '\0';
    for (int cpu = 0; cpu < CPU_SETSIZE && used < bytes; cpu++) {
        int last = cpu;
        if (!CPU_ISSET(cpu, set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
            last++;
        used += (size_t)snprintf(list + used, bytes - used, last > cpu ? "%s%d-%d" : "%s%d",
                                 used ? "," : "", cpu, last);
        cpu = last;
    }
}

static bool list_read(const char *path, cpu_set_t *set) {
    char text[4096] = "";
    FILE *file = fopen(path, "re");
    bool found = file && fgets(text, sizeof text, file) && weft_topology_parse(text, set);
    if (file)
        fclose(file);
    return found;
}

/* Finds the NUMA node of this processor. */
static bool node_find(int cpu, cpu_set_t *part) {
    cpu_set_t online;
    char path[64];
    if (!list_read("/sys/devices/system/node/online", &online))
        return false;
    for (int node = 0; node < CPU_SETSIZE; node++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
        if (CPU_ISSET(node, &online) && list_read(path, part) && CPU_ISSET(cpu, part))
            return true;
    }
    return false;
}

static void part_find(enum weft_level level, int cpu, const cpu_set_t *allowed, cpu_set_t *part) {
    char path[128];
    bool found = level == WEFT_LEVEL_NUMA && node_find(cpu, part);
    if (levels[level].file) {
        snprintf(path, sizeof path, levels[level].file, cpu);
        found = list_read(path, part);
    }
    if (!found && level > WEFT_LEVEL_CORE)
        *part = *allowed;
    else if (!found)
        CPU_ZERO(part);
    CPU_SET(cpu, part);
}

void weft_topology_parts(enum weft_level level, const cpu_set_t *allowed,
                         struct weft_parts *parts) {
    cpu_set_t left = *allowed;
    parts->count = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &left))
            continue;
        cpu_set_t *part = &parts->part[parts->count++];
        part_find(level, cpu, allowed, part);
        CPU_AND(part, part, &left);
        CPU_XOR(&left, &left, part);
    }
}
