/* SPDX-License-Identifier: BSD-3-Clause */
/* Contiguous shares, because neighbours in number are neighbours in cache. */
#include "launch/bind.h"
#include <sched.h>
#include <stdio.h>

bool weft_bind_wanted(const struct weft_options *options, int cores) {
    if (options->bind == WEFT_BIND_NONE || options->npes == 1)
        return false;
    if (options->npes <= cores)
        return true;
    if (options->bind == WEFT_BIND_CORE)
        fprintf(stderr, "oshrun: not binding %d PEs: there are only %d processors for them\n",
                options->npes, cores);
    return false;
}

void weft_bind_share(int pe, int npes) {
    cpu_set_t allowed, share;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return; /* more processors than a cpu_set_t holds: the system chooses */
    int count = CPU_COUNT(&allowed), seen = 0;
    int begin = (int)((long)count * pe / npes), end = (int)((long)count * (pe + 1) / npes);
    CPU_ZERO(&share);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed)) {
            if (seen >= begin && seen < end)
                CPU_SET(cpu, &share);
            seen++;
        }
    sched_setaffinity(0, sizeof share, &share);
}
