/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    GPUS = 32,
    KEYS = 16,
    NO_KEY = -1,
    CLOSED_AFTER_EACH = 32, /* kernels of a GPU, the first ones; */
    CLOSED_AFTER = 16,      /* then after that many each */
};

static struct range {
    uintptr_t at;
    size_t bytes;
    uint32_t gpus; /* bit g: GPU g may */
    int key;       /* NO_KEY: protected for the whole process */
} * ranges;
static size_t nranges;

/* The protected memory of the whole process. */
static struct {
    unsigned running, ended; /* kernels */
    bool open;               /* also between kernels, now and then */
} guarded[GPUS];

/* One for each set of GPUs in use. */
static struct {
    uint32_t gpus;
    int key;
} keys[KEYS];
static int nkeys;

static int key_of(uint32_t gpus) {
    for (int i = 0; i < nkeys; i++)
        if (keys[i].gpus == gpus)
            return keys[i].key;
    int key = nkeys < KEYS ? pkey_alloc(0, PKEY_DISABLE_ACCESS) : NO_KEY;
    if (key < 0)
        return NO_KEY;
    keys[nkeys].gpus = gpus;
    keys[nkeys++].key = key;
    return key;
}

/* For the whole process, as long as it is open to a GPU that may. */
static void protect(const struct range *range) {
    int access = PROT_NONE;
    for (int gpu = 0; gpu < GPUS; gpu++)
        if (guarded[gpu].open && range->gpus >> gpu & 1)
            access = PROT_READ | PROT_WRITE;
    if (mprotect((void *)range->at, range->bytes, access) < 0)
        abort();
}

static bool open_range(struct range *range) {
    range->key = key_of(range->gpus);
    if (range->key == NO_KEY)
        protect(range);
    return range->key == NO_KEY ||
           pkey_mprotect((void *)range->at, range->bytes, PROT_READ | PROT_WRITE, range->key) == 0;
}

bool guard_map(uintptr_t at, size_t bytes, int fd, size_t offset, uint32_t gpus) {
    void *wanted = (void *)at;
    if (mmap(wanted, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) != wanted)
        return false;
    ranges = realloc(ranges, (nranges + 1) * sizeof *ranges);
    ranges[nranges] = (struct range){at, bytes, gpus, NO_KEY};
    return open_range(&ranges[nranges++]);
}

bool guard_change(uintptr_t at, uint32_t gpus) {
    for (size_t i = 0; i < nranges; i++)
        if (ranges[i].at == at) {
            ranges[i].gpus = gpus;
            return open_range(&ranges[i]);
        }
    return false;
}

void guard_unmap(uintptr_t at, size_t bytes) {
    for (size_t i = 0; i < nranges; i++)
        if (ranges[i].at == at)
            ranges[i--] = ranges[--nranges];
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap((void *)at, bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED)
        abort();
}

static void change_all(int gpu, unsigned rights, bool whole) {
    for (int i = 0; i < nkeys; i++)
        if (keys[i].gpus >> gpu & 1)
            pkey_set(keys[i].key, rights);
    for (size_t i = 0; i < nranges && whole; i++)
        if (ranges[i].key == NO_KEY && ranges[i].gpus >> gpu & 1)
            protect(&ranges[i]);
}

void guard_kernel_begin(int gpu) {
    bool opens = !guarded[gpu].open;
    guarded[gpu].open = true;
    guarded[gpu].running++;
    change_all(gpu, 0, opens);
}

/* Closing and opening makes the kernel visit all pages, a third of the time of all tests: so it is
 * not done for each of many kernels. */
void guard_kernel_end(int gpu) {
    unsigned ended = ++guarded[gpu].ended;
    bool closes =
        --guarded[gpu].running == 0 && (ended <= CLOSED_AFTER_EACH || ended % CLOSED_AFTER == 0);
    guarded[gpu].open = !closes;
    change_all(gpu, PKEY_DISABLE_ACCESS, closes);
}
