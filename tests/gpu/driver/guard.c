/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct range {
    uintptr_t at;
    size_t bytes;
} * ranges;
static size_t nranges;
static unsigned running; /* kernels */

/* The protection key of GPU memory, or -1. */
static int key(void) {
    static int taken = -2;
    if (taken == -2)
        taken = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    return taken;
}

static void protect(const struct range *range, int access) {
    if (mprotect((void *)range->at, range->bytes, access) < 0)
        abort();
}

static void protect_all(int access) {
    for (size_t i = 0; i < nranges; i++)
        protect(&ranges[i], access);
}

static void note(uintptr_t at, size_t bytes) {
    ranges = realloc(ranges, (nranges + 1) * sizeof *ranges);
    ranges[nranges++] = (struct range){at, bytes};
}

bool guard_map(uintptr_t at, size_t bytes, int fd, size_t offset) {
    void *wanted = (void *)at;
    if (mmap(wanted, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) != wanted)
        return false;
    if (key() >= 0)
        return pkey_mprotect(wanted, bytes, PROT_READ | PROT_WRITE, key()) == 0;
    note(at, bytes);
    if (running)
        protect(&ranges[nranges - 1], PROT_READ | PROT_WRITE);
    return true;
}

void guard_unmap(uintptr_t at, size_t bytes) {
    for (size_t i = 0; i < nranges; i++)
        if (ranges[i].at == at)
            ranges[i--] = ranges[--nranges];
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap((void *)at, bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED)
        abort();
}

void guard_kernel_begin(void) {
    if (key() >= 0)
        pkey_set(key(), 0);
    else if (running++ == 0)
        protect_all(PROT_READ | PROT_WRITE);
}

void guard_kernel_end(void) {
    if (key() >= 0)
        pkey_set(key(), PKEY_DISABLE_ACCESS);
    else if (--running == 0)
        protect_all(PROT_NONE);
}
