/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/library.h"
#include <dlfcn.h>
#include <string.h>

const char *weft_library_find(void *library, const struct weft_library_call *calls, size_t ncalls) {
    for (size_t i = 0; i < ncalls; i++) {
        void *found = dlsym(library, calls[i].name);
        if (!found)
            return calls[i].name;
        memcpy(calls[i].pointer, &found, sizeof found);
    }
    return NULL;
}
