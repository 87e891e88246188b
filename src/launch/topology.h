/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of this machine, as the kernel tells of them in /sys. */
#ifndef WEFT_LAUNCH_TOPOLOGY_H
#define WEFT_LAUNCH_TOPOLOGY_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

enum weft_level {
    WEFT_LEVEL_HWTHREAD,
    WEFT_LEVEL_CORE,
    WEFT_LEVEL_L1CACHE,
    WEFT_LEVEL_L2CACHE,
    WEFT_LEVEL_L3CACHE,
    WEFT_LEVEL_NUMA,
    WEFT_LEVEL_SOCKET,
    WEFT_LEVEL_HOST,
};

/* The level of that name of `length` characters, in any launcher's words; -1: there is none. */
int weft_level_find(const char *name, size_t length);
const char *weft_level_name(enum weft_level level);

/* The processors of `allowed` by parts of this level, in the order of their first ones. */
struct weft_parts {
    int count;
    cpu_set_t part[CPU_SETSIZE];
};
void weft_topology_parts(enum weft_level level, const cpu_set_t *allowed, struct weft_parts *parts);

/* "0-3,8" to a set and back. Whether the text is such a list. */
bool weft_topology_parse(const char *list, cpu_set_t *set);
void weft_topology_format(const cpu_set_t *set, char *list, size_t bytes);

#endif
