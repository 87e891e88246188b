/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of libraries that are opened at run time. */
#ifndef WEFT_BASE_LIBRARY_H
#define WEFT_BASE_LIBRARY_H

#include <stddef.h>

/* A function's name, and the pointer that receives its address. */
struct weft_library_call {
    const char *name;
    void *pointer;
};

/* Sets all pointers. Returns NULL, or the name of the first function that the library lacks. */
const char *weft_library_find(void *library, const struct weft_library_call *calls, size_t ncalls);

#endif
