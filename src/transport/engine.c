/* SPDX-License-Identifier: BSD-3-Clause */
/* A library stays loaded once it is open: it may have threads, and what it registers with exit
 * handlers must be there to the end. */
#include "transport/engine.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "base/log.h"
#include "base/privilege.h"

static void *library_open(const char *name) {
    return strchr(name, '/') ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : weft_library_open_beside(name);
}

static bool engine_is_whole(const struct weft_engine *e) {
    return e->name && e->open && e->address && e->connect && e->letter && e->progress && e->arm &&
           e->abilities && e->threads && e->describe && e->abandon;
}

int weft_engine_load(const char *name, const struct weft_engine **engine) {
    void *library = library_open(name);
    if (!library) {
        weft_log("some PEs are far, and the library that reaches them cannot be opened: %s; "
                 "WEFT_ENGINE=%s names it",
                 dlerror(), name);
        return -ENOENT;
    }
    const struct weft_engine *found = dlsym(library, WEFT_ENGINE_SYMBOL);
    if (!found) {
        weft_log("WEFT_ENGINE=%s is no engine: it has no symbol '%s'", name, WEFT_ENGINE_SYMBOL);
        return -EINVAL;
    }
    if (found->version != WEFT_ENGINE_VERSION) {
        weft_log("WEFT_ENGINE=%s is an engine of version %u, and this Weft works with version %u: "
                 "install those that belong together",
                 name, found->version, WEFT_ENGINE_VERSION);
        return -EPROTO;
    }
    if (!engine_is_whole(found) || found->letter_bytes < WEFT_ENGINE_LETTER_MIN) {
        weft_log("WEFT_ENGINE=%s is an engine that lacks functions, or whose letters have %zu "
                 "bytes, less than %d",
                 name, found->letter_bytes, WEFT_ENGINE_LETTER_MIN);
        return -EINVAL;
    }
    *engine = found;
    return 0;
}
