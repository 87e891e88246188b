/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/library.h"
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include "base/log.h"

const char *weft_library_find(void *library, const struct weft_library_call *calls, size_t ncalls) {
    for (size_t i = 0; i < ncalls; i++) {
        void *found = dlsym(library, calls[i].name);
        if (!found)
            return calls[i].name;
        memcpy(calls[i].pointer, &found, sizeof found);
    }
    return NULL;
}

/* Keeps the library that contains this code loaded until the process ends: exit handlers, signal
 * handlers and threads point into it, and a program may close a plugin with libweft.a inside.
 * libweft.so is linked to stay anyway. Nothing closes an executable. */
__attribute__((constructor(101))) static void keep_loaded(void) {
    static const char here;
    Dl_info self;
    struct link_map *map = NULL;
    if (!dladdr1(&here, &self, (void **)&map, RTLD_DL_LINKMAP) || !map || !map->l_name[0])
        return;
    if (!dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE))
        weft_log("%s cannot be kept loaded (%s): do not close it with dlclose", map->l_name,
                 dlerror());
}
