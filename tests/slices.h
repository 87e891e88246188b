/* SPDX-License-Identifier: BSD-3-Clause */
/* The time slices that the scheduler gives to this thread. */
#ifndef TESTS_SLICES_H
#define TESTS_SLICES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first version of sched_setattr(2)'s struct sched_attr. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static inline struct attributes attributes(void) {
    struct attributes now = {.size = sizeof now};
    syscall(SYS_sched_getattr, 0, &now, sizeof now, 0);
    return now;
}

static inline unsigned long slice_ns(void) {
    return attributes().runtime;
}

/* Returns whether this thread now has slices of this length: they can be set and read from Linux
 * 6.12 on. */
static inline bool slice_set(unsigned long ns) {
    struct attributes own = attributes();
    own.runtime = ns;
    return syscall(SYS_sched_setattr, 0, &own, 0) == 0 && slice_ns() == ns;
}

#endif
