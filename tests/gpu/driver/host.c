/* SPDX-License-Identifier: BSD-3-Clause */
#include "host.h"
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, FLAGS = 0xf };

static struct registration {
    uintptr_t at;
    size_t bytes;
    struct registration *next;
} * registrations;

bool host_holds(uintptr_t at, size_t bytes) {
    for (struct registration *known = registrations; known; known = known->next)
        if (at >= known->at && bytes <= known->bytes && at - known->at <= known->bytes - bytes)
            return true;
    return false;
}

bool host_touches(uintptr_t at, size_t bytes) {
    for (struct registration *known = registrations; known; known = known->next)
        if (at < known->at + known->bytes && known->at < at + bytes)
            return true;
    return false;
}

/* The unit of pinning is the page. */
static int add(uintptr_t at, size_t bytes) {
    uintptr_t first = at / PAGE * PAGE;
    size_t pages = (at + bytes - first + PAGE - 1) / PAGE * PAGE;
    if (!at || !bytes || msync((void *)first, pages, MS_ASYNC) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (host_touches(first, pages))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    struct registration *made = malloc(sizeof *made);
    *made = (struct registration){at, bytes, registrations};
    registrations = made;
    return 0;
}

int cuMemHostRegister(void *at, size_t bytes, unsigned flags) {
    CALL(NO_CAPTURE,
         flags & ~(unsigned)FLAGS ? CUDA_ERROR_INVALID_VALUE : add((uintptr_t)at, bytes));
}

static int drop(uintptr_t at) {
    for (struct registration **slot = &registrations; *slot; slot = &(*slot)->next) {
        struct registration *found = *slot;
        if (found->at != at)
            continue;
        *slot = found->next;
        free(found);
        return 0;
    }
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

int cuMemHostUnregister(void *at) {
    CALL(NO_CAPTURE, drop((uintptr_t)at));
}

int cuMemHostGetDevicePointer(weft_cu_address *address, void *at, unsigned flags) {
    CALL(CONTEXT, flags || !host_holds((uintptr_t)at, 1) ? CUDA_ERROR_INVALID_VALUE
                                                         : (*address = (uintptr_t)at, 0));
}
