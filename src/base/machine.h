/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory and processors that the job really has: the kernel's figures and the cgroups' limits.
 */
#ifndef WEFT_BASE_MACHINE_H
#define WEFT_BASE_MACHINE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#define WEFT_MACHINE_AVAILABLE "MemAvailable in /proc/meminfo"

/* Returns the number of bytes that can still be committed, the least of MemAvailable and the limits
 * of all enclosing memory cgroups. `limit` (may be NULL) receives the name of the file that
 * decided, or WEFT_MACHINE_AVAILABLE. The name is valid until the next call. */
size_t weft_machine_memory_available(const char **limit);

/* Like weft_machine_memory_available, for a caller that wants `wanted` bytes in all: reserves a
 * sixteenth of each total, at most 1 GiB, for other processes, unless `wanted` is at most `little`
 * or a 64th of the available memory. */
size_t weft_machine_memory_room(size_t little, size_t wanted, const char **limit);

/* Returns true if the kernel counts all mapped memory and refuses more than it has
 * (vm.overcommit_memory is 2). Memory must then be committed before it is touched. */
bool weft_machine_counts_pages(void);

/* Lets pages of the shared memory [at, at + bytes) that do not exist yet be allocated on this
 * thread's NUMA node, whichever process touches them first, unless the process has another memory
 * policy. This is only a hint, and has no effect on a machine without nodes. */
void weft_machine_prefer_node(void *at, size_t bytes);

/* Returns the machine's memory in bytes. */
size_t weft_machine_memory_total(void);

/* Return the processors that this process may run on, and the number that the cgroup's quota
 * amounts to (INT_MAX: no quota). */
void weft_machine_processors(cpu_set_t *mask);
int weft_machine_quota(void);

/* Returns the number of processors that this process may use now: the lesser of both. */
int weft_machine_cores(void);

/* Returns the size in bytes of the first processor's last-level cache according to the kernel (the
 * C library counts all such caches of a socket on some machines), and the number of processors that
 * share it; 0 if unknown. */
size_t weft_machine_cache(int *processors);

/* Raises the limit on open descriptors as far as it can be raised without privileges. */
void weft_machine_raise_descriptors(void);

/* --- Remedies for limits (base/remedy.c)
 * ------------------------------------------------------------ */

struct weft_remedy {
    char text[256];
};

/* Returns the text to append to strerror(-error) in a line, such as "; ulimit -n is 20: raise it",
 * for errors of calls that create descriptors, processes, files and mappings; "" if no remedy is
 * known. Reads the limits of this process, and preserves errno. */
struct weft_remedy weft_remedy(int error);

#endif
