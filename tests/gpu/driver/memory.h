/* SPDX-License-Identifier: BSD-3-Clause */
/* Physical GPU memory. It lives while a handle or a use (a mapping, an operation) is left. */
#ifndef TESTS_GPU_DRIVER_MEMORY_H
#define TESTS_GPU_DRIVER_MEMORY_H

#include "call.h"
#include "link.h"

#define GRANULE ((size_t)2 << 20)

enum { PAGE = 4096 }; /* bytes of a page of the host */

struct memory {
    struct link link;
    int fd;
    int gpu; /* in the machine */
    bool imported;
    bool handle; /* not released yet */
    unsigned uses;
    size_t bytes;
    unsigned char *view; /* of engines */
};

/* Returns the memory of a handle, or NULL. */
struct memory *memory_of(weft_cu_memory handle);

void memory_use(struct memory *memory);
void memory_drop(struct memory *memory);

#endif
