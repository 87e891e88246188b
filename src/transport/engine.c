/* SPDX-License-Identifier: BSD-3-Clause */
/* A library stays loaded once it is open, because it may have threads, and its exit handlers must
 * exist to the end. */
#include "transport/engine.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/privilege.h"

static void *library_open(const char *name) {
    return strchr(name, '/') ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : weft_library_open_beside(name);
}

static bool engine_is_whole(const struct weft_engine *e) {
    return e->name && e->open && e->address && e->connect && e->message && e->progress && e->arm &&
           e->abilities && e->threads && e->describe && e->abandon;
}

/* Writes the reason, and returns `error`. */
static __attribute__((format(printf, 3, 4))) int refuse(char *reason, int error, const char *format,
                                                        ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, WEFT_ENGINE_TEXT_BYTES, format, arguments);
    va_end(arguments);
    return error;
}

int weft_engine_find(const char *name, const struct weft_engine **engine, char *reason) {
    void *library = library_open(name);
    if (!library)
        return refuse(reason, -ENOENT,
                      "the library %s, which was to reach PEs on other hosts, cannot be opened: "
                      "%s; WEFT_ENGINE=tcp needs none",
                      name, dlerror());
    const struct weft_engine *found = dlsym(library, WEFT_ENGINE_SYMBOL);
    if (!found)
        return refuse(reason, -EINVAL, "WEFT_ENGINE=%s is not an engine: it has no symbol '%s'",
                      name, WEFT_ENGINE_SYMBOL);
    if (found->version != WEFT_ENGINE_VERSION)
        return refuse(reason, -EPROTO,
                      "WEFT_ENGINE=%s is an engine of version %u, and this Weft works with version "
                      "%u: install two that match",
                      name, found->version, WEFT_ENGINE_VERSION);
    if (!engine_is_whole(found) || found->message_bytes < WEFT_ENGINE_MESSAGE_MIN)
        return refuse(
            reason, -EINVAL,
            "WEFT_ENGINE=%s is an engine that lacks functions, or whose messages have %zu "
            "bytes, less than %d",
            name, found->message_bytes, WEFT_ENGINE_MESSAGE_MIN);
    *engine = found;
    return 0;
}
