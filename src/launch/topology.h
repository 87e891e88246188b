/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the topology of this machine from /sys. */
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

/* Returns the level with this name of `length` characters, in the words of any launcher, or -1. */
int weft_level_find(const char *name, size_t length);
const char *weft_level_name(enum weft_level level);

/* The parts of a level, restricted to the processors in `allowed`, in the order of their first
 * processors. */
struct weft_parts {
    int count;
    cpu_set_t part[CPU_SETSIZE];
};
void weft_topology_parts(enum weft_level level, const cpu_set_t *allowed, struct weft_parts *parts);

/* Convert between a list such as "0-3,8" and a set. weft_topology_parse returns whether the text is
 * such a list. */
bool weft_topology_parse(const char *list, cpu_set_t *set);
void weft_topology_format(const cpu_set_t *set, char *list, size_t bytes);

#endif
