/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory and processors that the job really has: the kernel's figures and the cgroups' limits. */
#ifndef WEFT_BASE_MACHINE_H
#define WEFT_BASE_MACHINE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#define WEFT_MACHINE_AVAILABLE "MemAvailable in /proc/meminfo"

/* Bytes that can still be committed, the least of MemAvailable and every enclosing memory cgroup.
 * `limit` (may be NULL) receives the name of the file that decided, or WEFT_MACHINE_AVAILABLE,
 * which lives forever or until the next call. */
size_t weft_machine_memory_available(const char **limit);

/* The same for a user of memory who wants to have `wanted` bytes in all: a sixteenth of what each
 * grants in all, at most 1 GiB, is left to others, unless that is at most `little` or a 64th of
 * what is available. */
size_t weft_machine_memory_room(size_t little, size_t wanted, const char **limit);

/* True if the kernel counts what is mapped and refuses what exceeds memory (vm.overcommit_memory is
 * 2): then memory has to be committed before it is touched. */
bool weft_machine_counts_pages(void);

/* Pages of [at, at + bytes), which is shared memory, that do not exist yet come to lie on the node
 * where this thread runs, whoever touches them first; unless the process has another policy. Only a
 * hint: where there are no nodes nothing happens. */
void weft_machine_prefer_node(void *at, size_t bytes);

/* Bytes of memory in all. */
size_t weft_machine_memory_total(void);

/* The processors that this process may run on, and to how many the cgroup's quota amounts (INT_MAX:
 * there is none). */
void weft_machine_processors(cpu_set_t *mask);
int weft_machine_quota(void);

/* Processors that this process may use now: the lesser of both. */
int weft_machine_cores(void);

/* Bytes of the first processor's last-level cache, as the kernel sees it (the C library counts all
 * such caches of a socket on some machines), and how many processors share it; 0 if unknown. */
size_t weft_machine_cache(int *processors);

/* Raises the limit on open descriptors as far as it goes without privileges. */
void weft_machine_raise_descriptors(void);

/* --- Limits that are met (base/remedy.c) -------------------------------------------------------
 */

struct weft_remedy {
    char text[256];
};

/* The words to stand behind strerror(-error) in a line, such as "; ulimit -n is 20: raise it", for
 * errors of calls that make descriptors, processes, files and mappings. "": nothing is known. It
 * reads the limits of this process, and keeps errno. */
struct weft_remedy weft_remedy(int error);

#endif
